//! The response to an admission request: it is allowed, because no VM is lost by it; it is denied; or it is denied and the VM migrates
//! instead. The messages are KubeVirt's. The descheduler counts a denial as an eviction that runs if its message contains `Eviction
//! triggered evacuation`, so no other message may contain it.

use balance::CoolDown;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::{AdmissionRequest, EvictionRequest, Operation, migration_aware};
use crate::{
    launcher,
    vm::{LauncherPod, Vm},
};

const PLUGIN: &str = "KubevirtMigrationAware";

/// What is known about an admission request. An error says why something could not be read.
#[derive(Debug, Clone)]
pub struct Input<'a> {
    pub request: &'a AdmissionRequest,
    pub pod: Result<Option<&'a Pod>, &'a str>,
    /// The VM that the pod runs.
    pub vm: Result<Option<&'a Vm>, &'a str>,
    /// The value of the VM's annotation [`EVICTION_SOURCE`](super::EVICTION_SOURCE).
    pub source: Option<&'a str>,
    /// Whether the namespace is being deleted.
    pub is_namespace_ending: Result<bool, &'a str>,
    /// Users whose deletions are allowed.
    pub exempt_users: &'a [String],
    /// The settings of the plugin `KubevirtMigrationAware` in milliseconds of the clock, if it is on.
    pub cool_down: Option<CoolDown>,
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Record this on the VM, then deny the request with [`Denial::Triggered`].
    Send(EvictionRequest),
    Done(Outcome),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Allowed(AllowReason),
    Denied(Denial),
}

/// Why a request is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowReason {
    /// It is neither an eviction nor a deletion of a pod.
    NotConcerned,
    /// The VM controller or a garbage collector deletes.
    ExemptUser,
    NoSuchPod,
    /// The pod runs no VM.
    NotLauncher,
    /// The pod has finished by itself.
    Finished,
    /// The pod is being deleted already.
    BeingDeleted,
    /// The VM controller has removed its finalizer.
    Unprotected,
    /// The whole namespace is being deleted.
    NamespaceEnding,
    /// The VM does not exist or is being deleted.
    VmGone,
    /// The VM is not to run.
    VmStopped,
    /// The pod has no node, so there is nothing to migrate.
    Unscheduled,
    /// The VM runs as another pod.
    Surplus,
}

/// Why a request is denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The VM migrates because of this request.
    Triggered {
        namespace: String,
        vm: String,
    },
    /// The VM migrates because of an earlier request.
    InProgress {
        namespace: String,
        vm: String,
    },
    /// By `KubevirtMigrationAware`: the VM migrates, and the descheduler is to choose another one.
    Migrating {
        namespace: String,
        vm: String,
    },
    /// By `KubevirtMigrationAware`: the VM has migrated a short time ago.
    CoolingDown {
        namespace: String,
        vm: String,
        seconds: u64,
    },
    /// The pod is the target of a migration.
    MigrationTarget,
    NotMigratable {
        vm: String,
        problem: String,
    },
    /// The status of the VM does not name its pod yet.
    Starting {
        namespace: String,
        vm: String,
    },
    PodUnknown(String),
    VmUnknown(String),
    NamespaceUnknown(String),
    /// The eviction request could not be recorded on the VM.
    NotRecorded(String),
}

impl Denial {
    pub fn message(&self) -> String {
        let triggered = |namespace, vm| format!("Eviction triggered evacuation of VMI \"{namespace}/{vm}\"");
        match self {
            Denial::Triggered { namespace, vm } => triggered(namespace, vm),
            Denial::InProgress { namespace, vm } => format!("Evacuation in progress: {}", triggered(namespace, vm)),
            Denial::Migrating { namespace, vm } => {
                format!("{PLUGIN}: VMI \"{namespace}/{vm}\" migrates and is not evicted meanwhile")
            }
            Denial::CoolingDown { namespace, vm, seconds } => {
                format!("{PLUGIN}: VMI \"{namespace}/{vm}\" has migrated and is not evicted for another {seconds} s")
            }
            Denial::MigrationTarget => "Eviction request for target Pod".into(),
            Denial::NotMigratable { vm, problem } => {
                format!("VMI {vm} is configured with an eviction strategy but is not live-migratable: {problem}")
            }
            Denial::Starting { namespace, vm } => {
                format!("VMI \"{namespace}/{vm}\" does not tell yet which pod it runs as; try again later")
            }
            Denial::PodUnknown(problem) => format!("kubevirt failed getting the pod: {problem}"),
            Denial::VmUnknown(problem) => format!("kubevirt failed getting the vmi: {problem}"),
            Denial::NamespaceUnknown(problem) => format!("kubevirt failed getting the namespace: {problem}"),
            Denial::NotRecorded(problem) => format!("kubevirt failed marking the vmi for eviction: {problem}"),
        }
    }
}

/// The name of the VM that a pod runs, if it runs one.
pub(super) fn vm_of(pod: &Pod) -> Option<&str> {
    let labels = pod.labels();
    let is_launcher = labels.get(launcher::APP.0).is_some_and(|app| app == launcher::APP.1);
    let name = labels.get(launcher::DOMAIN).filter(|_| is_launcher)?;
    (!name.is_empty()).then_some(name)
}

fn allow(reason: AllowReason) -> Step {
    Step::Done(Outcome::Allowed(reason))
}

fn deny(denial: Denial) -> Step {
    Step::Done(Outcome::Denied(denial))
}

pub fn decide(input: &Input<'_>) -> Step {
    let request = input.request;
    match request.operation {
        Operation::Other => return allow(AllowReason::NotConcerned),
        Operation::Deletion if input.exempt_users.contains(&request.user) => return allow(AllowReason::ExemptUser),
        Operation::Deletion | Operation::Eviction => {}
    }
    let pod = match input.pod {
        Err(problem) => return deny(Denial::PodUnknown(problem.to_owned())),
        Ok(None) => return allow(AllowReason::NoSuchPod),
        Ok(Some(pod)) => pod,
    };
    if vm_of(pod).is_none() {
        return allow(AllowReason::NotLauncher);
    }
    let pod = LauncherPod::of(pod);
    let reasons = [
        (pod.is_finished, AllowReason::Finished),
        (pod.is_deleted, AllowReason::BeingDeleted),
        (!pod.is_protected, AllowReason::Unprotected),
    ];
    if let Some((_, reason)) = reasons.into_iter().find(|(is, _)| *is) {
        return allow(reason);
    }
    match (input.is_namespace_ending, input.vm) {
        (Ok(true), _) => allow(AllowReason::NamespaceEnding),
        (_, Err(problem)) => deny(Denial::VmUnknown(problem.to_owned())),
        (Err(problem), _) => deny(Denial::NamespaceUnknown(problem.to_owned())),
        (_, Ok(Some(vm))) if !vm.is_deleted && pod.owner.as_ref().is_none_or(|owner| *owner == vm.uid) => {
            decide_about_vm(input, &pod, vm)
        }
        (_, Ok(_)) => allow(AllowReason::VmGone),
    }
}

fn decide_about_vm(input: &Input<'_>, pod: &LauncherPod, vm: &Vm) -> Step {
    if let Some(denial) = migration_aware::filter(input, vm) {
        return deny(denial);
    }
    let (namespace, name) = (vm.namespace.clone(), vm.name.clone());
    match &vm.spec {
        Ok(spec) if !spec.running => return allow(AllowReason::VmStopped),
        Ok(_) => {}
        Err(problem) => return deny(Denial::NotMigratable { vm: name, problem: problem.clone() }),
    }
    let named = vm.status.pod_name.as_deref();
    if let Some(named) = named.filter(|named| *named != pod.name) {
        // KubeVirt checks first whether an eviction is requested. For a target that is always true, and the descheduler
        // would count the target as leaving for ten minutes.
        let is_target = pod.annotations.get(launcher::SOURCE).is_some_and(|source| source == named);
        return if is_target { deny(Denial::MigrationTarget) } else { allow(AllowReason::Surplus) };
    }
    let Some(node) = &pod.node else {
        return allow(AllowReason::Unscheduled);
    };
    if named.is_none() {
        return deny(Denial::Starting { namespace, vm: name });
    }
    if vm.status.evacuation_node_name.as_ref() == Some(node) {
        return deny(Denial::InProgress { namespace, vm: name });
    }
    match input.request.is_dry_run {
        true => deny(Denial::Triggered { namespace, vm: name }),
        false => Step::Send(EvictionRequest::new(input.request, vm, input.source, node, input.now)),
    }
}
