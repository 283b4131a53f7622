//! The plan for programs: a stable shape, the same in JSON and YAML.

use advisor::{Plan, PlannedItem};
use api::virt_platform_config::{Input, Item, Risk, Severity};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report<'a> {
    profile: &'a str,
    /// For `spec.approval.planDigest`.
    plan_digest: &'a str,
    source_snapshot_hash: &'a str,
    impact_severity: Severity,
    has_changes: bool,
    items: Vec<Entry<'a>>,
    inputs: &'a [Input],
    notes: &'a [String],
    risks: &'a [Risk],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    /// `created`, `configured`, `unchanged`, `deleted` or `refused`.
    verb: &'static str,
    why: &'a str,
    /// One word for why the API server would not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'static str>,
    #[serde(flatten)]
    item: &'a Item,
}

impl<'a> Report<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        let entry = |planned: &'a PlannedItem| Entry {
            verb: planned.verb.as_str(),
            why: planned.why,
            refusal: planned.refusal.as_ref().map(advisor::Refusal::reason),
            item: &planned.item,
        };
        Report {
            profile: plan.profile,
            plan_digest: &plan.digest,
            source_snapshot_hash: &plan.snapshot,
            impact_severity: plan.severity,
            has_changes: plan.has_changes(),
            items: plan.items.iter().map(entry).collect(),
            inputs: &plan.inputs,
            notes: &plan.notes,
            risks: &plan.risks,
        }
    }
}
