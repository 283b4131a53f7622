//! `spec.approval`: which plan may be applied, by whose decision and when; and `status.approval`: which approval was acted on.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ForecastSummary, MaintenanceWindow};
use crate::{bounds, string_enum::string_enum};

/// Characters of a reason that a person gives.
const REASON: usize = 1_024;
/// Characters of a user name.
const USER: usize = 1_024;

string_enum! {
    /// What approves a plan.
    #[derive(Default)]
    pub enum ApprovalMode {
        /// `action: Apply`.
        #[default]
        Immediate = "Immediate",
        /// The digest of the plan.
        Reviewed = "Reviewed",
    }
}

/// Which plan is approved or rejected, by whom, why, and when it may be applied.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!has(self.notBefore) || !has(self.notAfter) || self.notBefore < self.notAfter")
    .message("notAfter must be later than notBefore")
    .field_path(".notAfter"))]
pub struct Approval {
    /// What approves a plan. Default: what the operator was started with (--approval), else Immediate.
    ///
    /// - Immediate: `action: Apply` approves every plan, also those that later edits lead to. With
    ///   planDigest it approves only that one.
    /// - Reviewed: only planDigest approves a plan. A plan that came to be later and changes anything waits
    ///   in ReviewRequired, whatever edit led to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<ApprovalMode>,

    /// The digest of the approved plan, copied from status.planDigest. If the current plan has another
    /// digest, nothing is applied and the phase stays ReviewRequired. Default: with mode Immediate any plan
    /// is approved, with mode Reviewed none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // Longer than a digest, so that one with a prefix such as `sha256:` meets the rule's message.
    #[schemars(length(max = 128))]
    #[x_kube(validation = (
        "self.matches('^[0-9a-f]{64}$')",
        "must be a plan digest as in status.planDigest: 64 digits from 0-9 and a-f"
    ))]
    pub plan_digest: Option<String>,

    /// Why the plan was approved, for whoever reads it later: a sentence or the number of a change
    /// request. Not interpreted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REASON))]
    pub reason: Option<String>,

    /// The user name of the approver. Where the admission policy is enforced it must be the name of
    /// whoever sends the request; elsewhere it is what its author claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = USER))]
    pub approved_by: Option<String>,

    /// The plan is not applied before this time; until then the phase is Scheduled. Default: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,

    /// The approval ends at this time: nothing that reboots nodes is started afterwards, and a plan of which
    /// nothing was applied has to be approved again. Nodes that are being updated go on. Default: no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,

    /// The hours of a week in which an approved plan may start, and in which its items that reboot nodes may
    /// start. Default: any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<MaintenanceWindow>,

    /// Items, by name, that are applied although somebody has changed their targets in between: the changed
    /// fields are listed in status.items[].changedSince. Only a plan that restores has such items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::ITEMS),
        inner(length(min = 1, max = bounds::NAME)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub accepted_items: Vec<String>,

    /// Risks, by name, that the approver accepts. In mode Reviewed a plan is applied only if all that are
    /// listed in status.risks are among them; in mode Immediate they are not asked for. Others may be named
    /// too: `virt-advisor impact` sees more of them than the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        inner(length(min = 1, max = bounds::RISK_NAME)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub accepted_risks: Vec<String>,

    /// What the approver expects of the plan, as `virt-advisor approve --forecast` writes it. Not interpreted; the
    /// record of the plan keeps it. Default: no forecast was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastSummary>,

    /// Turns one plan down. It is not applied, whatever else approves it, until a new plan replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<Rejection>,
}

/// A plan that was turned down.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The digest of the rejected plan, copied from status.planDigest.
    #[schemars(length(max = 128))]
    #[x_kube(validation = (
        "self.matches('^[0-9a-f]{64}$')",
        "must be a plan digest as in status.planDigest: 64 digits from 0-9 and a-f"
    ))]
    pub plan_digest: String,

    /// Why the plan was rejected. It is shown with the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REASON))]
    pub reason: Option<String>,
}

/// The approval on which a plan was applied.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantedApproval {
    /// The digest of the plan that was approved.
    #[schemars(length(max = 128))]
    pub plan_digest: String,

    /// What approved it: Immediate if `action: Apply` alone did, Reviewed if its digest was named.
    pub mode: ApprovalMode,

    /// The metadata.generation of the spec that approved it.
    #[schemars(range(min = 0))]
    pub generation: i64,

    /// When the operator acted on the approval.
    pub time: Time,

    /// The approver, as spec.approval.approvedBy names them. Absent when nobody is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = USER))]
    pub approved_by: Option<String>,

    /// The risks that the approver accepted, as spec.approval.acceptedRisks names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        inner(length(min = 1, max = bounds::RISK_NAME)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub accepted_risks: Vec<String>,

    /// Why, as spec.approval.reason says. Absent when no reason is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = REASON))]
    pub reason: Option<String>,
}
