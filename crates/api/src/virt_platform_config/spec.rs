//! The `spec` of a VirtPlatformConfig and the rules that hold across its fields.

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Approval, Options, VirtPlatformConfigStatus, WaitTimeout};
use crate::{bounds, string_enum::string_enum};

string_enum! {
    /// The profiles there are. A profile is what the operator knows how to plan.
    #[derive(PartialOrd, Ord)]
    pub enum Profile {
        /// Load-aware rebalancing of virtual machines by the descheduler.
        LoadAwareRebalancing = "load-aware-rebalancing",
        /// More virtual machines per node, by swap, memory overcommitment and page merging.
        VirtHigherDensity = "virt-higher-density",
        /// For demonstrations; touches nothing real.
        Example = "example-profile",
    }
}

string_enum! {
    /// What the administrator lets the operator do.
    #[derive(Default)]
    pub enum Action {
        /// Plan, show, do not write.
        #[default]
        DryRun = "DryRun",
        /// Write the plan and keep watching it.
        Apply = "Apply",
        /// Leave everything alone.
        Ignore = "Ignore",
    }
}

string_enum! {
    /// What happens to the rest of a plan after one item failed.
    #[derive(Default)]
    pub enum FailurePolicy {
        /// Stop.
        #[default]
        Abort = "Abort",
        /// Go on with the other items.
        Continue = "Continue",
    }
}

/// What `spec.restore.record` says for the state before the configuration managed anything.
pub const ORIGINAL: &str = "original";

/// Which state is restored.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Restore {
    /// The state before the plan of this VirtPlatformPlanRecord was applied; later plans are taken back with
    /// it. Or `original`: the state before the configuration managed anything.
    #[schemars(length(min = 1, max = bounds::NAME))]
    pub record: String,
}

/// The configuration that is wanted of one profile.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "advisor.kubevirt.io",
    version = "v1alpha1",
    kind = "VirtPlatformConfig",
    plural = "virtplatformconfigs",
    shortname = "vpcfg",
    category = "advisor",
    status = "VirtPlatformConfigStatus",
    derive = "PartialEq",
    doc = "A VirtPlatformConfig plans, previews and, once approved, applies the configuration of one \
           virtualization profile to components that other operators own. \
           There is one object per profile, and it carries the name of the profile.\n\n\
           The usual way: create it with `action: DryRun`, read the plan and its diffs in `status.items`, then set `action: Apply`.",
    validation = Rule::new("self.metadata.name == self.spec.profile")
        .message("To ensure a singleton pattern, the VirtPlatformConfig name must exactly match the spec.profile.")
        .field_path(".spec.profile"),
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "Impact", type_ = "string", json_path = ".status.impactSeverity"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Drifted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Drifted")].status"#,
        description = "Whether a managed object differs from what was applied",
        priority = 1
    ),
    printcolumn(
        name = "Plan",
        type_ = "string",
        json_path = ".status.planDigest",
        description = "Digest of the current plan, for spec.approval.planDigest",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
// The first two speak of the profile, the others of the member; users know all four texts.
#[x_kube(validation = Rule::new("self.profile != 'load-aware-rebalancing' || !has(self.options) || !has(self.options.virtHigherDensity)")
    .message("When profile is 'load-aware-rebalancing', only options.loadAware may be set")
    .reason(Reason::FieldValueForbidden)
    .field_path(".options.virtHigherDensity"))]
#[x_kube(validation = Rule::new("self.profile != 'virt-higher-density' || !has(self.options) || !has(self.options.loadAware)")
    .message("When profile is 'virt-higher-density', only options.virtHigherDensity may be set")
    .reason(Reason::FieldValueForbidden)
    .field_path(".options.loadAware"))]
#[x_kube(validation = Rule::new("!has(self.options) || !has(self.options.loadAware) || self.profile == 'load-aware-rebalancing'")
    .message("options.loadAware can only be used with profile 'load-aware-rebalancing'")
    .reason(Reason::FieldValueForbidden)
    .field_path(".options.loadAware"))]
#[x_kube(validation = Rule::new("!has(self.options) || !has(self.options.virtHigherDensity) || self.profile == 'virt-higher-density'")
    .message("options.virtHigherDensity can only be used with profile 'virt-higher-density'")
    .reason(Reason::FieldValueForbidden)
    .field_path(".options.virtHigherDensity"))]
#[x_kube(validation = Rule::new("!has(self.restore) || self.restore.record == 'original' || \
        self.restore.record.startsWith(self.profile + '-') && \
        self.restore.record.substring(size(self.profile) + 1).matches('^[1-9][0-9]{0,8}$')")
    .message("must be 'original' or the name of a VirtPlatformPlanRecord of this profile, for example load-aware-rebalancing-7")
    .field_path(".restore.record"))]
pub struct VirtPlatformConfigSpec {
    /// The profile to plan and apply. It must equal metadata.name and cannot be changed later; to use
    /// another profile, create another object.
    ///
    /// - load-aware-rebalancing: moves virtual machines away from busy nodes. Configures KubeDescheduler
    ///   and, for pressure metrics, a MachineConfig (worker nodes reboot one after another).
    /// - virt-higher-density: fits more virtual machines on a node. Configures HyperConverged and, for
    ///   swap, a MachineConfig (worker nodes reboot one after another).
    /// - example-profile: for demonstrations; changes nothing real.
    #[x_kube(validation = ("self == oldSelf", "Profile is immutable"))]
    pub profile: Profile,

    /// What the operator may do. Default: DryRun.
    ///
    /// - DryRun: computes the plan and shows it in status. Nothing is written to other objects.
    /// - Apply: carries the plan out and then watches for drift. Set before a plan exists, it applies the
    ///   plan as soon as it is made, without a review.
    /// - Ignore: no plan, no drift detection, no metrics. What was applied before stays as it is.
    #[serde(default)]
    pub action: Action,

    /// What happens when one item of the plan fails. Default: Abort.
    ///
    /// - Abort: no further item is applied and the phase becomes Failed. Items applied before are kept.
    /// - Continue: the other items are still applied and the phase becomes CompletedWithErrors.
    #[serde(default)]
    pub failure_policy: FailurePolicy,

    /// Lets a plan be applied although a target changed after the plan was made, and lets drift be
    /// reverted without a person. Default: false, which stops with a message in both cases. With true,
    /// changes made by others to the managed fields are overwritten. A review that the operator demands,
    /// for example because an input changed, is never skipped.
    #[serde(default)]
    pub bypass_optimistic_lock: bool,

    /// How long to wait for an applied item to take effect, for example for all nodes of a pool to be
    /// updated, before the item counts as failed. A duration such as 30m, 2h or 1h30m. Default: no limit,
    /// which suits production: draining and rebooting many nodes can take hours or days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<WaitTimeout>,

    /// Approves or rejects one particular plan, and says when it may be applied. Without it, `action: Apply`
    /// approves whatever plan is current, unless the operator was started with --approval=Reviewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Approval>,

    /// Takes back what the profile has changed, instead of applying it. The plan then sets every object back to
    /// what records say was there before; it is reviewed and approved like any other plan. After it the
    /// configuration manages nothing. To manage the profile again, remove this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<Restore>,

    /// Settings of the profile. At most the member that belongs to spec.profile may be set. Default: the
    /// defaults of the profile; an empty object means the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Options>,
}

impl VirtPlatformConfigSpec {
    /// The spec that the API server would store for an object that names nothing but its profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            action: Action::default(),
            failure_policy: FailurePolicy::default(),
            bypass_optimistic_lock: false,
            wait_timeout: None,
            approval: None,
            restore: None,
            options: None,
        }
    }
}
