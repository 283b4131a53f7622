//! The `status` of a VirtPlatformPlanRecord: how the plan ended. It is final once the plan has finished.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounds;
use crate::string_enum::string_enum;
use crate::virt_platform_config::ItemState;

string_enum! {
    /// How a plan ended. What each word means is told in the schema, by [`VirtPlatformPlanRecordStatus::outcome`].
    pub enum Outcome {
        /// Not finished. Nobody writes it: it is the default of a record without a status.
        Running = "Running",
        /// Applied.
        Completed = "Completed",
        /// Applied in part.
        CompletedWithErrors = "CompletedWithErrors",
        /// Given up after an error.
        Failed = "Failed",
        /// Given up for another plan, or because the approval was withdrawn.
        Superseded = "Superseded",
    }
}

/// How the plan ended.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("default" = {"outcome": "Running"}))]
pub struct VirtPlatformPlanRecordStatus {
    /// How the plan ended.
    ///
    /// - Running: it is being applied, or its effect is awaited.
    /// - Completed: all items were applied and took effect.
    /// - CompletedWithErrors: some items failed, the others were applied.
    /// - Failed: applying was given up after an error; items applied before that were kept.
    /// - Superseded: it was not carried to its end, because the spec was edited, the approval was withdrawn, or
    ///   something that it needs was missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,

    /// The outcome in words. Absent while the plan is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::MESSAGE))]
    pub message: Option<String>,

    /// When the plan ended. From then on the status is final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,

    /// How far each item got.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::ITEMS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub items: Vec<ItemOutcome>,

    /// The pools whose nodes the plan has rebooted, each with how far it was seen to get. Empty when no node was to
    /// be rebooted, or when message says that it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub reboots: Vec<PoolReboot>,
}

/// How far an item got.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemOutcome {
    /// Name of the item, as in spec.items.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub name: String,

    /// How far it got.
    ///
    /// - Pending: it was not applied.
    /// - InProgress: it is being applied, or was applied and its effect was not seen.
    /// - Completed: it was applied and took effect.
    /// - Failed: it could not be applied, or did not take effect in time.
    pub state: ItemState,

    /// Whether it was written to the target, or found there.
    #[serde(default)]
    pub applied: bool,

    /// The state in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::MESSAGE))]
    pub message: Option<String>,

    /// Since when its effect was awaited. Absent when there was nothing to wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_since: Option<Time>,

    /// When state last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// A MachineConfigPool whose nodes a plan reboots.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolReboot {
    /// Name of the MachineConfigPool.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub name: String,

    /// How many nodes the pool had: by its own status if it was still waited for when the plan ended, otherwise as
    /// reviewed. Absent when the pool did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub nodes: Option<i32>,

    /// How many of them had the change when the plan ended, by the status of the pool. Absent when the pool was not
    /// waited for any more, or did not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub updated: Option<i32>,

    /// Whether all of its nodes were seen with the change. If not, some of them may not have been rebooted.
    #[serde(default)]
    pub finished: bool,
}
