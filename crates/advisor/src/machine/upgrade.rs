//! A new version of the operator: recorded if it plans the same, shown if it would plan something else.

use api::virt_platform_config::{ItemState, Phase};

use super::{
    Decision, Request,
    Trigger::{RolloutResumed, UpgradeFound, UpgradeSettled},
    applied::copy_diffs,
    drafting::{adopt_items, settle_upgrade},
    plan_inputs,
    status_draft::{StatusDraft, UPGRADE},
};
use crate::{Change, Draft, Facts, Plan, diff, drift};

const ALIGNED: &str = "Cluster manually aligned with new operator logic - upgrade no longer needed";

pub(super) fn upgrade(mut draft: StatusDraft<'_>, plan_draft: &Draft, plan: Option<&Plan>) -> Decision {
    let version = draft.observed.version;
    let old = draft.status.operator_version.clone().unwrap_or_else(|| "an unknown version".into());
    if plan_inputs::differs(&draft.status.items, plan_draft).is_none() {
        draft.status.operator_version = Some(version.to_owned());
        draft.status.items.retain(|item| !plan_inputs::is_proposed(item));
        for item in draft.status.items.iter_mut().filter(|item| item.applied_fingerprint.is_some()) {
            item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
        }
        settle_upgrade(&mut draft, "NoLogicChange", "Operator upgraded but profile logic unchanged");
        return settled(draft);
    }
    match plan {
        None => draft.request(Request::MakePlan),
        Some(plan) if plan.has_changes() => {
            copy_diffs(&mut draft.status.items, plan);
            let added = plan.items.iter().map(|planned| &planned.item);
            for item in added {
                if !draft.status.items.iter().any(|known| known.name == item.name) {
                    draft.status.items.push(item.clone());
                }
            }
            let text = format!("Operator upgraded from {old} to {version}");
            let advice = "Regenerate plan (action=DryRun) to review proposed changes.";
            draft.set_condition(UPGRADE, true, "LogicChanged", &format!("{text} with profile logic changes. {advice}"));
            let message = format!("{text} - profile logic changes detected");
            match draft.phase() {
                Phase::Drifted => {}
                Phase::CompletedWithUpgrade => draft.enter_phase(Phase::CompletedWithUpgrade, message),
                _ => draft.transition(UpgradeFound, message),
            }
            draft.requeue_for_recheck()
        }
        Some(plan) => {
            draft.adopt_plan(plan);
            adopt_items(&mut draft, &plan.facts);
            settle_upgrade(&mut draft, "ManuallyAligned", ALIGNED);
            settled(draft)
        }
    }
}

/// Whether the targets contain everything that would be applied. A dry run has to confirm it.
pub(super) fn is_aligned(plan_draft: &Draft, facts: &Facts) -> bool {
    plan_draft.intents.iter().all(|intent| match (&intent.change, facts.object(&intent.target)) {
        (Change::Apply { fields, .. }, live) => live.is_some_and(|live| drift::contains(live, fields)),
        (Change::Delete, live) => live.is_none(),
    })
}

fn settled(mut draft: StatusDraft<'_>) -> Decision {
    let is_in_progress = draft.status.items.iter().any(|item| item.state == ItemState::InProgress);
    match draft.phase() {
        // Whether drift is gone and in effect is decided as without an upgrade.
        Phase::Drifted => return draft.decide_again(),
        _ if is_in_progress => {
            draft.transition(RolloutResumed, "");
            return draft.decide_again();
        }
        Phase::CompletedWithUpgrade => draft.transition(UpgradeSettled, ""),
        _ => {}
    }
    draft.requeue_for_recheck()
}
