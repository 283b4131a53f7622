//! The `status` of a VirtPlatformConfig: the plan, its progress, and its inputs.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{GrantedApproval, Item, Options, Restore};
use crate::bounds;
use crate::string_enum::string_enum;

string_enum! {
    /// Where a configuration is in its life. What each phase means is told in the schema, by
    /// [`VirtPlatformConfigStatus::phase`].
    pub enum Phase {
        /// Seen, not looked at yet.
        Pending = "Pending",
        /// The plan is being made.
        Drafting = "Drafting",
        /// A component or a valid setting is missing.
        PrerequisiteFailed = "PrerequisiteFailed",
        /// A person has to decide.
        ReviewRequired = "ReviewRequired",
        /// Approved, and waiting for its time.
        Scheduled = "Scheduled",
        /// The plan is being applied or is taking effect.
        InProgress = "InProgress",
        /// Applied.
        Completed = "Completed",
        /// Applied in part.
        CompletedWithErrors = "CompletedWithErrors",
        /// Applied, but this operator would do it differently.
        CompletedWithUpgrade = "CompletedWithUpgrade",
        /// Given up.
        Failed = "Failed",
        /// Somebody changed what was applied.
        Drifted = "Drifted",
        /// Left alone on request.
        Ignored = "Ignored",
    }
}

string_enum! {
    /// How much a change disturbs. Ordered, so that the impact of a plan is the maximum over its items.
    #[derive(PartialOrd, Ord)]
    pub enum Severity {
        /// Nobody notices.
        Low = "Low",
        /// Behavior changes, nodes stay up.
        Medium = "Medium",
        /// Nodes reboot.
        High = "High",
    }
}

/// What the operator found out and did.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VirtPlatformConfigStatus {
    /// Where the configuration is in its life.
    ///
    /// - Pending: seen, not examined yet.
    /// - Drafting: prerequisites are checked and the plan is made.
    /// - PrerequisiteFailed: something required is not installed or an option is invalid; the message of the
    ///   condition of the same name says what to do.
    /// - ReviewRequired: the plan waits for a person to read it and to set `action: Apply`.
    /// - Scheduled: the plan is approved and waits for its time, spec.approval.notBefore or window.
    /// - InProgress: the plan is being applied, or its effect is awaited, for example node reboots.
    /// - Completed: everything is applied and in sync.
    /// - CompletedWithErrors: some items failed, the others are applied.
    /// - CompletedWithUpgrade: everything is applied, and this version of the operator has a better plan.
    /// - Failed: applying was given up; a new generation of the spec starts over.
    /// - Drifted: a managed object no longer is as it was applied.
    /// - Ignored: left alone because of `action: Ignore`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,

    /// The strongest impact of any item of the plan.
    ///
    /// - Low: nothing is disturbed.
    /// - Medium: components change their behavior, for example virtual machines are migrated; no reboots.
    /// - High: nodes reboot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Severity>,

    /// The metadata.generation that this status reflects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,

    /// SHA-256 of the live values of all managed fields when the plan was made or, after it was applied,
    /// of the values that the apply left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub source_snapshot_hash: Option<String>,

    /// Version of the operator that made the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub operator_version: Option<String>,

    /// Which leader of the operator wrote this status, counted by the transitions of its lease. Absent when the
    /// operator runs without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub leader_epoch: Option<i64>,

    /// SHA-256 of the plan: what would be written, over which live values, from which inputs and with which
    /// impact. Copy it to spec.approval.planDigest to approve this plan and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub plan_digest: Option<String>,

    /// The approval on which the plan was applied. Absent until a plan that changes something is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<GrantedApproval>,

    /// The VirtPlatformPlanRecord of the plan that was last applied, or is being applied. Absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordRef>,

    /// The spec.options that the plan was made with. Absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_options: Option<Options>,

    /// The spec.restore that the plan was made for. Absent when it applies the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,

    /// Settings of other objects that the plan was derived from. When one of them changes, the plan is made
    /// again and has to be reviewed again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::INPUTS), extend("x-kubernetes-list-type" = "atomic"))]
    pub inputs: Vec<PlanInput>,

    /// Remarks on the plan, for example why a setting needs no change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        inner(length(max = bounds::NOTE)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub notes: Vec<String>,

    /// What may go wrong if the plan is carried out, each with a name to refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::SHORT_LIST), extend("x-kubernetes-list-type" = "atomic"))]
    pub risks: Vec<Risk>,

    /// When drift was last reverted without a person, because of bypassOptimisticLock. Too many of these in a
    /// short time mean that somebody else keeps changing the same fields, and the operator stops.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::REVERTS), extend("x-kubernetes-list-type" = "atomic"))]
    pub reverts: Vec<Time>,

    /// The plan: the changes to other objects, in the order in which they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::ITEMS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub items: Vec<Item>,

    /// One condition per phase, with the name of the phase as its type, and others: Ready says whether the
    /// cluster is as the spec asks; Reconciling (work is under way) and Stalled (a person has to look) are
    /// listed while they are True. Flux, Helm and `kubectl wait` read these three.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::schema::conditions")]
    pub conditions: Vec<Condition>,
}

impl VirtPlatformConfigStatus {
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// A condition, if it is True.
    pub fn true_condition(&self, kind: &str) -> Option<&Condition> {
        self.condition(kind).filter(|condition| condition.status == "True")
    }

    /// When the configuration entered a phase, if it is in that phase.
    pub fn entered(&self, phase: Phase) -> Option<&Time> {
        self.true_condition(phase.as_str()).map(|own| &own.last_transition_time)
    }
}

/// A VirtPlatformPlanRecord.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordRef {
    /// Its name: the profile, a dash and a number.
    #[schemars(length(max = bounds::NAME))]
    pub name: String,

    /// The digest of its plan.
    #[schemars(length(max = 128))]
    pub plan_digest: String,

    /// Whether it is known to exist. It is created before the plan changes anything.
    #[serde(default)]
    pub created: bool,
}

/// Something that may go wrong.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Risk {
    /// What kind of risk it is, for example SwapSupportUnknown. In mode Reviewed an approver has to accept it by
    /// this name: spec.approval.acceptedRisks.
    #[schemars(length(max = bounds::RISK_NAME))]
    pub name: String,

    /// What it is seen from, and what to do about it.
    #[schemars(length(max = bounds::NOTE))]
    pub message: String,
}

/// A setting elsewhere that the plan depends on.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
// The published schema of `--output json` has this name.
#[schemars(rename = "Input")]
pub struct PlanInput {
    /// The object that was read, as kind/name, for example HyperConverged/kubevirt-hyperconverged.
    #[schemars(length(max = 512))]
    pub source: String,

    /// The field that was read, as a dotted path.
    #[schemars(length(max = bounds::FIELD_PATH))]
    pub path: String,

    /// The value that was found, written as JSON. Absent when the field was not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = bounds::INPUT_VALUE))]
    pub value: Option<String>,
}
