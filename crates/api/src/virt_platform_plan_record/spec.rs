//! The `spec` of a VirtPlatformPlanRecord. It is written once, before the first write to another object.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use super::{RecordedApproval, RecordedItem, VirtPlatformPlanRecordStatus};
use crate::bounds;
use crate::virt_platform_config::{Options, Profile, Restore, Risk, Severity};

/// The plan as it was reviewed, the approval, and what was there before. It cannot be changed.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "advisor.kubevirt.io",
    version = "v1alpha1",
    kind = "VirtPlatformPlanRecord",
    plural = "virtplatformplanrecords",
    shortname = "vpcrec",
    category = "advisor",
    status = "VirtPlatformPlanRecordStatus",
    derive = "PartialEq",
    doc = "A VirtPlatformPlanRecord is the evidence of one plan that was applied: who agreed to it, the reviewed diff, the values \
           before and after, and how it ended. The operator writes it before it changes anything, and nobody can change it \
           afterwards. It stays when the configuration is deleted.",
    validation = Rule::new("self.metadata.name.startsWith(self.spec.profile + '-') && \
                            self.metadata.name.substring(size(self.spec.profile) + 1).matches('^[1-9][0-9]{0,8}$')")
        .message("The name of a record must be its profile, a dash and a number, for example load-aware-rebalancing-7")
        .field_path(".spec.profile"),
    validation = Rule::new("!has(oldSelf.status) || !has(oldSelf.status.finishedAt) || \
                            (has(self.status) && self.status == oldSelf.status)")
        .message("The plan has finished: its record is final and cannot be changed")
        .field_path(".status"),
    printcolumn(name = "Profile", type_ = "string", json_path = ".spec.profile"),
    printcolumn(name = "Outcome", type_ = "string", json_path = ".status.outcome"),
    printcolumn(name = "Approved By", type_ = "string", json_path = ".spec.approval.approvedBy"),
    printcolumn(name = "Started", type_ = "string", json_path = ".spec.startedAt"),
    printcolumn(name = "Finished", type_ = "string", json_path = ".status.finishedAt"),
    printcolumn(
        name = "Plan",
        type_ = "string",
        json_path = ".spec.planDigest",
        description = "Digest of the plan that was applied",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("self == oldSelf").message("A record is immutable: its spec cannot be changed"))]
pub struct VirtPlatformPlanRecordSpec {
    /// The profile of the plan.
    pub profile: Profile,

    /// The metadata.uid of the VirtPlatformConfig.
    #[schemars(length(max = 128))]
    pub config_uid: String,

    /// The metadata.generation of the VirtPlatformConfig when the plan was started.
    #[schemars(range(min = 0))]
    pub generation: i64,

    /// The digest of the plan, as status.planDigest of the VirtPlatformConfig said.
    #[schemars(length(max = 128))]
    pub plan_digest: String,

    /// The spec.options that the plan was made with. Absent when there were none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,

    /// The spec.restore that the plan was made for. Absent when it applied the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,

    /// Who agreed to the plan, and for when. Absent when nobody had to, as for a plan that takes a change by
    /// somebody else back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<RecordedApproval>,

    /// The version of the operator that applied the plan.
    #[schemars(length(max = 128))]
    pub operator_version: String,

    /// When the operator began to apply the plan.
    pub started_at: Time,

    /// The strongest impact of any item, as reviewed.
    pub impact_severity: Severity,

    /// Remarks on the plan, as reviewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::SHORT_LIST),
        inner(length(max = bounds::NOTE)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub notes: Vec<String>,

    /// What could go wrong, as reviewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = bounds::SHORT_LIST), extend("x-kubernetes-list-type" = "atomic"))]
    pub risks: Vec<Risk>,

    /// Whether the configuration managed nothing before this plan.
    #[serde(default)]
    pub first: bool,

    /// Whether the record holds a value from before the configuration managed the field. Records with such values
    /// are kept, because nothing else tells what was there originally.
    #[serde(default)]
    pub original: bool,

    /// The items of the plan, in the order in which they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = bounds::ITEMS),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub items: Vec<RecordedItem>,
}
