//! The request of an AdmissionReview, as far as the decision depends on it.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::Value;

const DESCHEDULER: &str = "sigs.k8s.io/descheduler";

/// What a user asks to do to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Eviction,
    Deletion,
    /// Nothing that concerns VMs.
    Other,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "RawRequest")]
pub struct AdmissionRequest {
    pub operation: Operation,
    pub namespace: String,
    pub pod: String,
    pub is_dry_run: bool,
    pub user: String,
    /// On whose behalf, and why: optional annotations of an Eviction.
    pub requested_by: Option<String>,
    pub reason: Option<String>,
    /// The pod of a deletion. The request of an eviction does not contain it.
    pub deleted_pod: Option<Box<Pod>>,
}

impl AdmissionRequest {
    /// Whether the descheduler evicts. It says so in each Eviction.
    pub fn is_by_descheduler(&self) -> bool {
        self.operation == Operation::Eviction && self.requested_by.as_deref() == Some(DESCHEDULER)
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct RawRequest {
    operation: String,
    resource: Resource,
    sub_resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_info: User,
    object: Value,
    old_object: Value,
    dry_run: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    group: String,
    resource: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: Option<String>,
}

impl From<RawRequest> for AdmissionRequest {
    fn from(raw: RawRequest) -> AdmissionRequest {
        let is_pod = raw.resource.group.is_empty() && raw.resource.resource == "pods";
        let operation = match (&*raw.operation, raw.sub_resource.as_deref().unwrap_or_default()) {
            ("CREATE", "eviction") if is_pod => Operation::Eviction,
            ("DELETE", "") if is_pod => Operation::Deletion,
            _ => Operation::Other,
        };
        let deleted_pod: Option<Box<Pod>> = match operation {
            Operation::Deletion => serde_json::from_value(raw.old_object).ok().flatten(),
            Operation::Eviction | Operation::Other => None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.is_empty());
        // A request to delete a collection has no name.
        let named = raw.name.filter(|name| !name.is_empty());
        let pod = named
            .or_else(|| text(&raw.object["metadata"]["name"]))
            .or_else(|| deleted_pod.as_deref().map(ResourceExt::name_any));
        // An Eviction has options of its own.
        let options = &raw.object["deleteOptions"]["dryRun"];
        let is_dry_run = raw.dry_run == Some(true)
            || (operation == Operation::Eviction && options.as_array().is_some_and(|all| !all.is_empty()));
        let annotations = &raw.object["metadata"]["annotations"];
        AdmissionRequest {
            operation,
            namespace: raw.namespace.unwrap_or_default(),
            pod: pod.unwrap_or_default(),
            is_dry_run,
            user: raw.user_info.username.unwrap_or_default(),
            requested_by: text(&annotations["requested-by"]),
            reason: text(&annotations["reason"]),
            deleted_pod,
        }
    }
}
