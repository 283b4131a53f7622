//! The `status` of a VirtualMachine: where the guest runs and how it got there.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::string_enum::string_enum;

string_enum! {
    /// What a guest is doing, derived from its pod.
    pub enum Phase {
        /// No pod yet.
        Pending = "Pending",
        /// The pod has no node yet.
        Scheduling = "Scheduling",
        /// The pod has a node and starts.
        Scheduled = "Scheduled",
        /// The pod runs.
        Running = "Running",
        /// The pod failed, or the spec cannot be read.
        Failed = "Failed",
        /// Stopped on request.
        Stopped = "Stopped",
    }
}

/// What the lab found out and did.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// What the guest is doing.
    ///
    /// - Pending: it has no pod yet.
    /// - Scheduling: its pod waits for a node.
    /// - Scheduled: its pod has a node and is starting.
    /// - Running: its pod runs, and its load counts on the node.
    /// - Failed: its pod failed, or its spec cannot be read.
    /// - Stopped: spec.running is false; it has no pod and no load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// The node that the guest runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::NAME))]
    pub node_name: Option<String>,

    /// The pod that counts as the guest. During a migration this is the source, until the target takes over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::NAME))]
    pub pod_name: Option<String>,

    /// The node that the guest is being moved away from. Absent when no migration is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::NAME))]
    pub evacuation_node_name: Option<String>,

    /// The CPU that the guest was given, from spec.resources.cpu.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub allocated_cpu: Option<String>,

    /// The memory that the guest was given, from spec.resources.memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub allocated_memory: Option<String>,

    /// The share of its CPU that the guest uses now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub cpu_utilization: Option<String>,

    /// The share of its memory that the guest uses now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub memory_utilization: Option<String>,

    /// When the first pod of the guest was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Time>,

    /// The migrations of the guest that ended last, the latest last, whether or not they moved it. Absent after the guest was
    /// started anew. The descheduler's plugin KubevirtMigrationAware, as the lab plays it, looks at them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::ENDED_MIGRATIONS), extend("x-kubernetes-list-type" = "atomic"))]
    pub migrations: Vec<EndedMigration>,

    /// The aspects of the guest's state that programs may wait for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A migration that has ended.
#[derive(JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndedMigration {
    /// When its target pod was created.
    pub start_timestamp: Time,

    /// When the target took over, or when the migration failed.
    pub end_timestamp: Time,
}
