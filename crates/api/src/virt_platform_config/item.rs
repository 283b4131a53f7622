//! One item of a plan: a change to one object that belongs to somebody else.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Severity;
use crate::bounds;
use crate::string_enum::string_enum;

string_enum! {
    /// How far an item got.
    #[derive(Default)]
    pub enum ItemState {
        /// Not applied.
        #[default]
        Pending = "Pending",
        /// Being applied, or applied and not yet in effect.
        InProgress = "InProgress",
        /// In effect.
        Completed = "Completed",
        /// Not applied because of an error, or not in effect in time.
        Failed = "Failed",
    }
}

string_enum! {
    /// What is done to the target.
    #[derive(Default)]
    pub enum Operation {
        /// Create it or set fields of it.
        #[default]
        Apply = "Apply",
        /// Delete it or take fields out of it.
        Delete = "Delete",
    }
}

string_enum! {
    /// What a MachineConfigPool that is waited for does.
    #[derive(Default)]
    pub enum RolloutState {
        /// The pool has not begun with the change.
        #[default]
        Pending = "Pending",
        /// Its nodes are being updated.
        Updating = "Updating",
        /// Somebody has paused the pool.
        Paused = "Paused",
        /// A node cannot be updated.
        Degraded = "Degraded",
        /// The machine configs of the pool cannot be merged.
        RenderDegraded = "RenderDegraded",
        /// No node was updated for too long.
        NoProgress = "NoProgress",
    }
}

impl Operation {
    // Absent means Apply, as in plans of earlier versions.
    fn is_apply(&self) -> bool {
        *self == Self::Apply
    }
}

/// A change to one object.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Name of the change, unique within the plan.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub name: String,

    /// The object that is changed.
    pub target_ref: TargetRef,

    /// What is done to the target. Absent means Apply.
    ///
    /// - Apply: the object is created, or fields of it are set.
    /// - Delete: the object is deleted or, if others own parts of it, the fields in removes are taken out.
    #[serde(default, skip_serializing_if = "Operation::is_apply")]
    pub operation: Operation,

    /// How much the change disturbs, as in status.impactSeverity. It is fixed when the plan is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Severity>,

    /// What stands behind impactSeverity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_detail: Option<ImpactDetail>,

    /// The change as a unified diff between the live object and the result of a server-side dry run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::DIFF))]
    pub diff: Option<String>,

    /// The fields of the target as they are sent with server-side apply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::schema::any_object")]
    pub desired_state: Option<Map<String, Value>>,

    /// The field manager under which the item is applied. Absent in plans of earlier versions: then it is
    /// virt-advisor-operator, which all profiles shared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = bounds::MANAGER))]
    pub field_manager: Option<String>,

    /// Dotted paths of the fields that this item manages. A change to one of them by somebody else is drift.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::FIELD_PATHS),
        inner(length(max = bounds::FIELD_PATH)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub managed_fields: Vec<String>,

    /// Dotted paths of the fields that this item takes out of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::FIELD_PATHS),
        inner(length(max = bounds::FIELD_PATH)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub removes: Vec<String>,

    /// Who loses fields to this item: these fields are managed by others now, and applying takes them over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["manager"])
    )]
    pub takes_over: Vec<TakeOver>,

    /// Fields that somebody has changed since the plan that is taken back was applied. Their values are lost
    /// when the item is applied, so an approver has to accept it: spec.approval.acceptedItems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::FIELD_PATHS),
        inner(length(max = bounds::FIELD_PATH)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub changed_since: Vec<String>,

    /// How far the item got.
    ///
    /// - Pending: not applied yet.
    /// - InProgress: being applied, or applied and not yet in effect.
    /// - Completed: applied and in effect.
    /// - Failed: could not be applied, or did not take effect within spec.waitTimeout.
    #[serde(default)]
    pub state: ItemState,

    /// The state in words: progress, what is waited for, or what went wrong and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::MESSAGE))]
    pub message: Option<String>,

    /// When state last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,

    /// Since when the effect of the item is awaited; spec.waitTimeout counts from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,

    /// How far the nodes are, for each MachineConfigPool that is waited for. Absent when no pool is waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["pool"])
    )]
    pub rollout: Vec<PoolRollout>,

    /// SHA-256 of the managed fields when the plan was made. The item is applied only while it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub source_fingerprint: Option<String>,

    /// SHA-256 of the managed fields as the apply left them. Drift is a difference from this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub applied_fingerprint: Option<String>,

    /// Who changed a managed field after it was applied. Absent when nothing drifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drifted_by: Option<DriftedBy>,
}

/// The object an item changes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// API version of the object, for example machineconfiguration.openshift.io/v1.
    #[schemars(length(max = 317))]
    pub api_version: String,

    /// Kind of the object, for example MachineConfig.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// Name of the object.
    #[schemars(length(max = bounds::NAME))]
    pub name: String,

    /// Namespace of the object. Absent for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// What a change does to nodes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImpactDetail {
    /// Whether nodes reboot.
    #[serde(default)]
    pub reboot: bool,

    /// The pools whose nodes are drained and updated one after another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub pools: Vec<PoolImpact>,
}

/// A MachineConfigPool that a change rolls.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolImpact {
    /// Name of the MachineConfigPool.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub name: String,

    /// How many nodes the pool has, by its own status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i32>,

    /// The rendered config of the pool before the change, if an earlier version of the target is part of it: the
    /// change is on its way when the pool has another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::NAME))]
    pub rendered: Option<String>,

    /// Whether the pool is paused: its nodes are not updated until somebody resumes it.
    #[serde(default)]
    pub paused: bool,
}

/// How far a MachineConfigPool is with a change.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRollout {
    /// Name of the MachineConfigPool.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub pool: String,

    /// What the pool does.
    ///
    /// - Pending: it has not begun with the change.
    /// - Updating: its nodes are drained, updated and rebooted, one after another.
    /// - Paused: somebody has paused it; its nodes stay as they are until it is resumed.
    /// - Degraded: a node cannot be updated; cause names it.
    /// - RenderDegraded: its machine configs cannot be merged, so no node gets the change.
    /// - NoProgress: no node was updated for longer than the operator's --stuck-after.
    #[serde(default)]
    pub state: RolloutState,

    /// How many of its nodes are updated, by its own status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub updated: Option<i32>,

    /// How many nodes it has, by its own status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub total: Option<i32>,

    /// Since when the pool is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// When the number of updated nodes last changed. If it did not change yet: since when the pool is waited for, or was resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_progress: Option<Time>,

    /// Why the pool does not get on, and which node or which object is the reason; or who has changed the config on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::NOTE))]
    pub cause: Option<String>,
}

/// Fields that change hands.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TakeOver {
    /// The field manager that owns the fields now.
    #[schemars(length(min = 1, max = bounds::MANAGER))]
    pub manager: String,

    /// Dotted paths of the fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::FIELD_PATHS),
        inner(length(max = bounds::FIELD_PATH)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub fields: Vec<String>,
}

/// Who changed a managed field.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftedBy {
    /// The field manager that made the change, or unknown where the object does not tell, as when a field
    /// was removed.
    #[schemars(length(max = bounds::MANAGER))]
    pub manager: String,

    /// When the change was made, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,

    /// Whether the object was deleted, or is being deleted. Nothing shows who deleted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
}
