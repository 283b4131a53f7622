//! A plan as it is shown, wherever it comes from: stored in a status, made just now, or recorded. Also its shape for programs.

use advisor::{Plan, PlannedItem, Verb, approving, waiting};
use api::{
    VirtPlatformConfig, VirtPlatformPlanRecord,
    virt_platform_config::{Item, ItemState, Phase, PlanInput, Risk, Severity},
    virt_platform_plan_record::RecordedItem,
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::{diff_text, forecast::PlanForecast};

/// Where a plan comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Origin {
    /// It is in the status of a configuration.
    Stored,
    /// It was made just now, and nothing was written.
    Draft,
    /// It was applied.
    Record,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PlanView {
    pub(crate) profile: String,
    pub(crate) origin: Origin,
    /// Of a stored plan: the phase of its configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<Phase>,
    /// Of a stored plan: for whom it waits, and for what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waits_for: Option<String>,
    /// Of a stored plan: whether the operator would not apply it, because what it changes has changed since.
    #[serde(skip)]
    pub(crate) is_out_of_date: bool,
    /// The version of the operator that made the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operator_version: Option<String>,
    /// For `spec.approval.planDigest`.
    pub(crate) plan_digest: Option<String>,
    pub(crate) source_snapshot_hash: Option<String>,
    pub(crate) impact_severity: Option<Severity>,
    /// Whether an item creates, changes or deletes an object, or cannot.
    pub(crate) has_changes: bool,
    pub(crate) items: Vec<ItemView>,
    pub(crate) inputs: Vec<PlanInput>,
    pub(crate) notes: Vec<String>,
    pub(crate) risks: Vec<Risk>,
    /// The forecast that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) forecast: Option<PlanForecast>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemView {
    /// `created`, `configured`, `unchanged`, `deleted` or `refused`.
    #[serde(serialize_with = "word")]
    #[schemars(with = "String")]
    pub(crate) verb: Verb,
    /// Why the profile wants it. Only a plan that was made just now tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<&'static str>,
    /// One word for why the API server would not have it. Only a plan that was made just now tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refusal: Option<&'static str>,
    /// The diff for people, with the contents of files decoded.
    pub(crate) readable_diff: String,
    /// Whether it takes back what a plan has changed.
    pub(crate) restores: bool,
    #[serde(flatten)]
    pub(crate) item: Item,
}

fn word<S: Serializer>(verb: &Verb, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verb.as_str())
}

impl PlanView {
    /// The plan in the status of a configuration. None if there is none.
    pub(crate) fn stored(config: &VirtPlatformConfig, now: Timestamp) -> Option<Self> {
        let status = config.status.as_ref().filter(|status| !status.items.is_empty())?;
        let restores = status.restore.is_some();
        let waiting = waiting::waiting(config, now).text();
        Some(PlanView {
            profile: config.spec.profile.to_string(),
            origin: Origin::Stored,
            phase: status.phase,
            waits_for: Some(waiting).filter(|waiting| !waiting.is_empty()),
            is_out_of_date: approving::is_out_of_date(config),
            operator_version: status.operator_version.clone(),
            plan_digest: status.plan_digest.clone(),
            source_snapshot_hash: status.source_snapshot_hash.clone(),
            impact_severity: status.impact_severity,
            items: status.items.iter().map(|item| ItemView::stored(item.clone(), restores)).collect(),
            inputs: status.inputs.clone(),
            notes: status.notes.clone(),
            risks: status.risks.clone(),
            forecast: None,
            has_changes: status.items.iter().any(|item| Verb::of_item(item) != Verb::Unchanged),
        })
    }

    /// The plan that a record holds, with how far each item got.
    pub(crate) fn recorded(record: &VirtPlatformPlanRecord) -> Self {
        let spec = &record.spec;
        let items: Vec<ItemView> = spec.items.iter().map(|item| ItemView::recorded(record, item)).collect();
        PlanView {
            profile: spec.profile.to_string(),
            origin: Origin::Record,
            phase: None,
            waits_for: None,
            is_out_of_date: false,
            operator_version: Some(spec.operator_version.clone()),
            plan_digest: Some(spec.plan_digest.clone()),
            source_snapshot_hash: None,
            impact_severity: Some(spec.impact_severity),
            has_changes: items.iter().any(|item| item.verb != Verb::Unchanged),
            items,
            inputs: Vec::new(),
            notes: spec.notes.clone(),
            risks: spec.risks.clone(),
            forecast: None,
        }
    }
}

impl From<&Plan> for PlanView {
    fn from(plan: &Plan) -> Self {
        PlanView {
            profile: plan.profile.to_owned(),
            origin: Origin::Draft,
            phase: None,
            waits_for: None,
            is_out_of_date: false,
            operator_version: None,
            plan_digest: Some(plan.digest.clone()),
            source_snapshot_hash: Some(plan.snapshot.clone()),
            impact_severity: Some(plan.severity),
            has_changes: plan.has_changes(),
            items: plan.items.iter().map(ItemView::from).collect(),
            inputs: plan.inputs.clone(),
            notes: plan.notes.clone(),
            risks: plan.risks.clone(),
            forecast: None,
        }
    }
}

impl ItemView {
    fn stored(item: Item, restores: bool) -> Self {
        let readable_diff = diff_text::decoded(item.diff.as_deref().unwrap_or_default());
        ItemView { verb: Verb::of_item(&item), why: None, refusal: None, readable_diff, restores, item }
    }

    fn recorded(record: &VirtPlatformPlanRecord, recorded: &RecordedItem) -> Self {
        let outcomes = record.status.iter().flat_map(|status| &status.items);
        let outcome = outcomes.into_iter().find(|outcome| outcome.name == recorded.name);
        let diff = recorded.readable_diff.as_ref().or(recorded.diff.as_ref());
        let item = Item {
            name: recorded.name.clone(),
            target_ref: recorded.target_ref.clone(),
            operation: recorded.operation,
            impact_severity: recorded.impact_severity,
            impact_detail: recorded.impact_detail.clone(),
            diff: recorded.diff.clone(),
            field_manager: Some(recorded.field_manager.clone()),
            takes_over: recorded.takes_over.clone(),
            state: outcome.map_or(ItemState::Pending, |outcome| outcome.state),
            message: outcome.and_then(|outcome| outcome.message.clone()),
            ..Item::default()
        };
        ItemView {
            verb: Verb::of_record(recorded),
            why: None,
            refusal: None,
            readable_diff: diff_text::decoded(diff.map_or("", String::as_str)),
            restores: record.spec.restore.is_some(),
            item,
        }
    }

    /// Whether nodes reboot for it.
    pub(crate) fn reboots(&self) -> bool {
        self.item.impact_detail.as_ref().is_some_and(|detail| detail.reboot)
    }
}

impl From<&PlannedItem> for ItemView {
    fn from(planned: &PlannedItem) -> Self {
        ItemView {
            verb: planned.verb,
            why: Some(planned.why),
            refusal: planned.refusal.as_ref().map(advisor::Refusal::reason),
            readable_diff: planned.readable_diff.clone(),
            restores: planned.restores,
            item: planned.item.clone(),
        }
    }
}
