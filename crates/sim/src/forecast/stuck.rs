//! The VMs that cannot move, and why, with the placement at the beginning.

use std::{cmp::Reverse, fmt};

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_NAMES;
use crate::{
    engine::{Destination, Run},
    model::ClusterModel,
    scenario::Scenario,
    settings::RunSettings,
};

/// The most causes for which VMs cannot be migrated that are told apart. The VMs with others are one group.
const MOST_CAUSES: usize = 20;

/// VMs that cannot move for the same reason.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StuckVms {
    pub reason: StuckReason,
    /// Why these cannot be migrated, as the scenario says, for example DisksNotLiveMigratable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    pub because: String,
    pub count: usize,
    /// The first of them.
    pub vms: Vec<String>,
}

/// Why a VM cannot move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub enum StuckReason {
    NotMigratable,
    NotAllowed,
    KeptApart,
    NoRoom,
}

impl fmt::Display for StuckReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMigratable => "cannot be migrated while they run",
            Self::NotAllowed => "labels, taints and cordons allow no other node",
            Self::KeptApart => "must be kept apart from a VM on each other node",
            Self::NoRoom => "no other node has room for what they request",
        })
    }
}

pub(super) fn vms(model: &ClusterModel, settings: &RunSettings, scenario: &Scenario) -> Vec<StuckVms> {
    let mut run = Run::new(model, *settings, scenario.seed);
    run.observe();
    let mut stuck: Vec<StuckVms> = Vec::new();
    for vm in 0..model.vm_count() as u32 {
        let reason = match run.destination_of(vm) {
            _ if !model.group(vm).migratable => StuckReason::NotMigratable,
            Destination::Possible => continue,
            Destination::NotAllowed => StuckReason::NotAllowed,
            Destination::KeptApart => StuckReason::KeptApart,
            Destination::NoRoom => StuckReason::NoRoom,
        };
        let cause = match reason {
            StuckReason::NotMigratable => model.group(vm).not_migratable_because.as_deref(),
            _ => None,
        };
        let causes = stuck.iter().filter(|known| known.cause.is_some()).count();
        let cause = cause.filter(|_| causes < MOST_CAUSES || position(&stuck, reason, cause).is_some());
        let at = position(&stuck, reason, cause).unwrap_or_else(|| {
            let because = cause.map_or_else(|| reason.to_string(), |cause| format!("{reason}: {cause}"));
            stuck.push(StuckVms { reason, cause: cause.map(str::to_owned), because, count: 0, vms: Vec::new() });
            stuck.len() - 1
        });
        stuck[at].count += 1;
        if stuck[at].vms.len() < MOST_NAMES {
            stuck[at].vms.push(model.vm_name(vm));
        }
    }
    // By cause the most frequent first, and those without one last.
    let rank = |stuck: &StuckVms| (stuck.reason, stuck.cause.is_none(), Reverse(stuck.count), stuck.cause.clone());
    stuck.sort_by_cached_key(rank);
    stuck
}

/// Where the group of a reason and a cause is.
fn position(stuck: &[StuckVms], reason: StuckReason, cause: Option<&str>) -> Option<usize> {
    stuck.iter().position(|known| known.reason == reason && known.cause.as_deref() == cause)
}
