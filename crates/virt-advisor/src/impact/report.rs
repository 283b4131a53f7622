//! The result for programs: a stable shape. Fields are added, and none changes its meaning.

use advisor::blast_radius::BlastRadius;
use api::virt_platform_config::Phase;
use schemars::JsonSchema;
use serde::Serialize;

use super::{observe::Read, probe::Answer};

/// What plans do to nodes and virtual machines.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ImpactReport<'a> {
    pub(crate) plans: Vec<Reviewed<'a>>,
    /// What reading has cost.
    pub(crate) read: Read,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reviewed<'a> {
    pub(crate) profile: &'a str,
    pub(crate) phase: Option<Phase>,
    /// For `spec.approval.planDigest`.
    pub(crate) plan_digest: Option<&'a str>,
    pub(crate) impact: BlastRadius,
    /// Whether the caller may pause pools, which stops a rollout. Null if it could not be asked.
    pub(crate) may_pause: Option<bool>,
    /// With --probe: what KubeVirt itself says about each virtual machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<Vec<Answer>>,
}
