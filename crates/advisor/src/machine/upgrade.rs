//! A new version of the operator: adopted silently when it changes nothing, shown when it would.

use api::virt_platform_config::{ItemState, Phase};

use super::{
    Decision,
    Event::{DriftGone, UpgradeFound, UpgradeSettled},
    Next,
    desk::{Desk, UPGRADE},
    drafting::settle_upgrade,
    in_force::show,
    inputs,
};
use crate::{Change, Draft, Facts, Plan, diff, drift};

const ALIGNED: &str = "Cluster manually aligned with new operator logic - upgrade no longer needed";

pub(super) fn upgrade(mut desk: Desk<'_>, draft: &Draft, plan: Option<&Plan>) -> Decision {
    let version = desk.observed.version;
    let old = desk.status.operator_version.clone().unwrap_or_else(|| "an unknown version".into());
    if inputs::differs(&desk.status.items, draft).is_none() {
        desk.status.operator_version = Some(version.to_owned());
        desk.status.items.retain(|item| !inputs::is_proposed(item));
        for item in desk.status.items.iter_mut().filter(|item| item.applied_fingerprint.is_some()) {
            item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
        }
        settle_upgrade(&mut desk, "NoLogicChange", "Operator upgraded but profile logic unchanged");
        return settled(desk);
    }
    match plan {
        None => desk.next(Next::DrawUp),
        Some(plan) if plan.has_changes() => {
            show(&mut desk.status.items, plan);
            let added = plan.items.iter().map(|planned| &planned.item);
            for item in added {
                if !desk.status.items.iter().any(|known| known.name == item.name) {
                    desk.status.items.push(item.clone());
                }
            }
            let text = format!("Operator upgraded from {old} to {version}");
            let advice = "Regenerate plan (action=DryRun) to review proposed changes.";
            desk.mark(UPGRADE, true, "LogicChanged", &format!("{text} with profile logic changes. {advice}"));
            let message = format!("{text} - profile logic changes detected");
            match desk.phase() {
                Phase::Drifted => {}
                Phase::CompletedWithUpgrade => desk.say(Phase::CompletedWithUpgrade, message),
                _ => desk.on(UpgradeFound, message),
            }
            desk.rest()
        }
        Some(plan) => {
            desk.adopt(plan);
            let now = desk.observed.now;
            for item in &mut desk.status.items {
                item.applied_fingerprint = item.source_fingerprint.clone();
                super::execution::note_rolled_out(item, &plan.facts);
                super::execution::enter(item, ItemState::Completed, "Already in desired state".into(), &now);
            }
            settle_upgrade(&mut desk, "ManuallyAligned", ALIGNED);
            settled(desk)
        }
    }
}

/// Whether the cluster looks as if everything had been applied. A dry run has the last word.
pub(super) fn is_aligned(draft: &Draft, facts: &Facts) -> bool {
    draft.intents.iter().all(|intent| match (&intent.change, facts.object(&intent.target)) {
        (Change::Apply { fields, .. }, live) => live.is_some_and(|live| drift::contains(live, fields)),
        (Change::Delete, live) => live.is_none(),
    })
}

fn settled(mut desk: Desk<'_>) -> Decision {
    match desk.phase() {
        Phase::CompletedWithUpgrade => desk.on(UpgradeSettled, ""),
        Phase::Drifted => desk.on(DriftGone, ""),
        _ => {}
    }
    desk.rest()
}
