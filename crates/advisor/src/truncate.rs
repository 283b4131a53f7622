//! Truncates what is longer than the schema allows, for statuses and records: the API server would refuse them whole.

use api::{
    bounds,
    virt_platform_config::{ImpactDetail, PoolRollout, Risk, TakeOver},
};

/// Truncates a name to at most `max` bytes.
pub(crate) fn shorten(name: &mut String, max: usize) {
    name.truncate(name.floor_char_boundary(max));
}

/// Truncates a text to at most `max` bytes, and says so at its end.
pub(crate) fn cut(mut text: String, max: usize) -> String {
    const MISSING: &str = "\n[cut: too long]";
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max.saturating_sub(MISSING.len())));
        text += MISSING;
    }
    text
}

pub(crate) fn notes(notes: &mut Vec<String>) {
    notes.truncate(bounds::SHORT_LIST);
    notes.iter_mut().for_each(|note| *note = cut(std::mem::take(note), bounds::NOTE));
}

pub(crate) fn risks(risks: &mut Vec<Risk>) {
    risks.truncate(bounds::SHORT_LIST);
    risks.iter_mut().for_each(|risk| risk.message = cut(std::mem::take(&mut risk.message), bounds::NOTE));
}

pub(crate) fn take_overs(take_overs: &mut Vec<TakeOver>) {
    take_overs.truncate(bounds::SHORT_LIST);
    for taken in take_overs {
        shorten(&mut taken.manager, bounds::MANAGER);
        field_paths(&mut taken.fields);
    }
}

pub(crate) fn field_paths(paths: &mut Vec<String>) {
    paths.truncate(bounds::FIELD_PATHS);
    paths.iter_mut().for_each(|path| shorten(path, bounds::FIELD_PATH));
}

pub(crate) fn rollout(pools: &mut Vec<PoolRollout>) {
    pools.truncate(bounds::SHORT_LIST);
    for pool in pools {
        shorten(&mut pool.pool, bounds::NAME);
        pool.cause = pool.cause.take().map(|cause| cut(cause, bounds::NOTE));
    }
}

pub(crate) fn impact_detail(detail: &mut ImpactDetail) {
    detail.pools.truncate(bounds::SHORT_LIST);
    let rendered = detail.pools.iter_mut().filter_map(|pool| pool.rendered.as_mut());
    rendered.for_each(|rendered| shorten(rendered, bounds::NAME));
}
