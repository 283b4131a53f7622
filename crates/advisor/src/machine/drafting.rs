//! From a plan, or the lack of one, to the phase that follows; and waiting for what a plan lacks.

use api::virt_platform_config::{Action, Item, ItemState, Phase};

use super::{
    Decision,
    Event::{
        OptionsInvalid, PlanApproved, PlanConverging, PlanDrafted, PlanEmpty, PlanRefused, PrerequisitesAvailable,
        PrerequisitesMissing, SpecChanged,
    },
    News, Next, NoPlan, Saying,
    desk::{Desk, FORCED_REVIEW, UPGRADE},
    execution::{Progress, execution, note_rolled_out, note_unnoticed, progress},
    inputs,
};
use crate::{Facts, Plan, Refusal};

const REVIEW: &str = "Plan ready for review. Change action to 'Apply' to execute.";
const REVIEW_AGAIN: &str = "Plan ready for review. It was drawn up again while action was 'Apply' and needs a new \
                            approval: change action to 'DryRun' and back to 'Apply' to execute.";

pub(super) fn drafting(desk: Desk<'_>, news: &News<'_>) -> Decision {
    match news {
        News::Drew(Ok(plan)) => drawn(desk, plan),
        News::Drew(Err(no_plan)) => not_drawn(desk, no_plan),
        _ => desk.next(Next::DrawUp),
    }
}

/// Something is missing. Whether it has appeared is for a new plan to tell.
pub(super) fn waiting(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    if desk.spec_is_new() {
        desk.on(SpecChanged, "Retrying after spec change");
        return desk.next(Next::Continue);
    }
    match news {
        News::Drew(Err(no_plan)) => not_drawn(desk, no_plan),
        News::Drew(Ok(plan)) if obstacle(plan).is_some() => drawn(desk, plan),
        News::Drew(Ok(_)) => {
            desk.on(PrerequisitesAvailable, "Prerequisites now available");
            desk.next(Next::Continue)
        }
        _ => desk.next(Next::DrawUp),
    }
}

/// A plan that was refused before anything of it was begun is drawn up again from time to time: a policy, a schema or a quota is
/// put right without anybody telling. One that failed on the way waits for a person.
pub(super) fn refused(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    let is_refused = |item: &Item| item.state == ItemState::Failed && item.last_transition_time.is_none();
    if !desk.status.items.iter().any(is_refused) {
        return desk.next(Next::Rest(None));
    }
    match news {
        News::Drew(Ok(plan)) if desk.status.plan_digest.as_ref() != Some(&plan.digest) => {
            desk.on(PrerequisitesAvailable, "The plan would come out differently now");
            desk.next(Next::Continue)
        }
        News::Drew(_) => desk.rest_until_available(),
        _ => desk.next(Next::DrawUp),
    }
}

pub(super) fn not_drawn(mut desk: Desk<'_>, no_plan: &NoPlan) -> Decision {
    let later = desk.observed.rhythm.prerequisites;
    let retry = match no_plan {
        NoPlan::InvalidOptions(error) => {
            desk.on(OptionsInvalid, Saying::because(error.reason(), format!("Invalid profile options: {error}")));
            None
        }
        NoPlan::Missing(missing) => {
            desk.on(PrerequisitesMissing, missing.as_str());
            Some(later)
        }
        NoPlan::Impossible(why) => {
            desk.on(PlanRefused, format!("Failed to generate plan items: {why}"));
            (desk.phase() == Phase::PrerequisiteFailed).then_some(later)
        }
    };
    desk.next(Next::Rest(retry))
}

/// There is a plan: is anything to be done, and who has to say so?
pub(super) fn drawn(mut desk: Desk<'_>, plan: &Plan) -> Decision {
    if let Some(refusal) = obstacle(plan) {
        desk.on(PrerequisitesMissing, Saying::because(refusal.reason(), refusal.to_string()));
        return desk.rest_until_available();
    }
    let before = std::mem::take(&mut desk.status.items);
    desk.adopt(plan);
    if let Some(refusal) = plan.refusals().next() {
        desk.on(PlanRefused, Saying::because(refusal.reason(), format!("Failed to generate plan items: {refusal}")));
        return desk.rest_until_available();
    }
    if !plan.has_changes() {
        return nothing_to_do(desk, &plan.facts);
    }
    if desk.observed.spec.action != Action::Apply || desk.is_marked(FORCED_REVIEW) {
        return to_review(desk);
    }
    match mismatch(&desk) {
        Some(saying) => {
            desk.on(PlanDrafted, saying);
            desk.rest()
        }
        None => {
            for item in &mut desk.status.items {
                let is_it = |known: &&Item| known.state == ItemState::Completed && inputs::is_same(known, item);
                if let Some(rolled_out) = before.iter().find(is_it) {
                    note_unnoticed(item, rolled_out);
                }
            }
            desk.on(PlanApproved, "");
            execution(desk, &News::Drew(Ok(plan)))
        }
    }
}

pub(super) fn to_review(mut desk: Desk<'_>) -> Decision {
    let saying = review_saying(&desk);
    desk.on(PlanDrafted, saying);
    desk.rest()
}

/// What a plan that waits for a person says.
pub(super) fn review_saying(desk: &Desk<'_>) -> Saying {
    let again = desk.observed.spec.action == Action::Apply && desk.is_marked(FORCED_REVIEW);
    if again { REVIEW_AGAIN.into() } else { REVIEW.into() }
}

/// What there is to say to an approval of another plan.
pub(super) fn mismatch(desk: &Desk<'_>) -> Option<Saying> {
    let named = desk.mismatched_approval()?;
    let current = desk.status.plan_digest.as_deref().unwrap_or("none");
    let message = format!(
        "The approval names plan {named}, the current plan is {current}: nothing is applied. Read the current plan and set \
         spec.approval.planDigest to its digest, or remove it."
    );
    Some(Saying::because("ApprovalMismatch", message))
}

/// What has to be put right outside the plan, and may be at any moment: then it is tried again without anybody asking.
fn obstacle(plan: &Plan) -> Option<&Refusal> {
    let is_one = |refusal: &&Refusal| matches!(refusal, Refusal::NamespaceMissing { .. } | Refusal::Forbidden { .. });
    plan.refusals().find(is_one)
}

/// Everything is as planned; what was applied earlier may still be on its way to the nodes.
fn nothing_to_do(mut desk: Desk<'_>, facts: &Facts) -> Decision {
    let (now, planner) = (desk.now(), desk.planner());
    for item in &mut desk.status.items {
        item.applied_fingerprint = item.source_fingerprint.clone();
        item.last_transition_time = Some(now.clone());
        (item.state, item.message) = match progress(item, facts, planner.as_deref()) {
            Progress::Waiting(message) => {
                item.waiting_since = Some(now.clone());
                (ItemState::InProgress, Some(message))
            }
            Progress::Settled | Progress::Done(_) => {
                note_rolled_out(item, facts);
                (ItemState::Completed, Some("Already in desired state".into()))
            }
        };
    }
    if desk.is_marked(FORCED_REVIEW) {
        let message = "Input dependency drift resolved - external changes reverted";
        desk.mark(FORCED_REVIEW, false, "DriftResolved", message);
    }
    desk.take_snapshot();
    if desk.status.items.iter().any(|item| item.state == ItemState::InProgress) {
        desk.on(PlanConverging, "");
        return execution(desk, &News::Saw(facts));
    }
    settle_upgrade(&mut desk, "Applied", "Upgrade changes applied");
    desk.on(PlanEmpty, "");
    desk.rest()
}

/// What this version would do has been done.
pub(super) fn settle_upgrade(desk: &mut Desk<'_>, reason: &str, message: &str) {
    if desk.is_marked(UPGRADE) {
        desk.mark(UPGRADE, false, reason, message);
    }
}
