//! Pools that are late. One that has noticed nothing of a change may have nothing to render; one that notices a change after its item
//! was told Completed updates its nodes, and then the item is waited for again.

use std::time::Duration;

use api::virt_platform_config::{Item, ItemState, Operation, VirtPlatformConfigStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::progress::{Progress, is_rolled_out, labels_of, progress};
use crate::{
    Facts, ObjectRef, Query, drift,
    fields::Path,
    kind,
    pools::{self, Pool, ROLE},
    rendered_config::{self, Content},
};

/// How long after an item was told Completed an edit that its pool renders may be the one of the item.
const LATE: Duration = Duration::from_secs(60 * 60);

/// How long a pool takes at most to begin with a change that it notices.
const NOTICING: Duration = Duration::from_secs(60);

/// The most configs of a pool that are read.
const MOST_SOURCES: usize = 100;

/// What has to be read, besides what the planner wants, to tell how far the items of a status are.
pub fn rollout_queries(status: &VirtPlatformConfigStatus, facts: &Facts) -> Vec<Query> {
    let mut queries = Vec::new();
    for item in status.items.iter().filter(|item| is_rolled_out(item) && item.operation == Operation::Apply) {
        if !matches!(item.state, ItemState::InProgress | ItemState::Completed) {
            continue;
        }
        let edited = reached(item, facts).into_iter().filter(|pool| has_edited_source(item, *pool));
        let mut wanted: Vec<Query> = edited.filter_map(|pool| pool.running_config()).map(Query::Object).collect();
        if item.state == ItemState::InProgress {
            wanted.extend(unnoticed(item, facts).into_iter().flat_map(|pool| other_sources(item, pool)));
        }
        for query in wanted {
            if !queries.contains(&query) {
                queries.push(query);
            }
        }
    }
    queries
}

/// Whether a pool that has to render an item has not noticed its change, and has nothing to render: what it has is what it would render
/// from its configs as they are now.
pub(super) fn has_nothing_to_render(item: &Item, pool: &str, facts: &Facts) -> bool {
    unnoticed(item, facts).into_iter().any(|known| known.name() == pool && is_up_to_date(item, known, facts))
}

/// Whether a pool that had to render an item still has what it had before.
pub(super) fn is_unnoticed(item: &Item, facts: &Facts) -> bool {
    !unnoticed(item, facts).is_empty()
}

/// Why an item that was told Completed is waited for again, if it is.
pub(super) fn reopened(item: &Item, facts: &Facts, now: Timestamp) -> Option<String> {
    let Progress::Rolling(waits) = progress(item, facts, None) else { return None };
    let completed = item.last_transition_time.as_ref()?.0;
    let is_recent = Duration::try_from(now.duration_since(completed)).unwrap_or_default() < LATE;
    let is_waiting = |pool: &Pool<'_>| waits.iter().any(|wait| wait.pool == pool.name());
    let is_back = |pool: &Pool<'_>| {
        let is_lost = is_lost(item, *pool, facts) || is_lost_in_part(item, *pool, facts, completed);
        is_lost || is_recent && is_edited(item, *pool, facts)
    };
    let pool = reached(item, facts).into_iter().find(|pool| is_waiting(pool) && is_back(pool))?;
    Some(format!("MachineConfigPool '{}' updates its nodes again", pool.name()))
}

/// Whether all nodes of the pools that are waited for run an item and are to keep it. They get an edit of their configs, which may be
/// somebody else's. What they run counts as the item as long as it could not be read.
pub(super) fn is_on_all_nodes(item: &Item, facts: &Facts) -> bool {
    let is_waiting = |pool: &Pool<'_>| item.rollout.iter().any(|wait| wait.pool == pool.name());
    let is_unread = |config: ObjectRef| facts.answer(&Query::Object(config)).is_none();
    let mut pools = reached(item, facts).into_iter().filter(is_waiting).peekable();
    item.operation == Operation::Apply
        && item.removes.is_empty()
        && pools.peek().is_some()
        && pools.all(|pool| {
            let is_run = running_content(item, pool, facts) == Some(Content::Included);
            let may_be_run = is_run || pool.running_config().is_some_and(is_unread);
            may_be_run && has_edited_source(item, pool) && has_content(item, pool, facts)
        })
}

/// How much of an item is in what the nodes of a pool run, if that is known.
fn running_content(item: &Item, pool: Pool<'_>, facts: &Facts) -> Option<Content> {
    let running = pool.running_config().and_then(|running| facts.object(&running))?;
    Some(rendered_config::content(running, None, &drift::result(item)))
}

/// The pools that are to have an item, or to lose it.
fn reached<'a>(item: &Item, facts: &'a Facts) -> Vec<Pool<'a>> {
    match item.operation {
        Operation::Apply => pools::reached(facts, &labels_of(item, &drift::result(item), facts)),
        Operation::Delete => {
            let planned = item.impact_detail.iter().flat_map(|detail| &detail.pools);
            pools::named(facts, &planned.map(|pool| pool.name.as_str()).collect::<Vec<_>>())
        }
    }
}

/// The pools that had to render an item and still have what they had before, if that has all of the item. An argument may be from
/// another config, and a file may be overridden by one.
fn unnoticed<'a>(item: &Item, facts: &'a Facts) -> Vec<Pool<'a>> {
    let is_awaited =
        item.operation == Operation::Apply && item.applied_fingerprint.is_some() && item.drifted_by.is_none();
    let before = |pool: &Pool<'_>| {
        let mut planned = item.impact_detail.iter().flat_map(|detail| &detail.pools);
        planned.find(|known| known.name == pool.name()).and_then(|known| known.rendered.as_deref())
    };
    let mut pools = if is_awaited { reached(item, facts) } else { Vec::new() };
    pools.retain(|pool| before(pool).is_some() && before(pool) == pool.target());
    pools.retain(|pool| pool.target_includes(&item.target_ref.name) && has_content(item, *pool, facts));
    pools
}

/// The other configs of a pool. Too many are not read.
fn other_sources(item: &Item, pool: Pool<'_>) -> Vec<Query> {
    let others = pool.target_sources().filter(|source| *source != item.target_ref.name);
    let queries: Vec<Query> =
        others.map(|source| Query::Optional(ObjectRef::cluster(&kind::MACHINE_CONFIG, source))).collect();
    if queries.len() <= MOST_SOURCES { queries } else { Vec::new() }
}

/// Whether what a pool has rendered is what its configs are now, as far as the item manages them. All of them have to be known.
fn is_up_to_date(item: &Item, pool: Pool<'_>, facts: &Facts) -> bool {
    let config = |name: &str| match name == item.target_ref.name {
        true => facts.target(&item.target_ref).flatten(),
        false => facts.optional(&ObjectRef::cluster(&kind::MACHINE_CONFIG, name)),
    };
    let role = |config: &Value| config.pointer("/metadata/labels").map_or(Value::Null, |labels| labels[ROLE].clone());
    let sources: Option<Vec<_>> = pool.target_sources().map(|name| config(name).map(|config| (name, config))).collect();
    let target = pool.target_config().and_then(|target| facts.object(&target));
    let Some((target, mut sources)) = target.zip(sources) else { return false };
    // The configs of a custom pool are merged last.
    sources.sort_by_key(|&(name, config)| (role(config) != "worker", name));
    let sources: Vec<&Value> = sources.into_iter().map(|(_, config)| config).collect();
    let within = |field: &str, part: &str| Path::parsed(field).is_within(&Path::dotted(part));
    item.managed_fields.iter().chain(&item.removes).all(|field| {
        within(field, "metadata.labels")
            || within(field, "spec.kernelArguments") && rendered_config::has_arguments_of(target, &sources)
            || within(field, "spec.config") && rendered_config::has_entries_of(target, &sources)
    })
}

/// Whether what the nodes of a pool are to run has all of an item. What is not known yet is taken for complete.
fn has_content(item: &Item, pool: Pool<'_>, facts: &Facts) -> bool {
    let target = pool.target_config().and_then(|target| facts.object(&target));
    target.is_none_or(|target| rendered_config::content(target, None, &drift::result(item)) != Content::Missing)
}

/// Whether nodes that have had an item are to lose it, or have lost it and get it back. The same for one that was gone from them.
fn is_lost(item: &Item, pool: Pool<'_>, facts: &Facts) -> bool {
    let name = &item.target_ref.name;
    // What all nodes run is never older than the item.
    let changes = pool.rendered().is_some() && pool.target() != pool.rendered();
    let is_run = pool.is_rendered_from(name) && running_content(item, pool, facts) != Some(Content::Missing);
    had(item, pool)
        && match item.operation {
            Operation::Apply => !pool.target_includes(name) || !has_content(item, pool, facts) || changes && !is_run,
            Operation::Delete => pool.target_includes(name) || changes && pool.is_rendered_from(name),
        }
}

/// Whether some nodes have lost an item and get it back: its config was written after it was told Completed, while the pool updated nodes.
/// The pool says that it runs, and is to run, what it always did. A node that joins it looks the same, but nobody writes the config.
fn is_lost_in_part(item: &Item, pool: Pool<'_>, facts: &Facts, completed: Timestamp) -> bool {
    let written = facts.target(&item.target_ref).flatten().and_then(last_write);
    let is_written_meanwhile = written.zip(pool.updating_since()).is_some_and(|(written, since)| {
        // What the pool does may be a consequence of that write, and begin after it.
        let latest = written.checked_add(NOTICING).unwrap_or(written);
        written > completed && since <= latest
    });
    item.operation == Operation::Apply
        && had(item, pool)
        && pool.target() == pool.rendered()
        && pool.updated_nodes() < pool.nodes()
        && is_written_meanwhile
}

/// When somebody last created an object or changed fields of it.
fn last_write(object: &Value) -> Option<Timestamp> {
    let metadata = object.get("metadata")?;
    let times = metadata["managedFields"].as_array().into_iter().flatten().map(|entry| &entry["time"]);
    times.chain([&metadata["creationTimestamp"]]).filter_map(|time| time.as_str()?.parse().ok()).max()
}

/// Whether the nodes of a pool had an item that was told Completed, or had lost it. A pool that is new has never had it.
fn had(item: &Item, pool: Pool<'_>) -> bool {
    let name = &item.target_ref.name;
    let mut planned = item.impact_detail.iter().flat_map(|detail| &detail.pools).peekable();
    // A plan that changes nothing lists no pools.
    let is_unlisted = planned.peek().is_none() && pool.target_includes(name);
    pool.is_rendered_from(name) || is_unlisted || planned.any(|known| known.name == pool.name())
}

/// Whether a pool rolls out an edit of its configs in what the item manages. Nothing tells which config was edited.
fn is_edited(item: &Item, pool: Pool<'_>, facts: &Facts) -> bool {
    let known = |config: Option<ObjectRef>| config.and_then(|config| facts.object(&config));
    let Some((running, target)) = known(pool.running_config()).zip(known(pool.target_config())) else { return false };
    let differs = |field: &String| Path::parsed(field).find(running) != Path::parsed(field).find(target);
    has_edited_source(item, pool) && item.managed_fields.iter().any(differs)
}

/// Whether a pool rolls out other content of the same configs, with that of an item among them.
fn has_edited_source(item: &Item, pool: Pool<'_>) -> bool {
    let sorted = |mut names: Vec<&str>| {
        names.sort_unstable();
        names.join(" ")
    };
    pool.target_includes(&item.target_ref.name)
        && pool.target() != pool.rendered()
        && sorted(pool.sources().collect()) == sorted(pool.target_sources().collect())
}
