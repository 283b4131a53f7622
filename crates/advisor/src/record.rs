//! The record of an applied plan: what was reviewed and what was there before, how it ended, and the way back.
//!
//! A record is made before the first write of the plan. Whoever restores compares it with the cluster.

mod leaves;
mod outcome;
mod restore;
mod retention;
mod size;

#[cfg(test)]
mod tests;

use api::{
    VirtPlatformConfig, VirtPlatformPlanRecord, VirtPlatformPlanRecordSpec, names,
    virt_platform_config::{Approval, GrantedApproval},
    virt_platform_plan_record::{RecordedApproval, RecordedItem, name},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::{Plan, PlannedItem, Verb, field_manager, fields, fields::Path};

pub use outcome::outcome;
pub use restore::{Restored, restored};
pub use retention::{KEPT, Summary, expired, next_number};
pub use size::TooLarge;

/// What a record says besides the plan.
#[derive(Debug, Clone)]
pub struct Start<'a> {
    /// The number in the name of the record.
    pub number: u32,
    /// Whether the configuration managed nothing before the plan.
    pub first: bool,
    pub operator_version: &'a str,
    pub now: Time,
}

/// The record of a plan that is about to be applied.
pub fn plan_record(
    config: &VirtPlatformConfig,
    plan: &Plan,
    start: &Start<'_>,
) -> Result<VirtPlatformPlanRecord, TooLarge> {
    let status = config.status.clone().unwrap_or_default();
    let items: Vec<RecordedItem> = plan
        .items
        .iter()
        .map(|planned| {
            let mut item = leaves::recorded(planned, plan.facts.target(&planned.item.target_ref).flatten());
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
        plan_digest: plan.digest.clone(),
        options: config.spec.options.clone(),
        approval: status.approval.map(|granted| approval(granted, config.spec.approval.as_ref())),
        operator_version: start.operator_version.to_owned(),
        started_at: start.now.clone(),
        impact_severity: plan.severity,
        notes: plan.notes.clone(),
        risks: plan.risks.clone(),
        first: start.first,
        original,
        items,
    };
    Ok(VirtPlatformPlanRecord::new(&name(config.spec.profile, start.number), size::fitted(spec)?))
}

fn approval(granted: GrantedApproval, spec: Option<&Approval>) -> RecordedApproval {
    let Approval { not_before, not_after, window, .. } = spec.cloned().unwrap_or_default();
    RecordedApproval { granted, not_before, not_after, window }
}

/// Whether the plan finds nothing in its targets that the profile has set.
pub fn manages_nothing(plan: &Plan) -> bool {
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
    !matches!(planned.verb, Verb::Unchanged | Verb::Refused)
}

/// The fields whose values are not recorded, each with the name of its item.
pub fn masked_leaves(spec: &VirtPlatformPlanRecordSpec) -> Vec<(&str, Path)> {
    let masked = |item: &RecordedItem| {
        let leaves = item.leaves.iter().filter(|leaf| leaf.masked);
        leaves.filter_map(|leaf| Path::from_keys(&leaf.path)).collect::<Vec<_>>()
    };
    let of_item = |item| masked(item).into_iter().map(|path| (item.name.as_str(), path)).collect::<Vec<_>>();
    spec.items.iter().flat_map(of_item).collect()
}

/// The note of a plan that changes fields which cannot be restored.
pub fn masked_note(spec: &VirtPlatformPlanRecordSpec) -> Option<String> {
    let masked: Vec<String> =
        masked_leaves(spec).iter().map(|(item, path)| format!("{path} (item '{item}')")).collect();
    (!masked.is_empty()).then(|| {
        format!("Secret values are not recorded, so these fields cannot be restored later: {}", masked.join(", "))
    })
}
