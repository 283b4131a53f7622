//! The mark that tells the VM controller to move a VM, and what tells people why.

use api::VirtualMachine;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;

use super::{Deed, Request};
pub use crate::launcher::EVICTION_REQUESTED;
use crate::vm::Machine;

/// Annotation of a VM, as KubeVirt writes it: `descheduler` if that asked for the VM's last migration.
pub const EVICTION_SOURCE: &str = "kubevirt.io/eviction-source";

const DESCHEDULER: (&str, &str) = ("sigs.k8s.io/descheduler", "descheduler");
const LONGEST_MESSAGE: usize = 1024;
pub(super) const FIELD_MANAGER: &str = "eviction-webhook";

/// What to write on which VM.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    pub namespace: String,
    pub vm: String,
    /// The VM and its version that this was decided on.
    pub uid: String,
    pub version: u64,
    /// The node to leave.
    pub node: String,
    /// All conditions of the VM, the one that tells the cause among them.
    pub conditions: Vec<Condition>,
    /// What the annotation shall be, if it is not.
    pub source: Option<Option<&'static str>>,
}

/// Why a mark was not written.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// The VM has changed, or is gone.
    Outdated(String),
    Refused(String),
}

impl Mark {
    /// `source` is what the VM's annotation is now.
    pub(super) fn new(request: &Request, vm: &Machine, source: Option<&str>, node: &str, now: Timestamp) -> Mark {
        let is_by_descheduler = request.requested_by.as_deref() == Some(DESCHEDULER.0);
        let shall = is_by_descheduler.then_some(DESCHEDULER.1);
        let mut conditions = vm.status.conditions.clone();
        conditions.retain(|condition| condition.type_ != EVICTION_REQUESTED);
        conditions.push(cause(request, is_by_descheduler, vm, now));
        Mark {
            namespace: vm.namespace.clone(),
            vm: vm.name.clone(),
            uid: vm.uid.clone(),
            version: vm.version,
            node: node.to_owned(),
            conditions,
            source: (source != shall).then_some(shall),
        }
    }

    /// Writes the annotation if need be, then the mark. Both only on the VM as it was when this was decided.
    pub(super) async fn write(&self, client: Client) -> Result<(), NotWritten> {
        let resource = ApiResource::erase::<VirtualMachine>(&());
        let vms: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
        let mut version = Some(self.version.to_string());
        if let Some(source) = self.source {
            let annotations = json!({EVICTION_SOURCE: source});
            let note = json!({"metadata": {"uid": self.uid, "resourceVersion": version, "annotations": annotations}});
            version = vms.patch(&self.vm, &params, &Patch::Merge(note)).await?.resource_version();
        }
        let mark = json!({
            "metadata": {"uid": self.uid, "resourceVersion": version},
            "status": {"evacuationNodeName": self.node, "conditions": self.conditions},
        });
        vms.patch_status(&self.vm, &params, &Patch::Merge(mark)).await?;
        Ok(())
    }
}

/// Who asked, how, and why.
fn cause(request: &Request, is_by_descheduler: bool, vm: &Machine, now: Timestamp) -> Condition {
    let (reason, deed) = match request.deed {
        _ if is_by_descheduler => ("Descheduler", "eviction"),
        Deed::Deletion => ("Deletion", "deletion"),
        Deed::Eviction | Deed::Other => ("Eviction", "eviction"),
    };
    let on_behalf = request.requested_by.as_ref().map(|name| format!(" for {name}")).unwrap_or_default();
    let why = request.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("{deed} of pod {} by {}{on_behalf}{why}", request.pod, request.user);
    Condition {
        type_: EVICTION_REQUESTED.to_owned(),
        status: "True".to_owned(),
        reason: reason.to_owned(),
        message: message.chars().take(LONGEST_MESSAGE).collect(),
        // Whole seconds: that is what the server keeps.
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        observed_generation: vm.generation,
    }
}

impl From<kube::Error> for NotWritten {
    fn from(error: kube::Error) -> NotWritten {
        match &error {
            kube::Error::Api(status) if matches!(status.code, 404 | 409) => NotWritten::Outdated(error.to_string()),
            _ => NotWritten::Refused(error.to_string()),
        }
    }
}
