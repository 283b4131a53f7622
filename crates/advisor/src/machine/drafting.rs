//! The phases Drafting, PrerequisiteFailed and Failed: which phase follows from a plan, or from the error of making one.

use api::virt_platform_config::{Action, ApprovalMode, Item, ItemState, ORIGINAL, Phase, Restore};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::{
    Decision, Explanation, Input, PlanFailure, Request,
    Trigger::{
        OptionsInvalid, PlanApproved, PlanConverging, PlanDrafted, PlanEmpty, PlanRefused, PrerequisitesAvailable,
        PrerequisitesMissing, SpecChanged,
    },
    approval::{self, MayApply, may_apply},
    execution::in_progress,
    progress::{Progress, progress},
    status_draft::{FORCED_REVIEW, StatusDraft, UPGRADE},
};
use crate::{Facts, Plan, Refusal, autopilot::AUTOPILOT_MANAGES};

/// The reason of a plan that is in effect and has restored something.
pub const RESTORED: &str = "Restored";

const REVIEW: &str = "Plan ready for review. Change action to 'Apply' to execute.";
const REVIEW_AGAIN: &str = "Plan ready for review. It was made again while action was 'Apply' and needs a new \
                            approval: change action to 'DryRun' and back to 'Apply' to execute.";

pub(super) fn drafting(draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    match input {
        Input::Plan(Ok(plan)) => plan_made(draft, plan),
        Input::Plan(Err(error)) => plan_failed(draft, error),
        _ => draft.request(Request::MakePlan),
    }
}

/// Something is missing. A new plan says whether it still is.
pub(super) fn prerequisite_failed(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    if draft.spec_is_new() {
        draft.transition(SpecChanged, "Retrying after spec change");
        return draft.decide_again();
    }
    match input {
        Input::Plan(Err(error)) => plan_failed(draft, error),
        Input::Plan(Ok(plan)) if obstacle(plan).is_some() => plan_made(draft, plan),
        Input::Plan(Ok(_)) => {
            draft.transition(PrerequisitesAvailable, "Prerequisites now available");
            draft.decide_again()
        }
        _ => draft.request(Request::MakePlan),
    }
}

/// A plan that was refused before any write is made again from time to time, because the cause may be removed without any event. A
/// plan that failed after a write waits for a person.
pub(super) fn failed(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    let is_refused = |item: &Item| item.state == ItemState::Failed && item.last_transition_time.is_none();
    if !draft.status.items.iter().any(is_refused) {
        return draft.await_change();
    }
    match input {
        Input::Plan(Ok(plan)) if draft.status.plan_digest.as_ref() != Some(&plan.digest) => {
            draft.transition(PrerequisitesAvailable, "The plan would come out differently now");
            draft.decide_again()
        }
        Input::Plan(_) => draft.requeue_for_prerequisites(),
        _ => draft.request(Request::MakePlan),
    }
}

pub(super) fn plan_failed(mut draft: StatusDraft<'_>, error: &PlanFailure) -> Decision {
    let interval = draft.observed.intervals.prerequisites;
    let retry_after = match error {
        PlanFailure::InvalidOptions(error) => {
            draft.transition(
                OptionsInvalid,
                Explanation::with_reason(error.reason(), format!("Invalid profile options: {error}")),
            );
            None
        }
        PlanFailure::Missing(missing) => {
            draft.transition(PrerequisitesMissing, missing.as_str());
            Some(interval)
        }
        PlanFailure::Impossible(why) => {
            draft.transition(PlanRefused, format!("Failed to generate plan items: {why}"));
            (draft.phase() == Phase::PrerequisiteFailed).then_some(interval)
        }
    };
    match retry_after {
        Some(wait) => draft.requeue_after(wait),
        None => draft.await_change(),
    }
}

/// A plan was made: completed, refused, for review, or approved already.
pub(super) fn plan_made(mut draft: StatusDraft<'_>, plan: &Plan) -> Decision {
    if let Some(refusal) = obstacle(plan) {
        draft.transition(PrerequisitesMissing, Explanation::with_reason(refusal.reason(), refusal.to_string()));
        return draft.requeue_for_prerequisites();
    }
    review_restore(&mut draft, plan);
    draft.adopt_plan(plan);
    if let Some(refusal) = plan.refusals().next() {
        draft.transition(
            PlanRefused,
            Explanation::with_reason(refusal.reason(), format!("Failed to generate plan items: {refusal}")),
        );
        return draft.requeue_for_prerequisites();
    }
    if !plan.has_changes() && is_left_to_autopilot(&draft, plan) {
        return to_review(draft);
    }
    if !plan.has_changes() {
        return nothing_to_do(draft, &plan.facts);
    }
    if draft.observed.spec.action != Action::Apply || draft.has_condition(FORCED_REVIEW) {
        return to_review(draft);
    }
    match may_apply(&draft) {
        MayApply::No(explanation) => {
            draft.transition(PlanDrafted, explanation);
            draft.requeue_for_recheck()
        }
        MayApply::At(start) => approval::schedule(draft, start),
        MayApply::Now => {
            approval::start(&mut draft);
            draft.transition(PlanApproved, "");
            in_progress(draft, &Input::Plan(Ok(plan)))
        }
    }
}

/// Whoever begins or ends a restore has not read its plan, unless they name it.
fn review_restore(draft: &mut StatusDraft<'_>, plan: &Plan) {
    let spec = draft.observed.spec;
    let named = spec.approval.as_ref().and_then(|approval| approval.plan_digest.as_ref());
    if draft.restore_changed() && spec.action == Action::Apply && named != Some(&plan.digest) && plan.has_changes() {
        let message = match &spec.restore {
            Some(restore) => format!("The plan restores {}", described(restore)),
            None => "The profile is to be applied again after a restore".to_owned(),
        };
        draft.set_condition(FORCED_REVIEW, true, "RestoreChanged", &message);
    }
}

/// What is restored, in words.
fn described(restore: &Restore) -> String {
    match restore.record.as_str() {
        ORIGINAL => "what was there before the configuration managed anything".to_owned(),
        record => format!("what was there before the plan of {record}"),
    }
}

/// The message of a plan that is in effect, if it was one that restores.
pub(super) fn restored(draft: &StatusDraft<'_>) -> Option<Explanation> {
    let restore = draft.observed.spec.restore.as_ref()?;
    let message = format!(
        "Restored {}. The configuration manages nothing. To apply the profile again, remove spec.restore; to delete the \
         configuration, nothing more has to be done.",
        described(restore)
    );
    Some(Explanation::with_reason(RESTORED, message))
}

/// Whether a person still has to know that applied items are not managed here any more.
fn is_left_to_autopilot(draft: &StatusDraft<'_>, plan: &Plan) -> bool {
    let is_why = |known: &Condition| known.type_ == FORCED_REVIEW && known.reason == AUTOPILOT_MANAGES;
    !plan.left_out.is_empty() && draft.status.conditions.iter().any(|known| is_why(known) && known.status == "True")
}

pub(super) fn to_review(mut draft: StatusDraft<'_>) -> Decision {
    let explanation = review_explanation(&draft);
    draft.transition(PlanDrafted, explanation);
    draft.requeue_for_recheck()
}

/// The message of a plan that waits for a review.
pub(super) fn review_explanation(draft: &StatusDraft<'_>) -> Explanation {
    // A new plan does not make an approval of another one right.
    if draft.observed.spec.action == Action::Apply
        && let MayApply::No(explanation) = may_apply(draft)
    {
        return explanation;
    }
    if approval::is_rejected(draft) {
        return approval::rejected(draft);
    }
    if approval::mode(draft) == ApprovalMode::Reviewed {
        return approval::unnamed(draft);
    }
    if draft.observed.spec.action == Action::Apply { REVIEW_AGAIN.into() } else { REVIEW.into() }
}

/// A refusal whose cause lies outside of the plan and may be removed at any time. Then the plan is made again without an edit.
fn obstacle(plan: &Plan) -> Option<&Refusal> {
    let is_one = |refusal: &&Refusal| {
        use Refusal::{Forbidden, KindTerminating, NamespaceMissing};
        matches!(refusal, NamespaceMissing { .. } | Forbidden { .. } | KindTerminating { .. })
    };
    plan.refusals().find(is_one)
}

/// Takes the items of a plan that changes nothing for applied. The nodes may still be taking over what was applied earlier.
pub(super) fn adopt_items(draft: &mut StatusDraft<'_>, facts: &Facts) {
    let (now, planner) = (draft.now(), draft.planner());
    for item in &mut draft.status.items {
        item.applied_fingerprint = item.source_fingerprint.clone();
        item.last_transition_time = Some(now.clone());
        (item.state, item.message) = match progress(item, facts, planner.as_deref()) {
            // Following it sets the message.
            Progress::Waiting(_) | Progress::Rolling(_) => {
                item.waiting_since = Some(now.clone());
                (ItemState::InProgress, None)
            }
            Progress::Settled | Progress::Done(_) => (ItemState::Completed, Some("Already in desired state".into())),
        };
    }
}

/// Everything is as planned.
fn nothing_to_do(mut draft: StatusDraft<'_>, facts: &Facts) -> Decision {
    adopt_items(&mut draft, facts);
    if draft.has_condition(FORCED_REVIEW) {
        let message = "Input dependency drift resolved - external changes reverted";
        draft.set_condition(FORCED_REVIEW, false, "DriftResolved", message);
    }
    draft.update_snapshot();
    if draft.status.items.iter().any(|item| item.state == ItemState::InProgress) {
        draft.transition(PlanConverging, "");
        return in_progress(draft, &Input::Facts(facts));
    }
    settle_upgrade(&mut draft, "Applied", "Upgrade changes applied");
    let message = restored(&draft).unwrap_or_default();
    draft.transition(PlanEmpty, message);
    draft.requeue_for_recheck()
}

/// Clears the condition that this version of the operator would plan differently.
pub(super) fn settle_upgrade(draft: &mut StatusDraft<'_>, reason: &str, message: &str) {
    if draft.has_condition(UPGRADE) {
        draft.set_condition(UPGRADE, false, reason, message);
    }
}
