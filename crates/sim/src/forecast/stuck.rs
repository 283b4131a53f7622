//! The VMs that cannot move, and why, with the placement at the beginning.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use super::MOST_NAMES;
use crate::{
    engine::{Destination, Run},
    model::ClusterModel,
    scenario::Scenario,
    settings::RunSettings,
};

/// VMs that cannot move for the same reason.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StuckVms {
    pub reason: StuckReason,
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
        let at = stuck.iter().position(|known| known.reason == reason).unwrap_or_else(|| {
            stuck.push(StuckVms { reason, because: reason.to_string(), count: 0, vms: Vec::new() });
            stuck.len() - 1
        });
        stuck[at].count += 1;
        if stuck[at].vms.len() < MOST_NAMES {
            stuck[at].vms.push(model.vm_name(vm));
        }
    }
    stuck.sort_by_key(|stuck| stuck.reason);
    stuck
}
