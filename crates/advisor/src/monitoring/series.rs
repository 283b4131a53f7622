//! The series of one configuration, as a function of the object and of the time.
//! Every label is bounded: profiles, phases and states are fixed sets, pools and field managers are limited in number and length.
//! A configuration that is ignored has no series, and neither has one that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use api::{
    VirtPlatformConfig,
    virt_platform_config::{
        Action, DriftedBy, Item, ItemState, Phase, PoolRollout, RolloutState, Severity, VirtPlatformConfigStatus,
    },
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::metrics::{
    CONFIG_IMPACT, CONFIG_PHASE, CONFIG_PHASE_AGE, CONFIG_STALLED, DRIFTED_ITEMS, ITEMS, Metric, REMEDIATION_STALLED,
    REVIEW_AGE, ROLLOUT_NODES, ROLLOUT_STATE, ROLLOUT_UPDATED_NODES, ROLLOUT_WITHOUT_PROGRESS,
};
use crate::machine::{REJECTED, REMEDIATION_STALLED_REASON, STALLED};

/// Field managers of one profile that have a series of their own. The others share one.
pub const MANAGERS: usize = 8;
/// The label of drift by all further field managers.
pub const OTHER: &str = "other";
/// In the place of a field manager: nobody has changed the object, it was deleted.
pub const DELETED: &str = "(deleted)";
/// Pools of one profile that have series, those in trouble first.
pub const POOLS: usize = 32;
/// Bytes of a label whose value comes from outside.
pub const LABEL: usize = 128;

/// One series with its value. The values of the labels are in the order of the metric's labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    pub metric: &'static Metric,
    pub labels: Vec<String>,
    pub value: f64,
}

/// All series of a configuration. A configuration without a status counts as Pending since it was created.
pub fn series(config: &VirtPlatformConfig, now: Timestamp) -> Vec<Sample> {
    let nothing = VirtPlatformConfigStatus::default();
    let status = config.status.as_ref().unwrap_or(&nothing);
    let unseen = || if config.spec.action == Action::Ignore { Phase::Ignored } else { Phase::Pending };
    let phase = status.phase.unwrap_or_else(unseen);
    if phase == Phase::Ignored {
        return Vec::new();
    }
    let mut samples = Samples { profile: config.spec.profile.as_str(), samples: Vec::new() };
    let since = status.entered(phase).or(config.metadata.creation_timestamp.as_ref());
    let age = since.map(|since| seconds(since, now));
    samples.add(&CONFIG_PHASE, &[phase.as_str()], 1.0);
    if let Some(age) = age {
        samples.add(&CONFIG_PHASE_AGE, &[], age);
    }
    if let Some(impact) = status.impact_severity.map(Severity::as_str) {
        samples.add(&CONFIG_IMPACT, &[impact], 1.0);
    }
    if let Some(stalled) = status.true_condition(STALLED) {
        samples.add(&CONFIG_STALLED, &[&stalled.reason], 1.0);
    }
    if let Some(age) = age.filter(|_| waits_for_review(status, phase)) {
        samples.add(&REVIEW_AGE, &[], age);
    }
    for &state in ItemState::ALL {
        samples.add(&ITEMS, &[state.as_str()], count(status.items.iter().filter(|item| item.state == state)));
    }
    for (manager, items) in drifted(&status.items) {
        samples.add(&DRIFTED_ITEMS, &[manager], items);
    }
    let own = status.true_condition(phase.as_str());
    let gave_up = phase == Phase::Drifted && own.is_some_and(|own| own.reason == REMEDIATION_STALLED_REASON);
    samples.add(&REMEDIATION_STALLED, &[], f64::from(u8::from(gave_up)));
    for pool in pools(&status.items) {
        let name = pool.pool.as_str();
        samples.add(&ROLLOUT_STATE, &[name, pool.state.as_str()], 1.0);
        if let Some(total) = pool.total {
            samples.add(&ROLLOUT_NODES, &[name], total.into());
        }
        if let Some(updated) = pool.updated {
            samples.add(&ROLLOUT_UPDATED_NODES, &[name], updated.into());
        }
        if let Some(progress) = &pool.last_progress {
            samples.add(&ROLLOUT_WITHOUT_PROGRESS, &[name], seconds(progress, now));
        }
    }
    samples.samples
}

struct Samples<'a> {
    profile: &'a str,
    samples: Vec<Sample>,
}

impl Samples<'_> {
    /// Adds a series of this profile, with the labels behind the profile.
    fn add(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        let labels = [self.profile].into_iter().chain(labels.iter().copied());
        let labels = labels.map(|label| bounded(label).to_owned()).collect();
        self.samples.push(Sample { metric, labels, value });
    }
}

fn bounded(label: &str) -> &str {
    &label[..label.floor_char_boundary(LABEL)]
}

/// The seconds from a time until now. A time in the future was written by a wrong clock.
fn seconds(time: &Time, now: Timestamp) -> f64 {
    now.duration_since(time.0).as_secs_f64().max(0.0)
}

fn count<T>(items: impl Iterator<Item = T>) -> f64 {
    f64::from(u32::try_from(items.count()).unwrap_or(u32::MAX))
}

/// Whether a person has to read a plan. Who has rejected it has read it.
fn waits_for_review(status: &VirtPlatformConfigStatus, phase: Phase) -> bool {
    let is_rejected = status.true_condition(phase.as_str()).is_some_and(|own| own.reason == REJECTED);
    phase == Phase::ReviewRequired && !status.items.is_empty() && !is_rejected
}

/// The field manager that has changed an item, as the value of a label.
fn changed_by(drift: &DriftedBy) -> &str {
    if drift.deleted { DELETED } else { bounded(&drift.manager) }
}

/// How many items each field manager has changed. The first ones by name are told apart.
fn drifted(items: &[Item]) -> BTreeMap<&str, f64> {
    let managers = || items.iter().filter_map(|item| item.drifted_by.as_ref()).map(changed_by);
    let told: BTreeSet<&str> = managers().collect::<BTreeSet<_>>().into_iter().take(MANAGERS).collect();
    let mut drifted = BTreeMap::new();
    for manager in managers() {
        let label = if told.contains(manager) { manager } else { OTHER };
        *drifted.entry(label).or_insert(0.0) += 1.0;
    }
    drifted
}

/// The pools that items wait for. Of a pool that several items wait for, the one in the worst state counts.
fn pools(items: &[Item]) -> Vec<&PoolRollout> {
    let mut all: Vec<&PoolRollout> = items.iter().flat_map(|item| &item.rollout).collect();
    all.sort_by_key(|pool| (gravity(pool.state), pool.last_progress.as_ref().map(|time| time.0)));
    let mut names = BTreeSet::new();
    all.retain(|pool| names.insert(bounded(&pool.pool)));
    all.truncate(POOLS);
    all
}

fn gravity(state: RolloutState) -> u8 {
    match state {
        RolloutState::RenderDegraded => 0,
        RolloutState::Degraded => 1,
        RolloutState::NoProgress => 2,
        RolloutState::Paused => 3,
        RolloutState::Updating => 4,
        RolloutState::Pending => 5,
    }
}

#[cfg(test)]
mod tests;
