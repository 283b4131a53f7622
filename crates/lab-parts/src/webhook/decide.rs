//! What to answer.
//!
//! Three kinds of answers: the request passes, because nothing is lost by it; it is refused; or it is refused and the VM
//! moves instead. Messages are KubeVirt's. The descheduler counts a refusal as an eviction under way if it contains
//! `Eviction triggered evacuation`, so nothing else may.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{Deed, Mark, Request};
use crate::{
    launcher,
    vm::{Launcher, Machine},
};

/// The HTTP code of every refusal: whoever gets it tries again later.
pub(super) const CODE: u16 = 429;

/// What is known about a request.
#[derive(Debug, Clone)]
pub struct Scene<'a> {
    pub request: &'a Request,
    /// The pod, unless there is none, or why that cannot be told.
    pub pod: Result<Option<&'a Pod>, &'a str>,
    /// The same about the VM that the pod plays.
    pub vm: Result<Option<&'a Machine>, &'a str>,
    /// What that VM's annotation says of who asked for its last migration.
    pub source: Option<&'a str>,
    /// Whether the namespace is being deleted.
    pub is_namespace_ending: Result<bool, &'a str>,
    /// Users whose deletions pass.
    pub passes: &'a [String],
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    Pass(Pass),
    Refuse(Refusal),
    /// Mark the VM, then refuse.
    Evacuate(Mark),
}

/// Why a request passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// It is neither an eviction nor a deletion of a pod.
    NotConcerned,
    /// The VM controller deletes, or somebody who collects what is left over.
    Authorized,
    NoSuchPod,
    NoLauncher,
    /// The pod has ended by itself.
    Finished,
    /// It is being deleted already.
    Leaving,
    /// The VM controller has let it go.
    LetGo,
    /// The whole namespace is being deleted.
    NamespaceEnds,
    /// The VM is gone, or going.
    VmGone,
    /// The VM shall not run.
    VmStopped,
    /// The pod has no node, so that there is nothing to move.
    Unscheduled,
    /// The VM runs as another pod, and this one is left over.
    Surplus,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The VM moves because of this request.
    Triggered {
        namespace: String,
        vm: String,
    },
    /// The VM moves because of an earlier one.
    InProgress {
        namespace: String,
        vm: String,
    },
    /// The pod is where the VM is moving to.
    Target,
    /// The VM cannot be moved.
    Unmovable {
        vm: String,
        problem: String,
    },
    /// The VM does not tell yet which pod it runs as.
    Starting {
        namespace: String,
        vm: String,
    },
    PodUnknown(String),
    VmUnknown(String),
    NamespaceUnknown(String),
    NotMarked(String),
}

impl Refusal {
    pub fn message(&self) -> String {
        let triggered = |namespace, vm| format!("Eviction triggered evacuation of VMI \"{namespace}/{vm}\"");
        match self {
            Refusal::Triggered { namespace, vm } => triggered(namespace, vm),
            Refusal::InProgress { namespace, vm } => format!("Evacuation in progress: {}", triggered(namespace, vm)),
            Refusal::Target => "Eviction request for target Pod".into(),
            Refusal::Unmovable { vm, problem } => {
                format!("VMI {vm} is configured with an eviction strategy but is not live-migratable: {problem}")
            }
            Refusal::Starting { namespace, vm } => {
                format!("VMI \"{namespace}/{vm}\" does not tell yet which pod it runs as; try again later")
            }
            Refusal::PodUnknown(problem) => format!("kubevirt failed getting the pod: {problem}"),
            Refusal::VmUnknown(problem) => format!("kubevirt failed getting the vmi: {problem}"),
            Refusal::NamespaceUnknown(problem) => format!("kubevirt failed getting the namespace: {problem}"),
            Refusal::NotMarked(problem) => format!("kubevirt failed marking the vmi for eviction: {problem}"),
        }
    }
}

/// The name of the VM that a pod plays, if it plays one.
pub(super) fn vm_of(pod: &Pod) -> Option<&str> {
    let labels = pod.labels();
    let is_launcher = labels.get(launcher::APP.0).is_some_and(|app| app == launcher::APP.1);
    let name = labels.get(launcher::DOMAIN).filter(|_| is_launcher)?;
    (!name.is_empty()).then_some(name)
}

/// What to answer, and what to do before that.
pub fn decide(scene: &Scene<'_>) -> Verdict {
    let request = scene.request;
    match request.deed {
        Deed::Other => return Verdict::Pass(Pass::NotConcerned),
        Deed::Deletion if scene.passes.contains(&request.user) => return Verdict::Pass(Pass::Authorized),
        Deed::Deletion | Deed::Eviction => {}
    }
    let pod = match scene.pod {
        Err(problem) => return Verdict::Refuse(Refusal::PodUnknown(problem.to_owned())),
        Ok(None) => return Verdict::Pass(Pass::NoSuchPod),
        Ok(Some(pod)) => pod,
    };
    if vm_of(pod).is_none() {
        return Verdict::Pass(Pass::NoLauncher);
    }
    let pod = Launcher::of(pod);
    let by_itself =
        [(pod.is_finished, Pass::Finished), (pod.is_deleted, Pass::Leaving), (!pod.is_protected, Pass::LetGo)];
    if let Some((_, pass)) = by_itself.into_iter().find(|(is, _)| *is) {
        return Verdict::Pass(pass);
    }
    match (scene.is_namespace_ending, scene.vm) {
        (Ok(true), _) => Verdict::Pass(Pass::NamespaceEnds),
        (_, Err(problem)) => Verdict::Refuse(Refusal::VmUnknown(problem.to_owned())),
        (Err(problem), _) => Verdict::Refuse(Refusal::NamespaceUnknown(problem.to_owned())),
        (_, Ok(Some(vm))) if !vm.is_deleted && pod.owner.as_ref().is_none_or(|owner| *owner == vm.uid) => {
            about(scene, &pod, vm)
        }
        (_, Ok(_)) => Verdict::Pass(Pass::VmGone),
    }
}

/// What to answer about a pod of a VM that is there.
fn about(scene: &Scene<'_>, pod: &Launcher, vm: &Machine) -> Verdict {
    let (namespace, name) = (vm.namespace.clone(), vm.name.clone());
    match &vm.wanted {
        Ok(wanted) if !wanted.running => return Verdict::Pass(Pass::VmStopped),
        Ok(_) => {}
        Err(problem) => return Verdict::Refuse(Refusal::Unmovable { vm: name, problem: problem.clone() }),
    }
    let named = vm.status.pod_name.as_deref();
    if let Some(named) = named.filter(|named| *named != pod.name) {
        // KubeVirt asks first whether the VM is marked. But a target is the target of a VM that is, and the descheduler
        // would count it as leaving for ten minutes, which it is not.
        let is_target = pod.annotations.get(launcher::SOURCE).is_some_and(|source| source == named);
        return if is_target { Verdict::Refuse(Refusal::Target) } else { Verdict::Pass(Pass::Surplus) };
    }
    let Some(node) = &pod.node else {
        return Verdict::Pass(Pass::Unscheduled);
    };
    if named.is_none() {
        return Verdict::Refuse(Refusal::Starting { namespace, vm: name });
    }
    if vm.status.evacuation_node_name.as_ref() == Some(node) {
        return Verdict::Refuse(Refusal::InProgress { namespace, vm: name });
    }
    match scene.request.is_dry_run {
        true => Verdict::Refuse(Refusal::Triggered { namespace, vm: name }),
        false => Verdict::Evacuate(Mark::new(scene.request, vm, scene.source, node, scene.now)),
    }
}
