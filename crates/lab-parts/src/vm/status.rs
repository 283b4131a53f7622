//! The status of a VM: phase, node, and at most three conditions.

use api::{
    VirtualMachineStatus, bounds,
    virtual_machine::{EndedMigration, Phase},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{LauncherPod, Vm};
use crate::launcher::EVICTION_REQUESTED;

const READY: &str = "Ready";
const MIGRATED: &str = "Migrated";

/// Why a migration failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationFailure {
    TargetUnschedulable,
    TargetNotStarted,
    TargetLost,
    NotConverging,
    SourceLost,
    InvalidSpec,
}

impl MigrationFailure {
    /// The reason in the VM's condition.
    pub const fn reason(self) -> &'static str {
        match self {
            MigrationFailure::TargetUnschedulable => "TargetUnschedulable",
            MigrationFailure::TargetNotStarted => "TargetNotStarted",
            MigrationFailure::TargetLost => "TargetLost",
            MigrationFailure::NotConverging => "NotConverging",
            MigrationFailure::SourceLost => "SourceLost",
            MigrationFailure::InvalidSpec => "InvalidSpec",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            MigrationFailure::TargetUnschedulable => {
                "no other node could take the target pod in time; the VM stays where it is"
            }
            MigrationFailure::TargetNotStarted => "the target pod did not start in time; the VM stays where it is",
            MigrationFailure::TargetLost => "the target pod was lost; the VM stays where it is",
            MigrationFailure::NotConverging => {
                "the VM writes to its memory faster than it can be copied; it stays where it is"
            }
            MigrationFailure::SourceLost => "the source pod was lost before its memory was copied; the VM starts anew",
            MigrationFailure::InvalidSpec => "the spec cannot be read, so no target pod can be made",
        }
    }
}

/// How a migration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationOutcome {
    Succeeded {
        from: String,
        to: String,
    },
    Failed(MigrationFailure),
    /// The VM was not on the node that it was to leave, or is to stop.
    NotNeeded,
}

/// The status for the pod that counts as the VM, and for a migration that has ended. `began` is when the target of a migration was
/// created, if there is one.
pub(super) fn status(
    vm: &Vm,
    current: Option<&LauncherPod>,
    outcome: Option<&MigrationOutcome>,
    began: Option<Timestamp>,
    now: Timestamp,
) -> VirtualMachineStatus {
    let mut status = vm.status.clone();
    let (phase, reason, message) = match (&vm.spec, current) {
        (Err(problem), _) => (Phase::Failed, "InvalidSpec", problem.as_str()),
        (Ok(spec), None) if !spec.running => (Phase::Stopped, "Stopped", "spec.running is false"),
        (Ok(_), None) => (Phase::Pending, "Pending", "the VM has no pod yet"),
        (Ok(_), Some(pod)) if pod.is_running => (Phase::Running, "Running", ""),
        (Ok(_), Some(pod)) if pod.node.is_some() => (Phase::Scheduled, "Scheduled", "the pod starts"),
        (Ok(_), Some(_)) => (Phase::Scheduling, "Scheduling", "the pod waits for a node"),
    };
    let is_ready = phase == Phase::Running;
    status.phase = Some(phase);
    status.pod_name = current.map(|pod| pod.name.clone());
    status.node_name = current.and_then(|pod| pod.node.clone());
    if let Ok(spec) = &vm.spec {
        // A pod keeps the size that it was created with.
        if current.is_some_and(|pod| pod.has_size_of(spec)) {
            status.allocated_cpu = Some(spec.cpu.clone());
            status.allocated_memory = Some(spec.memory.clone());
        }
        status.cpu_utilization = Some(spec.cpu_utilization.clone());
        status.memory_utilization = Some(spec.memory_utilization.clone());
    }
    if status.created_at.is_none() {
        status.created_at = current.and_then(|pod| pod.created).map(Time);
    }
    if outcome.is_some() {
        status.evacuation_node_name = None;
    }
    match outcome {
        // The VM starts anew, and so does its past.
        Some(MigrationOutcome::Failed(MigrationFailure::SourceLost)) => status.migrations.clear(),
        _ if current.is_none() => status.migrations.clear(),
        Some(MigrationOutcome::Succeeded { .. } | MigrationOutcome::Failed(_)) => {
            if let Some(began) = began {
                remember(&mut status.migrations, began.min(now), now);
            }
        }
        Some(MigrationOutcome::NotNeeded) | None => {}
    }

    let known = [READY, EVICTION_REQUESTED, MIGRATED];
    status.conditions.retain(|condition| known.contains(&&*condition.type_));
    let mut set = |kind: &str, is: bool, reason: &str, message: &str| {
        set_condition(&mut status.conditions, vm.generation, kind, is, reason, message, now);
    };
    set(READY, is_ready, reason, &message.chars().take(512).collect::<String>());
    match outcome {
        Some(MigrationOutcome::Succeeded { from, to }) => {
            set(MIGRATED, true, "Succeeded", &format!("from {from} to {to}"))
        }
        Some(MigrationOutcome::Failed(failure)) => set(MIGRATED, false, failure.reason(), failure.message()),
        Some(MigrationOutcome::NotNeeded) | None => {}
    }
    match &status.evacuation_node_name {
        // The webhook sets the condition itself. A request by hand comes without one.
        Some(node) if !is_true(&status.conditions, EVICTION_REQUESTED) => {
            let message = format!("the VM is to leave {node}");
            let conditions = &mut status.conditions;
            set_condition(conditions, vm.generation, EVICTION_REQUESTED, true, EVICTION_REQUESTED, &message, now);
        }
        Some(_) => {}
        None => status.conditions.retain(|condition| condition.type_ != EVICTION_REQUESTED),
    }
    status
}

/// Adds a migration that has ended. Only the latest are kept.
fn remember(migrations: &mut Vec<EndedMigration>, began: Timestamp, ended: Timestamp) {
    migrations.push(EndedMigration { start_timestamp: whole_second(began), end_timestamp: whole_second(ended) });
    let surplus = migrations.len().saturating_sub(bounds::ENDED_MIGRATIONS);
    migrations.drain(..surplus);
}

/// The API server stores whole seconds.
fn whole_second(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

fn is_true(conditions: &[Condition], kind: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
}

fn set_condition(
    conditions: &mut Vec<Condition>,
    generation: Option<i64>,
    kind: &str,
    is: bool,
    reason: &str,
    message: &str,
    now: Timestamp,
) {
    let new = Condition {
        type_: kind.to_owned(),
        status: if is { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: whole_second(now),
        observed_generation: generation,
    };
    match conditions.iter_mut().find(|condition| condition.type_ == kind) {
        Some(old) if old.status == new.status => {
            *old = Condition { last_transition_time: old.last_transition_time.clone(), ..new };
        }
        Some(old) => *old = new,
        None => conditions.push(new),
    }
}
