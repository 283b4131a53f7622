//! The phases ReviewRequired and Scheduled: waits for a person, acts on the answer, and waits for the time of an approved plan.

use api::virt_platform_config::{Action, Item, Operation, Phase};

use super::{
    Decision, Explanation, Input, PlanFailure, Request,
    Trigger::{ApprovalLapsed, PlanStale, PrerequisitesMissing, ReviewPassed, SpecChanged, StartTimeReached},
    applied::live_target,
    approval::{self, MayApply, may_apply},
    drafting::{plan_failed, plan_made, review_explanation},
    drift_text,
    execution::{STALE, in_progress},
    plan_inputs,
    status_draft::{FORCED_REVIEW, StatusDraft},
};
use crate::{Facts, Plan, PlannedItem, Refusal, drift, profile::missing};

/// The reason of condition ReviewRequired when targets are no longer as the plan found them.
pub const PLAN_STALE: &str = "PlanStale";

pub(super) fn review_required(draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    if draft.spec_is_new() { answered(draft, input) } else { wait(draft, input) }
}

/// The plan is approved. It is applied when its time has come.
pub(super) fn scheduled(draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    if draft.spec_is_new() {
        return answered(draft, input);
    }
    match (may_apply(&draft), input) {
        (MayApply::No(explanation), _) => lapse(draft, explanation),
        (MayApply::At(_), _) => wait(draft, input),
        (MayApply::Now, Input::Plan(Ok(plan))) => compare(draft, plan),
        (MayApply::Now, Input::Plan(Err(error))) => plan_failed(draft, error),
        (MayApply::Now, _) => draft.request(Request::MakePlan),
    }
}

/// The spec was edited: an approval, other options, or an acknowledgment.
fn answered(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    let options_changed = draft.options_changed();
    if options_changed || draft.observed.spec.action != Action::Apply {
        // A person who edits options has not read the plan that follows from them.
        if !options_changed {
            draft.acknowledge(FORCED_REVIEW);
        }
        let message =
            if options_changed { "Options changed - regenerating plan" } else { "Regenerating after spec change" };
        draft.transition(SpecChanged, message);
        return draft.decide_again();
    }
    if let MayApply::No(explanation) = may_apply(&draft) {
        draft.enter_phase(Phase::ReviewRequired, explanation);
        return draft.requeue_for_recheck();
    }
    match input {
        Input::Plan(Ok(plan)) => compare(draft, plan),
        Input::Plan(Err(error)) => plan_failed(draft, error),
        _ => draft.request(Request::MakePlan),
    }
}

/// A person approved the plan that they read. It is applied if a new plan is the same.
fn compare(mut draft: StatusDraft<'_>, plan: &Plan) -> Decision {
    if draft.status.plan_digest.as_deref() == Some(&plan.digest) || only_removals_are_done(&draft, plan) {
        return start(draft, plan);
    }
    if !plan.has_changes() {
        draft.acknowledge(FORCED_REVIEW);
        return plan_made(draft, plan);
    }
    // A conflict with another profile says more than a stale plan.
    if plan.refusals().any(|refusal| matches!(refusal, Refusal::ProfileConflict { .. })) {
        return plan_made(draft, plan);
    }
    let moved = draft.status.source_snapshot_hash.as_deref() != Some(&plan.snapshot);
    let rederived = |name: &str| plan.items.iter().find(|planned| planned.item.name == name);
    let same_items = draft.status.items.len() == plan.items.len()
        && draft
            .status
            .items
            .iter()
            .all(|item| rederived(&item.name).is_some_and(|new| plan_inputs::is_same(&new.item, item)));
    if moved && same_items && draft.status.inputs == plan.inputs {
        if draft.may_overwrite() && plan.refusals().next().is_none() {
            draft.adopt_plan(plan);
            return start(draft, plan);
        }
        draft.transition(PlanStale, Explanation::with_reason(PLAN_STALE, STALE));
        return draft.await_change();
    }
    let left_out = || plan.left_out.iter().find(|left| draft.status.items.iter().any(|item| item.name == left.item));
    let why = plan_inputs::describe(&draft, plan)
        .or_else(|| left_out().map(|left| left.why.clone()))
        .unwrap_or_else(|| "the plan came out differently when it was approved".into());
    draft.set_condition(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {why}"));
    plan_made(draft, plan)
}

/// Applies the plan, or waits for its time.
fn start(mut draft: StatusDraft<'_>, plan: &Plan) -> Decision {
    draft.acknowledge(FORCED_REVIEW);
    if let MayApply::At(start) = may_apply(&draft) {
        return approval::schedule(draft, start);
    }
    approval::start(&mut draft);
    draft.transition(if draft.phase() == Phase::Scheduled { StartTimeReached } else { ReviewPassed }, "");
    in_progress(draft, &Input::Plan(Ok(plan)))
}

/// Whether the new plan is the one that was read, without removals whose targets do not exist any more.
fn only_removals_are_done(draft: &StatusDraft<'_>, plan: &Plan) -> bool {
    let items = &draft.status.items;
    let is_kept = |planned: &PlannedItem| {
        let fingerprint = Some(&planned.fingerprint);
        items
            .iter()
            .any(|item| plan_inputs::is_same(&planned.item, item) && item.source_fingerprint.as_ref() == fingerprint)
    };
    let is_gone =
        |item: &Item| item.operation == Operation::Delete && plan.facts.target(&item.target_ref) == Some(None);
    let is_planned = |item: &Item| plan.items.iter().any(|planned| planned.item.name == item.name);
    draft.status.inputs == plan.inputs
        && items.iter().any(is_gone)
        && items.iter().all(|item| is_planned(item) || is_gone(item))
        && plan.items.iter().all(is_kept)
}

/// The spec was not edited. If inputs change, the plan is replaced; if targets change, the plan stays and the message says so.
fn wait(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    let facts = match input {
        Input::Facts(facts) => *facts,
        Input::Plan(Ok(plan)) => &plan.facts,
        Input::Plan(Err(error @ PlanFailure::Missing(_))) => return plan_failed(draft, error),
        Input::Plan(Err(_)) => return draft.requeue_for_recheck(),
        Input::None | Input::Write { .. } => return draft.request(Request::FetchFacts),
    };
    let Some(planner) = draft.planner() else { return draft.await_change() };
    if let Some(missing) = missing(&planner.requirements(facts), facts) {
        draft.transition(PrerequisitesMissing, missing);
        return draft.requeue_for_prerequisites();
    }
    let plan_draft = planner.plan(facts);
    let moved = moved(&draft, facts);
    let change = plan_inputs::changed(planner.as_ref(), &draft.status.inputs, &draft.status.items, &plan_draft);
    let change = change.or_else(|| {
        // A plan may also differ because its target changed, and that is reported as such.
        let item = plan_inputs::differs(&draft.status.items, &plan_draft).filter(|_| moved.is_none())?;
        Some(plan_inputs::different(item, &plan_draft.left_out))
    });
    if let Some(change) = change {
        let Input::Plan(Ok(plan)) = input else { return draft.request(Request::MakePlan) };
        draft.set_condition(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {change}"));
        return plan_made(draft, plan);
    }
    let may_apply = may_apply(&draft);
    if let (Phase::Scheduled, MayApply::At(start)) = (draft.phase(), &may_apply) {
        return match moved.filter(|_| !draft.may_overwrite()) {
            Some(moved) => lapse(draft, moved),
            None => approval::schedule(draft, *start),
        };
    }
    let explanation = match may_apply {
        MayApply::No(explanation) if draft.observed.spec.action == Action::Apply => Some(explanation),
        _ => moved,
    };
    let explanation = explanation.unwrap_or_else(|| review_explanation(&draft));
    draft.enter_phase(Phase::ReviewRequired, explanation);
    draft.requeue_for_recheck()
}

/// The plan will not be applied when its time comes, so a person has to look at it again.
fn lapse(mut draft: StatusDraft<'_>, why: Explanation) -> Decision {
    draft.transition(ApprovalLapsed, why);
    draft.requeue_for_recheck()
}

/// The message about targets that are no longer as the plan found them.
fn moved(draft: &StatusDraft<'_>, facts: &Facts) -> Option<Explanation> {
    let moved: Vec<String> = draft
        .status
        .items
        .iter()
        .filter_map(|item| {
            let target = &item.target_ref;
            if facts.kind_is_gone(target) {
                return Some(format!(
                    "{} '{}' went with its kind, which is not served any more",
                    target.kind, target.name
                ));
            }
            let live = live_target(item, facts)?;
            let as_found = item.source_fingerprint.as_deref() == Some(&drift::fingerprint(item, live));
            (!as_found).then(|| drift_text::sentence(target, live, &drift::changed_by(item, live)))
        })
        .collect();
    let message = format!(
        "The plan is out of date and will not be applied. Since it was made, {}. To get a new one, change \
         action to 'Ignore' and back to 'DryRun', or edit the spec.",
        moved.join(", ")
    );
    (!moved.is_empty()).then(|| Explanation::with_reason(PLAN_STALE, message))
}
