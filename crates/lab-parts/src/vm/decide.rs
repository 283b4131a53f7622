//! The next step for one VM.
//! One request at a time: its response changes what is known, and then the next step is decided anew. So a state that a
//! crash leaves behind needs no special treatment.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    CopyProgress, LauncherPod, Vm, VmControllerSettings,
    status::{MigrationFailure, MigrationOutcome, status},
};
use crate::launcher;

/// What is known about one VM.
#[allow(missing_debug_implementations, reason = "it holds a function")]
pub struct Input<'a> {
    /// None if the VM does not exist.
    pub vm: Option<&'a Vm>,
    /// The pods whose label names the VM.
    pub pods: Vec<&'a LauncherPod>,
    pub progress: CopyProgress,
    /// Whether the limits allow a migration away from its node.
    pub may_migrate: bool,
    /// Whether a node is known to be gone.
    pub is_gone: &'a dyn Fn(&str) -> bool,
    pub now: Timestamp,
    pub settings: &'a VmControllerSettings,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Send(Request),
    /// Start copying memory from node to node. This needs no request.
    StartCopy {
        from: String,
        to: String,
    },
    /// Nothing to do now.
    Done(Outcome),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Create a pod; for a migration, the target of it.
    CreatePod {
        source: Option<MigrationSource>,
    },
    /// Remove our finalizer from a pod and delete it.
    RemovePod {
        pod: String,
        uid: String,
    },
    /// Set or remove annotations of a pod.
    AnnotatePod {
        pod: String,
        annotations: BTreeMap<String, Option<String>>,
    },
    WriteStatus(Box<api::VirtualMachineStatus>),
    /// Set or remove the label with the VM's node.
    LabelVm(Option<String>),
}

/// The pod that a VM migrates away from, and its node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationSource {
    pub node: String,
    pub pod: String,
}

/// When to decide again. Without a condition: when something about the VM changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    pub until: Option<Timestamp>,
    /// Decide again when another migration has ended.
    pub for_migration_slot: bool,
}

impl From<Option<Request>> for Step {
    fn from(request: Option<Request>) -> Step {
        request.map_or(Step::Done(Outcome::default()), Step::Send)
    }
}

impl From<Request> for Step {
    fn from(request: Request) -> Step {
        Step::Send(request)
    }
}

pub fn decide(input: &Input<'_>) -> Step {
    let Some(vm) = input.vm.filter(|vm| !vm.is_deleted) else {
        return remove_first(input.pods.iter().copied()).into();
    };
    let is_own = |pod: &&LauncherPod| pod.owner.as_ref().is_none_or(|owner| *owner == vm.uid);
    let (own, foreign): (Vec<&LauncherPod>, Vec<&LauncherPod>) = input.pods.iter().copied().partition(is_own);
    if let Some(request) = remove_first(foreign) {
        return request.into();
    }
    let is_alive = |pod: &LauncherPod| {
        !pod.is_deleted && !pod.is_finished && !pod.node.as_deref().is_some_and(|node| (input.is_gone)(node))
    };
    let current = match vm.status.pod_name.as_deref() {
        Some(named) => own.iter().copied().find(|pod| pod.name == named && is_alive(pod)),
        None => successor(&own, &is_alive),
    };
    let evacuated = vm.status.evacuation_node_name.as_deref();

    let Ok(spec) = &vm.spec else {
        let outcome = evacuated.map(|_| MigrationOutcome::Failed(MigrationFailure::InvalidSpec));
        let kept = current.or_else(|| own.iter().copied().find(|pod| is_alive(pod)));
        return write_status(input, vm, kept, outcome).into();
    };
    if !spec.running {
        let outcome = evacuated.map(|_| MigrationOutcome::NotNeeded);
        return remove_first(own).or_else(|| write_status(input, vm, None, outcome)).or_else(|| label(vm, None)).into();
    }

    if let (Some(source), Some(node)) = (current, evacuated)
        && source.node.as_deref() == Some(node)
    {
        return migrate(input, vm, &own, source, node, &is_alive);
    }
    if evacuated.is_some() {
        // The source is lost, or the VM was never on that node.
        let next = current.or_else(|| successor(&own, &is_alive));
        let outcome = match current {
            Some(_) => MigrationOutcome::NotNeeded,
            None => MigrationOutcome::Failed(MigrationFailure::SourceLost),
        };
        return write_status(input, vm, next, Some(outcome)).into();
    }
    let Some(current) = current.or_else(|| successor(&own, &is_alive)) else {
        let request = remove_first(own).or_else(|| write_status(input, vm, None, None));
        return request.unwrap_or(Request::CreatePod { source: None }).into();
    };
    // The status first: it names the pod that counts. The other pods are removed only after that.
    write_status(input, vm, Some(current), None)
        .or_else(|| remove_first(own.iter().copied().filter(|pod| pod.name != current.name)))
        .or_else(|| annotate(vm, current, false))
        .or_else(|| label(vm, current.node.as_deref()))
        .into()
}

fn migrate(
    input: &Input<'_>,
    vm: &Vm,
    own: &[&LauncherPod],
    source: &LauncherPod,
    from: &str,
    is_alive: &impl Fn(&LauncherPod) -> bool,
) -> Step {
    let is_target = |pod: &LauncherPod| pod.source() == Some(&*source.name);
    let others = || own.iter().copied().filter(|pod| pod.name != source.name);
    let target = others().filter(|pod| is_target(pod)).min_by_key(|pod| (!is_alive(pod), pod.created, &pod.name));
    let surplus = others().filter(|pod| target.is_none_or(|target| target.name != pod.name));
    let first = remove_first(surplus)
        .or_else(|| annotate(vm, source, true))
        .or_else(|| write_status(input, vm, Some(source), None))
        .or_else(|| label(vm, source.node.as_deref()));
    if let Some(request) = first {
        return request.into();
    }
    let fail = |failure| write_status(input, vm, Some(source), Some(MigrationOutcome::Failed(failure))).into();
    let Some(target) = target else {
        return match input.may_migrate {
            _ if input.progress == CopyProgress::TargetLost => fail(MigrationFailure::TargetLost),
            true => {
                let source = MigrationSource { node: from.to_owned(), pod: source.name.clone() };
                Request::CreatePod { source: Some(source) }.into()
            }
            false => Step::Done(Outcome { for_migration_slot: true, ..Outcome::default() }),
        };
    };
    if !is_alive(target) || target.node.as_deref() == Some(from) {
        return fail(MigrationFailure::TargetLost);
    }
    let Some(to) = target.node.as_deref().filter(|_| target.is_running) else {
        let limit = SignedDuration::try_from(input.settings.start_timeout()).unwrap_or(SignedDuration::MAX);
        let deadline = target.created.unwrap_or(input.now).saturating_add(limit).unwrap_or(Timestamp::MAX);
        if deadline > input.now {
            return Step::Done(Outcome { until: Some(deadline), ..Outcome::default() });
        }
        return fail(match target.node {
            Some(_) => MigrationFailure::TargetNotStarted,
            None => MigrationFailure::TargetUnschedulable,
        });
    };
    match input.progress {
        CopyProgress::NotStarted => Step::StartCopy { from: from.to_owned(), to: to.to_owned() },
        CopyProgress::Copying => annotate(vm, target, false).into(),
        CopyProgress::Copied => {
            let outcome = MigrationOutcome::Succeeded { from: from.to_owned(), to: to.to_owned() };
            write_status(input, vm, Some(target), Some(outcome)).into()
        }
        CopyProgress::NotConverging => fail(MigrationFailure::NotConverging),
        CopyProgress::TargetLost => fail(MigrationFailure::TargetLost),
    }
}

/// The pod that replaces a lost one: a running pod before one that does not run, then the oldest.
fn successor<'a>(own: &[&'a LauncherPod], is_alive: &impl Fn(&LauncherPod) -> bool) -> Option<&'a LauncherPod> {
    let alive = own.iter().copied().filter(|pod| is_alive(pod));
    alive.min_by_key(|pod| (!pod.is_running, pod.created, pod.name.clone()))
}

fn remove_first<'a>(pods: impl IntoIterator<Item = &'a LauncherPod>) -> Option<Request> {
    let pod = pods.into_iter().find(|pod| pod.is_removable())?;
    Some(Request::RemovePod { pod: pod.name.clone(), uid: pod.uid.clone() })
}

fn write_status(
    input: &Input<'_>,
    vm: &Vm,
    current: Option<&LauncherPod>,
    outcome: Option<MigrationOutcome>,
) -> Option<Request> {
    let named = vm.status.pod_name.as_deref();
    let targets = input.pods.iter().filter(|pod| named.is_some() && pod.source() == named);
    let began = targets.filter_map(|target| target.created).min();
    let status = status(vm, current, outcome.as_ref(), began, input.now);
    (status != vm.status || vm.unreadable_status.is_some()).then(|| Request::WriteStatus(Box::new(status)))
}

fn label(vm: &Vm, node: Option<&str>) -> Option<Request> {
    (vm.label.as_deref() != node).then(|| Request::LabelVm(node.map(str::to_owned)))
}

fn annotate(vm: &Vm, pod: &LauncherPod, is_leaving: bool) -> Option<Request> {
    let spec = vm.spec.as_ref().ok()?;
    let wanted = [
        (launcher::CPU_UTILIZATION, Some(spec.cpu_utilization.as_str())),
        (launcher::MEMORY_UTILIZATION, Some(spec.memory_utilization.as_str())),
        (launcher::EVICTION_IN_PROGRESS, is_leaving.then_some("true")),
    ];
    let differs = |(name, value): &(&str, Option<&str>)| pod.annotations.get(*name).map(String::as_str) != *value;
    let annotations: BTreeMap<_, _> =
        wanted.into_iter().filter(differs).map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect();
    (!annotations.is_empty()).then(|| Request::AnnotatePod { pod: pod.name.clone(), annotations })
}
