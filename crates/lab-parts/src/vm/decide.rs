//! What to do next about one VM.
//!
//! One action at a time: its answer changes what is known, and then the question is asked again. So every state that
//! a crash can leave behind is a state that is decided about like any other.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    Launcher, Machine, Progress, Settings,
    status::{Failure, Outcome, status},
};
use crate::launcher;

/// What is known about one VM.
#[allow(missing_debug_implementations, reason = "it holds a function")]
pub struct Scene<'a> {
    /// None if there is no such VM.
    pub vm: Option<&'a Machine>,
    /// The pods that play it, or say so.
    pub pods: Vec<&'a Launcher>,
    pub progress: Progress,
    /// Whether the limits leave room for a migration from its node.
    pub may_migrate: bool,
    /// Whether a node is known to be gone.
    pub is_gone: &'a dyn Fn(&str) -> bool,
    pub now: Timestamp,
    pub settings: &'a Settings,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Make a pod; for a migration, away from a node and with the name of the pod that it takes over from.
    Create { away: Option<(String, String)> },
    /// Take our finalizer off a pod and delete it.
    Remove { pod: String, uid: String },
    /// Set or remove annotations of a pod.
    Annotate { pod: String, annotations: BTreeMap<String, Option<String>> },
    /// Write the status.
    Report(Box<api::VirtualMachineStatus>),
    /// Set or remove the label that tells the VM's node.
    Label(Option<String>),
    /// Start copying memory. No request.
    Copy { from: String, to: String },
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub action: Option<Action>,
    /// When to ask again, if nothing happens before.
    pub wake: Option<Timestamp>,
    /// Ask again when another migration has ended.
    pub is_queued: bool,
}

impl From<Action> for Decision {
    fn from(action: Action) -> Decision {
        Decision { action: Some(action), ..Decision::default() }
    }
}

/// What to do next about a VM, if anything.
pub fn decide(scene: &Scene<'_>) -> Decision {
    let Some(vm) = scene.vm.filter(|vm| !vm.is_deleted) else {
        return remove_first(scene.pods.iter().copied()).map(Into::into).unwrap_or_default();
    };
    let is_own = |pod: &&Launcher| pod.owner.as_ref().is_none_or(|owner| *owner == vm.uid);
    let (own, strangers): (Vec<&Launcher>, Vec<&Launcher>) = scene.pods.iter().copied().partition(is_own);
    if let Some(action) = remove_first(strangers) {
        return action.into();
    }
    let is_alive = |pod: &Launcher| {
        !pod.is_deleted && !pod.is_finished && !pod.node.as_deref().is_some_and(|node| (scene.is_gone)(node))
    };
    let named = vm.status.pod_name.as_deref();
    let current = match named {
        Some(named) => own.iter().copied().find(|pod| pod.name == named && is_alive(pod)),
        None => heir(&own, &is_alive),
    };
    let mark = vm.status.evacuation_node_name.as_deref();

    let Ok(wanted) = &vm.wanted else {
        let outcome = mark.map(|_| Outcome::Failed(Failure::InvalidSpec));
        let kept = current.or_else(|| own.iter().copied().find(|pod| is_alive(pod)));
        return report(scene, vm, kept, outcome).map(Into::into).unwrap_or_default();
    };
    if !wanted.running {
        let outcome = mark.map(|_| Outcome::NotNeeded);
        let stop = remove_first(own).or_else(|| report(scene, vm, None, outcome)).or_else(|| label(vm, None));
        return stop.map(Into::into).unwrap_or_default();
    }

    if let (Some(source), Some(mark)) = (current, mark)
        && source.node.as_deref() == Some(mark)
    {
        return migrate(scene, vm, &own, source, mark, &is_alive);
    }
    if mark.is_some() {
        // The source is lost, or was elsewhere all the time.
        let heir = current.or_else(|| heir(&own, &is_alive));
        let outcome = if current.is_some() { Outcome::NotNeeded } else { Outcome::Failed(Failure::SourceLost) };
        return report(scene, vm, heir, Some(outcome)).map(Into::into).unwrap_or_default();
    }
    let Some(current) = current.or_else(|| heir(&own, &is_alive)) else {
        let action = remove_first(own).or_else(|| report(scene, vm, None, None));
        return action.unwrap_or(Action::Create { away: None }).into();
    };
    // The status first: it says which pod counts, and the others go only then.
    let action = report(scene, vm, Some(current), None)
        .or_else(|| remove_first(own.iter().copied().filter(|pod| pod.name != current.name)))
        .or_else(|| annotate(vm, current, false))
        .or_else(|| label(vm, current.node.as_deref()));
    action.map(Into::into).unwrap_or_default()
}

fn migrate(
    scene: &Scene<'_>,
    vm: &Machine,
    own: &[&Launcher],
    source: &Launcher,
    mark: &str,
    is_alive: &impl Fn(&Launcher) -> bool,
) -> Decision {
    let of_this = |pod: &Launcher| pod.source() == Some(&*source.name);
    let others = || own.iter().copied().filter(|pod| pod.name != source.name);
    let target = others().filter(|pod| of_this(pod)).min_by_key(|pod| (!is_alive(pod), pod.created, &pod.name));
    let surplus = others().filter(|pod| target.is_none_or(|target| target.name != pod.name));
    let first = remove_first(surplus)
        .or_else(|| annotate(vm, source, true))
        .or_else(|| report(scene, vm, Some(source), None))
        .or_else(|| label(vm, source.node.as_deref()));
    if let Some(action) = first {
        return action.into();
    }
    let give_up = |failure| {
        let action = report(scene, vm, Some(source), Some(Outcome::Failed(failure)));
        action.map(Decision::from).unwrap_or_default()
    };
    let Some(target) = target else {
        return match scene.may_migrate {
            _ if scene.progress == Progress::Lost => give_up(Failure::TargetLost),
            true => Action::Create { away: Some((mark.to_owned(), source.name.clone())) }.into(),
            false => Decision { is_queued: true, ..Decision::default() },
        };
    };
    if !is_alive(target) || target.node.as_deref() == Some(mark) {
        return give_up(Failure::TargetLost);
    }
    let Some(node) = target.node.as_deref().filter(|_| target.is_running) else {
        let limit = SignedDuration::try_from(scene.settings.start_timeout()).unwrap_or(SignedDuration::MAX);
        let deadline = target.created.unwrap_or(scene.now).saturating_add(limit).unwrap_or(Timestamp::MAX);
        if deadline > scene.now {
            return Decision { wake: Some(deadline), ..Decision::default() };
        }
        let is_placed = target.node.is_some();
        return give_up(if is_placed { Failure::TargetNotStarted } else { Failure::TargetUnschedulable });
    };
    match scene.progress {
        Progress::NotStarted => Action::Copy { from: mark.to_owned(), to: node.to_owned() }.into(),
        Progress::Copying => annotate(vm, target, false).map(Into::into).unwrap_or_default(),
        Progress::Copied => {
            let outcome = Outcome::Succeeded { from: mark.to_owned(), to: node.to_owned() };
            report(scene, vm, Some(target), Some(outcome)).map(Into::into).unwrap_or_default()
        }
        Progress::GivenUp => give_up(Failure::NotConverging),
        Progress::Lost => give_up(Failure::TargetLost),
    }
}

/// Who takes over from a pod that is lost: one that runs rather than one that does not, and the oldest of those.
fn heir<'a>(own: &[&'a Launcher], is_alive: &impl Fn(&Launcher) -> bool) -> Option<&'a Launcher> {
    let alive = own.iter().copied().filter(|pod| is_alive(pod));
    alive.min_by_key(|pod| (!pod.is_running, pod.created, pod.name.clone()))
}

fn remove_first<'a>(pods: impl IntoIterator<Item = &'a Launcher>) -> Option<Action> {
    let pod = pods.into_iter().find(|pod| pod.is_removable())?;
    Some(Action::Remove { pod: pod.name.clone(), uid: pod.uid.clone() })
}

fn report(scene: &Scene<'_>, vm: &Machine, current: Option<&Launcher>, outcome: Option<Outcome>) -> Option<Action> {
    let status = status(vm, current, outcome.as_ref(), scene.now);
    (status != vm.status || vm.unreadable.is_some()).then(|| Action::Report(Box::new(status)))
}

fn label(vm: &Machine, node: Option<&str>) -> Option<Action> {
    (vm.label.as_deref() != node).then(|| Action::Label(node.map(str::to_owned)))
}

fn annotate(vm: &Machine, pod: &Launcher, is_leaving: bool) -> Option<Action> {
    let wanted = vm.wanted.as_ref().ok()?;
    let shall = [
        (launcher::CPU_UTILIZATION, Some(wanted.cpu_utilization.as_str())),
        (launcher::MEMORY_UTILIZATION, Some(wanted.memory_utilization.as_str())),
        (launcher::EVICTION_IN_PROGRESS, is_leaving.then_some("true")),
    ];
    let differs = |(name, value): &(&str, Option<&str>)| pod.annotations.get(*name).map(String::as_str) != *value;
    let annotations: BTreeMap<_, _> =
        shall.into_iter().filter(differs).map(|(name, value)| (name.to_owned(), value.map(str::to_owned))).collect();
    (!annotations.is_empty()).then(|| Action::Annotate { pod: pod.name.clone(), annotations })
}
