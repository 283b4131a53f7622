//! Who agreed to the plan, and for when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::virt_platform_config::{ForecastSummary, GrantedApproval, MaintenanceWindow};

/// The approval on which the plan was applied, and the time that it allowed.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedApproval {
    #[serde(flatten)]
    pub granted: GrantedApproval,

    /// The plan was not to be started before this time. Absent when it could be started at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,

    /// When the approval ended. Absent when it had no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,

    /// The hours of a week in which the plan could be started. Absent when it could be started at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,

    /// What the approver expected of the plan. Absent when the approval names no forecast of this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastSummary>,
}
