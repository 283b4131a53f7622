//! What could not be read, and what is not known because of that.

use schemars::JsonSchema;
use serde::Serialize;

use super::{DrainEffect, GuestOutcome, ObservedCluster, Reading, counted};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unread {
    pub what: &'static str,
    pub why: String,
    /// What is not known without it.
    pub consequence: &'static str,
}

impl Unread {
    /// None if it was read, or is not there to be read.
    pub fn of<T>(what: &'static str, reading: &Reading<T>, consequence: &'static str) -> Option<Self> {
        match reading {
            Reading::Unreadable(why) => Some(Unread { what, why: why.clone(), consequence }),
            Reading::Read(_) | Reading::NotServed => None,
        }
    }
}

pub(super) fn unread(observed: &ObservedCluster) -> Vec<Unread> {
    [
        Unread::of("MachineConfigPools", &observed.pools, "which nodes reboot, and how many at a time"),
        Unread::of("Nodes", &observed.nodes, "which nodes reboot, and in which order"),
        Unread::of("Infrastructure", &observed.topology, "whether nodes are drained at all; their number decides here"),
        Unread::of("VirtualMachineInstances", &observed.instances, "which virtual machines are on these nodes"),
        Unread::of("VirtualMachines", &observed.virtual_machines, "whether a guest that is shut down is started again"),
        Unread::of("KubeVirt", &observed.platform, "its eviction strategy, and how many migrations run at a time"),
        Unread::of("VirtualMachineInstanceMigrations", &observed.migrations, "how long migrations took"),
        Unread::of("Pods", &observed.pods, "what is free on other nodes, and which pods a budget covers"),
        Unread::of("PodDisruptionBudgets", &observed.budgets, "which other pods hold a drain up"),
        Unread::of("Events", &observed.reboots, "how long reboots took"),
        Unread::of("InFlightOperations", &observed.operations, "what else is going on"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Why it is not known what has to leave its node.
pub(super) fn unknown_load<'a>(
    knows_nodes: bool,
    observed: &ObservedCluster,
    outcomes: impl Iterator<Item = &'a GuestOutcome>,
) -> Option<String> {
    if !knows_nodes {
        return Some("which nodes reboot is not known".into());
    }
    if let Reading::Unreadable(why) = &observed.instances {
        return Some(format!("which virtual machines have to move is not known: {why}"));
    }
    let unknown = outcomes.filter(|outcome| outcome.effect == DrainEffect::Unknown).count();
    let have = if unknown == 1 { "has" } else { "have" };
    (unknown > 0).then(|| format!("whether {} {have} to move is not known", counted(unknown, "virtual machine")))
}
