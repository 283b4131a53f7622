//! The eviction request as it is recorded on a VM: the node to leave, for the VM controller, and the cause, for people.

use api::VirtualMachine;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use kube_io::Class;
use serde_json::json;

use super::{AdmissionRequest, Operation};
pub use crate::launcher::EVICTION_REQUESTED;
use crate::vm::Vm;

/// Annotation of a VM, as KubeVirt writes it: `descheduler` if the descheduler requested the last migration.
pub const EVICTION_SOURCE: &str = "kubevirt.io/eviction-source";

const FROM_DESCHEDULER: &str = "descheduler";
const LONGEST_MESSAGE: usize = 1024;
pub(super) const FIELD_MANAGER: &str = "eviction-webhook";

#[derive(Debug, Clone, PartialEq)]
pub struct EvictionRequest {
    pub namespace: String,
    pub vm: String,
    /// The VM and its version that this was decided on.
    pub uid: String,
    pub version: String,
    /// The node to leave.
    pub node: String,
    /// All conditions of the VM, with the one that has the cause.
    pub conditions: Vec<Condition>,
    /// The new value of the annotation, if it changes.
    pub source: Option<Option<&'static str>>,
}

#[derive(Debug)]
pub(super) enum WriteError {
    /// The VM has changed, or is gone.
    Conflict(String),
    Failed(String),
}

impl EvictionRequest {
    /// `source` is the current value of the VM's annotation.
    pub(super) fn new(request: &AdmissionRequest, vm: &Vm, source: Option<&str>, node: &str, now: Timestamp) -> Self {
        let is_by_descheduler = request.is_by_descheduler();
        let wanted = is_by_descheduler.then_some(FROM_DESCHEDULER);
        let mut conditions = vm.status.conditions.clone();
        conditions.retain(|condition| condition.type_ != EVICTION_REQUESTED);
        conditions.push(cause(request, is_by_descheduler, vm, now));
        EvictionRequest {
            namespace: vm.namespace.clone(),
            vm: vm.name.clone(),
            uid: vm.uid.clone(),
            version: vm.version.clone(),
            node: node.to_owned(),
            conditions,
            source: (source != wanted).then_some(wanted),
        }
    }

    /// Writes the annotation if it changes, then the status. Both only on the version that this was decided on.
    pub(super) async fn write(&self, client: Client) -> Result<(), WriteError> {
        let resource = ApiResource::erase::<VirtualMachine>(&());
        let vms: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let mut version = Some(self.version.clone());
        if let Some(source) = self.source {
            let annotations = json!({EVICTION_SOURCE: source});
            let patch = json!({"metadata": {"uid": self.uid, "resourceVersion": version, "annotations": annotations}});
            version = vms.patch(&self.vm, &params, &Patch::Merge(patch)).await?.resource_version();
        }
        let patch = json!({
            "metadata": {"uid": self.uid, "resourceVersion": version},
            "status": {"evacuationNodeName": self.node, "conditions": self.conditions},
        });
        vms.patch_status(&self.vm, &params, &Patch::Merge(patch)).await?;
        Ok(())
    }
}

/// Who requested the eviction, how, and why.
fn cause(request: &AdmissionRequest, is_by_descheduler: bool, vm: &Vm, now: Timestamp) -> Condition {
    let (reason, operation) = match request.operation {
        _ if is_by_descheduler => ("Descheduler", "eviction"),
        Operation::Deletion => ("Deletion", "deletion"),
        Operation::Eviction | Operation::Other => ("Eviction", "eviction"),
    };
    let on_behalf = request.requested_by.as_ref().map(|name| format!(" for {name}")).unwrap_or_default();
    let why = request.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("{operation} of pod {} by {}{on_behalf}{why}", request.pod, request.user);
    Condition {
        type_: EVICTION_REQUESTED.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.chars().take(LONGEST_MESSAGE).collect(),
        // The API server stores whole seconds.
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        observed_generation: vm.generation,
    }
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> WriteError {
        match Class::of(&error) {
            class if class == Class::Conflict || class.is_absent() => WriteError::Conflict(error.to_string()),
            _ => WriteError::Failed(error.to_string()),
        }
    }
}
