//! What is said on a VM: phase, place, and at most three conditions.

use api::{VirtualMachineStatus, virtual_machine::Phase};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::{Launcher, Machine};
use crate::launcher::EVICTION_REQUESTED;

const READY: &str = "Ready";
const MIGRATED: &str = "Migrated";

/// Why a migration came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    TargetUnschedulable,
    TargetNotStarted,
    TargetLost,
    NotConverging,
    SourceLost,
    InvalidSpec,
}

impl Failure {
    /// The reason on the VM.
    pub const fn reason(self) -> &'static str {
        match self {
            Failure::TargetUnschedulable => "TargetUnschedulable",
            Failure::TargetNotStarted => "TargetNotStarted",
            Failure::TargetLost => "TargetLost",
            Failure::NotConverging => "NotConverging",
            Failure::SourceLost => "SourceLost",
            Failure::InvalidSpec => "InvalidSpec",
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Failure::TargetUnschedulable => "no other node could take the target pod in time; the VM stays where it is",
            Failure::TargetNotStarted => "the target pod did not start in time; the VM stays where it is",
            Failure::TargetLost => "the target pod was lost; the VM stays where it is",
            Failure::NotConverging => "the VM writes to its memory faster than it can be copied; it stays where it is",
            Failure::SourceLost => "the source pod was lost before its memory was copied; the VM starts anew",
            Failure::InvalidSpec => "the spec cannot be read, so no target pod can be made",
        }
    }
}

/// How a migration ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded {
        from: String,
        to: String,
    },
    Failed(Failure),
    /// The VM was not on the node that it was to leave.
    NotNeeded,
}

/// What shall be said, given the pod that counts, and how a migration ended if one did.
pub(super) fn status(
    vm: &Machine,
    current: Option<&Launcher>,
    outcome: Option<&Outcome>,
    now: Timestamp,
) -> VirtualMachineStatus {
    let mut status = vm.status.clone();
    let (phase, reason, message) = match (&vm.wanted, current) {
        (Err(problem), _) => (Phase::Failed, "InvalidSpec", problem.as_str()),
        (Ok(wanted), None) if !wanted.running => (Phase::Stopped, "Stopped", "spec.running is false"),
        (Ok(_), None) => (Phase::Pending, "Pending", "the VM has no pod yet"),
        (Ok(_), Some(pod)) if pod.is_running => (Phase::Running, "Running", ""),
        (Ok(_), Some(pod)) if pod.node.is_some() => (Phase::Scheduled, "Scheduled", "the pod starts"),
        (Ok(_), Some(_)) => (Phase::Scheduling, "Scheduling", "the pod waits for a node"),
    };
    let is_ready = phase == Phase::Running;
    status.phase = Some(phase);
    status.pod_name = current.map(|pod| pod.name.clone());
    status.node_name = current.and_then(|pod| pod.node.clone());
    if let Ok(wanted) = &vm.wanted {
        // A pod keeps the size that it was made with.
        if current.is_some_and(|pod| pod.has_size_of(wanted)) {
            status.allocated_cpu = Some(wanted.cpu.clone());
            status.allocated_memory = Some(wanted.memory.clone());
        }
        status.cpu_utilization = Some(wanted.cpu_utilization.clone());
        status.memory_utilization = Some(wanted.memory_utilization.clone());
    }
    if status.created_at.is_none() {
        status.created_at = current.and_then(|pod| pod.created).map(Time);
    }
    if outcome.is_some() {
        status.evacuation_node_name = None;
    }

    let known = [READY, EVICTION_REQUESTED, MIGRATED];
    status.conditions.retain(|condition| known.contains(&&*condition.type_));
    let mut set = |kind: &str, is: bool, reason: &str, message: &str| {
        set_condition(&mut status.conditions, vm.generation, kind, is, reason, message, now);
    };
    set(READY, is_ready, reason, &message.chars().take(512).collect::<String>());
    match outcome {
        Some(Outcome::Succeeded { from, to }) => set(MIGRATED, true, "Succeeded", &format!("from {from} to {to}")),
        Some(Outcome::Failed(failure)) => set(MIGRATED, false, failure.reason(), failure.message()),
        Some(Outcome::NotNeeded) | None => {}
    }
    match &status.evacuation_node_name {
        // Who marked the VM has told the cause. A mark by hand comes without one.
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
        // Whole seconds: that is what the server keeps.
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
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
