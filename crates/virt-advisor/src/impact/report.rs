//! The result for programs: a stable shape. Fields are added, and none changes its meaning.

use advisor::blast_radius::BlastRadius;
use api::virt_platform_config::Phase;
use serde::Serialize;

use super::{observe::Read, probe::Answer};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report<'a> {
    api_version: &'static str,
    kind: &'static str,
    client: &'static str,
    pub(crate) plans: Vec<Reviewed<'a>>,
    /// What reading has cost.
    pub(crate) read: Read,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reviewed<'a> {
    pub(crate) profile: &'a str,
    pub(crate) phase: Option<Phase>,
    /// For `spec.approval.planDigest`.
    pub(crate) plan_digest: Option<&'a str>,
    pub(crate) impact: BlastRadius,
    /// Whether the caller may pause pools, which stops a rollout. None if it could not be asked.
    pub(crate) may_pause: Option<bool>,
    /// With --probe: what KubeVirt itself says about each virtual machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<Vec<Answer>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(plans: Vec<Reviewed<'a>>, read: Read) -> Self {
        let (api_version, kind) = ("impact.advisor.kubevirt.io/v1alpha1", "ImpactReport");
        Report { api_version, kind, client: crate::VERSION, plans, read }
    }
}
