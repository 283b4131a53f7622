//! The two kinds of the machine config operator: the fields that the stand-in reads and writes.

use advisor::kind;
use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{LabelSelector, Time},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    CustomResource,
    api::{ApiResource, DynamicObject},
};
use serde::{Deserialize, Serialize};

use crate::objects::resource_of;

/// A MachineConfig. Untyped, because any part of it may be missing, even its spec.
pub type MachineConfig = DynamicObject;

/// The API resource of MachineConfigs.
pub fn machine_config_resource() -> ApiResource {
    resource_of(&kind::MACHINE_CONFIG)
}

#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "machineconfiguration.openshift.io",
    version = "v1",
    kind = "MachineConfigPool",
    plural = "machineconfigpools",
    status = "PoolStatus",
    schema = "disabled",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", default)]
pub struct MachineConfigPoolSpec {
    pub machine_config_selector: Option<LabelSelector>,
    pub node_selector: Option<LabelSelector>,
    pub paused: bool,
    pub max_unavailable: Option<IntOrString>,
    /// The config that the nodes should run.
    pub configuration: Configuration,
}

/// A rendered config and its sources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Configuration {
    pub name: String,
    pub source: Vec<Source>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Source {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

impl Source {
    pub(super) fn machine_config(name: &str) -> Self {
        let ApiResource { api_version, kind, .. } = machine_config_resource();
        Source { api_version, kind, name: name.to_owned() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    pub observed_generation: i64,
    /// The last config that all nodes ran.
    pub configuration: Configuration,
    pub machine_count: i32,
    pub updated_machine_count: i32,
    pub ready_machine_count: i32,
    pub unavailable_machine_count: i32,
    pub degraded_machine_count: i32,
    pub conditions: Vec<Condition>,
}

impl PoolStatus {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    pub message: String,
    pub last_transition_time: Option<Time>,
}
