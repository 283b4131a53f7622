//! The record of an applied plan: what was reviewed and what was there before, how it ended, and the way back.
//!
//! A record is made before the first write of the plan. Whoever restores compares it with the cluster.

mod leaves;
mod managed;
mod outcome;
mod restored_object;
mod retention;
mod size;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use api::{
    VirtPlatformConfig, VirtPlatformPlanRecord, VirtPlatformPlanRecordSpec, names,
    virt_platform_config::{Approval, GrantedApproval, RecordRef, Risk},
    virt_platform_plan_record::{RecordedApproval, RecordedItem},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use crate::{Facts, Plan, PlannedItem, field_manager, fields, fields::Path};

pub use managed::managed;
pub use outcome::{abandoned, is_abandoned, outcome};
pub use restored_object::{Restored, restored};
pub use retention::{KEPT, KnownRecords, Summary, expired, next_number};
pub use size::TooLarge;

/// The record of a plan that is about to be applied, under the name that the status has for it.
pub fn plan_record(
    config: &VirtPlatformConfig,
    plan: &Plan,
    operator_version: &str,
    now: Timestamp,
) -> Result<VirtPlatformPlanRecord, TooLarge> {
    let status = config.status.clone().unwrap_or_default();
    let RecordRef { name, plan_digest, .. } = status.record.clone().unwrap_or_default();
    let items: Vec<RecordedItem> = plan
        .items
        .iter()
        .map(|planned| {
            let mut item = recorded(planned, &plan.facts);
            if let Some(reviewed) = status.items.iter().find(|known| known.name == item.name) {
                item.impact_severity = reviewed.impact_severity;
                item.impact_detail.clone_from(&reviewed.impact_detail);
            }
            item
        })
        .collect();
    let original = plan.items.iter().zip(&items).any(|(planned, item)| has_original_value(planned, item));
    let spec = VirtPlatformPlanRecordSpec {
        profile: config.spec.profile,
        config_uid: config.metadata.uid.clone().unwrap_or_default(),
        generation: config.metadata.generation.unwrap_or_default(),
        plan_digest,
        options: config.spec.options.clone(),
        approval: status.approval.map(|granted| approval(granted, config.spec.approval.as_ref())),
        operator_version: operator_version.to_owned(),
        started_at: Time(now),
        impact_severity: plan.severity,
        notes: plan.notes.clone(),
        risks: plan.risks.clone(),
        restore: config.spec.restore.clone(),
        first: config.spec.restore.is_none() && manages_nothing(plan),
        original,
        items,
    };
    let mut record = VirtPlatformPlanRecord::new(&name, size::fitted(spec)?);
    let labels = BTreeMap::from([(names::PROFILE_LABEL.to_owned(), config.spec.profile.to_string())]);
    record.metadata.labels = Some(labels);
    Ok(record)
}

fn approval(granted: GrantedApproval, spec: Option<&Approval>) -> RecordedApproval {
    let Approval { not_before, not_after, window, forecast, .. } = spec.cloned().unwrap_or_default();
    // One that was left behind by the approval of an earlier plan says nothing about this one.
    let forecast = forecast.filter(|forecast| forecast.plan_digest == granted.plan_digest);
    RecordedApproval { granted, not_before, not_after, window, forecast }
}

/// Whether the plan finds nothing in its targets that the profile has set.
fn manages_nothing(plan: &Plan) -> bool {
    plan.items.iter().all(|planned| {
        let live = plan.facts.target(&planned.item.target_ref).flatten();
        let managers = live.map(fields::managers).unwrap_or_default();
        !managers.iter().any(|manager| manager.operation == "Apply" && is_own(planned, &manager.name))
    })
}

/// Whether an item changes a field that the profile did not own before, so that nothing else tells its value.
fn has_original_value(planned: &PlannedItem, item: &RecordedItem) -> bool {
    item.leaves.iter().any(|leaf| !leaf.former_owners.iter().any(|owner| is_own(planned, owner)))
}

fn is_own(planned: &PlannedItem, manager: &str) -> bool {
    manager == field_manager::of_item(&planned.item)
        || manager == names::field_manager(planned.about.name)
        || Some(manager) == planned.about.former_manager
}

/// Whether an item of a plan writes anything.
fn is_written(planned: &PlannedItem) -> bool {
    planned.verb.is_change()
}

fn recorded(planned: &PlannedItem, facts: &Facts) -> RecordedItem {
    leaves::recorded(planned, facts.target(&planned.item.target_ref).flatten())
}

/// What the record of a plan will not hold. Whoever reviews the plan has to know it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Gaps {
    /// The plan cannot be recorded, and so not be applied.
    pub(crate) too_large: Option<TooLarge>,
    /// Names the fields that cannot be restored.
    pub(crate) note: Option<String>,
}

/// The gaps in the record of a plan with these items, notes and risks.
pub(crate) fn gaps(items: &[PlannedItem], notes: &[String], risks: &[Risk], facts: &Facts) -> Gaps {
    let items: Vec<RecordedItem> = items.iter().map(|planned| recorded(planned, facts)).collect();
    let note = masked_note(&items);
    let notes = notes.iter().chain(&note).cloned().collect();
    Gaps { too_large: size::check(items, notes, risks.to_vec()).err(), note }
}

/// The note of a plan that changes fields whose values are not recorded.
fn masked_note(items: &[RecordedItem]) -> Option<String> {
    let masked = |item: &RecordedItem| {
        let leaves = item.leaves.iter().filter(|leaf| leaf.masked);
        let paths = leaves.filter_map(|leaf| Path::from_keys(&leaf.path));
        paths.map(|path| format!("{path} (item '{}')", item.name)).collect::<Vec<_>>()
    };
    let masked: Vec<String> = items.iter().flat_map(masked).collect();
    (!masked.is_empty()).then(|| {
        format!("Secret values are not recorded, so these fields cannot be restored later: {}", masked.join(", "))
    })
}
