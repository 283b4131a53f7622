//! Compares an applied plan with the cluster: prerequisites, inputs, targets, and what this version of the operator would plan.

use std::time::Duration;

use api::virt_platform_config::{Action, FailurePolicy, Item, ItemState, Operation, Phase};
use serde_json::{Value, json};

use super::{
    Decision, Input, Outcome, PlanFailure, Request, Step,
    Trigger::{DriftFound, DriftGone, EffectLost, InputsChanged, RolloutResumed, SomeFailed, SpecChanged},
    after, drift_text,
    execution::{prerequisites_missing, set_state},
    late_pools, plan_inputs,
    progress::{Progress, completed_with_errors, follow, progress, watch_overtaken},
    remediation,
    status_draft::{FORCED_REVIEW, StatusDraft},
    upgrade,
};
use crate::{
    Draft, Effect, Facts, Plan, Planner,
    autopilot::{self, AUTOPILOT_MANAGES},
    diff, drift,
    profile::missing,
};

pub(super) fn check(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    if draft.spec_is_new() {
        return spec_changed(draft);
    }
    // A configuration that has given everything back manages nothing that could drift. Before that, it can.
    if draft.observed.spec.restore.is_some() && draft.phase() != Phase::Drifted {
        return draft.await_change();
    }
    let (facts, plan) = match input {
        Input::Facts(facts) => (*facts, None),
        Input::Plan(Ok(plan)) => (&plan.facts, Some(*plan)),
        Input::Plan(Err(PlanFailure::Missing(missing))) => return prerequisites_missing(draft, missing),
        Input::Plan(Err(_)) => return draft.requeue_for_recheck(),
        Input::None | Input::Write { .. } => return draft.request(Request::FetchFacts),
    };
    let Some(planner) = draft.planner() else { return draft.requeue_for_recheck() };
    if let Some(missing) = missing(&planner.requirements(facts), facts) {
        return prerequisites_missing(draft, &missing);
    }
    let plan_draft = planner.plan(facts);
    let mut items = draft.status.items.clone();
    let has_drifted = mark_drift(&mut items, facts);
    // What the autopilot has taken back is drift, although a new plan would leave it out.
    let is_taken = items.iter().any(autopilot::has_taken);
    if let Some(why) = plan_inputs::left_out(&items, &plan_draft).filter(|_| !is_taken) {
        return left_to_autopilot(draft, why);
    }
    let changed = plan_inputs::changed(planner.as_ref(), &draft.status.inputs, &draft.status.items, &plan_draft);
    if let Some(change) = changed.filter(|_| !is_taken) {
        return inputs_changed(draft, &change);
    }
    let is_upgraded = draft.status.operator_version.as_deref() != Some(draft.observed.version);
    // A change by hand that does what this version would do is not drift. Drift that is gone is, and comes first.
    let is_gone = draft.phase() == Phase::Drifted && !has_drifted;
    if is_upgraded && !is_taken && !is_gone && upgrade::is_aligned(&plan_draft, facts) {
        return upgrade::upgrade(draft, &plan_draft, plan);
    }
    if has_drifted {
        // The diff of a new plan shows the drift, so both are stored together.
        let Some(plan) = plan else { return draft.request(Request::MakePlan) };
        draft.status.items = items;
        watch_overtaken(&mut draft, facts);
        // What has not drifted goes on, and people have to know how.
        let requeue_after = follow(&mut draft, facts);
        return no_later(drifted(draft, plan), requeue_after);
    }
    if draft.phase() == Phase::Drifted {
        let set_back = draft.status.items.iter().filter(|item| item.drifted_by.is_some());
        let set_back: Vec<String> = set_back.map(|item| item.name.clone()).collect();
        draft.status.items = items;
        return drift_gone(draft, &set_back, facts);
    }
    draft.status.items = items;
    if effect_is_lost(&mut draft, planner.as_ref(), facts) {
        return draft.decide_again();
    }
    if is_upgraded || draft.phase() == Phase::CompletedWithUpgrade {
        return upgrade::upgrade(draft, &plan_draft, plan);
    }
    if let Some(item) = plan_inputs::differs(&draft.status.items, &plan_draft) {
        let change = plan_inputs::different(item, &plan_draft.left_out);
        return plan_changed(draft, &change);
    }
    keep_inputs(&mut draft, &plan_draft);
    draft.requeue_for_recheck()
}

/// The decision, with the next look after this time at the latest.
fn no_later(mut decision: Decision, wait: Duration) -> Decision {
    if let Step::Done(Outcome { requeue_after }) = &mut decision.step {
        *requeue_after = Some(requeue_after.map_or(wait, |known| known.min(wait)));
    }
    decision
}

/// Waits again for items that are no longer in effect, or not on all nodes; their messages say why. Whether there are any.
fn effect_is_lost(draft: &mut StatusDraft<'_>, planner: &dyn Planner, facts: &Facts) -> bool {
    if after(draft.phase(), EffectLost) == draft.phase() {
        return false;
    }
    let now = draft.now();
    let mut is_lost = false;
    for item in draft.status.items.iter_mut().filter(|item| item.state == ItemState::Completed) {
        let refused = match (item.operation, planner.effect(item, facts)) {
            (Operation::Apply, Effect::Refused(why)) => Some(why),
            _ => None,
        };
        if let Some(why) = refused.or_else(|| late_pools::reopened(item, facts, now.0)) {
            is_lost = true;
            item.waiting_since = Some(now.clone());
            set_state(item, ItemState::InProgress, why, &now.0);
        }
    }
    if is_lost {
        // Nobody has approved what a new version of the operator would add.
        draft.status.items.retain(|item| !plan_inputs::is_proposed(item));
        draft.transition(EffectLost, "");
    }
    is_lost
}

fn spec_changed(mut draft: StatusDraft<'_>) -> Decision {
    let message = match draft.phase() {
        _ if draft.options_changed() => "Options changed - regenerating plan",
        Phase::CompletedWithUpgrade => "User regenerating plan to adopt operator upgrade",
        _ => "Regenerating after spec change",
    };
    draft.status.reverts.clear();
    draft.transition(SpecChanged, message);
    draft.decide_again()
}

pub(super) fn require_review_of_missing(draft: &mut StatusDraft<'_>, missing: &str) {
    let message = format!("Prerequisites vanished after the plan was applied. {missing}");
    draft.set_condition(FORCED_REVIEW, true, "PrerequisitesVanished", &message);
}

fn inputs_changed(mut draft: StatusDraft<'_>, change: &str) -> Decision {
    draft.set_condition(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {change}"));
    draft.transition(InputsChanged, "");
    draft.decide_again()
}

/// An applied item would be left out. A person has to know that it is not managed here any more.
fn left_to_autopilot(mut draft: StatusDraft<'_>, why: &str) -> Decision {
    if draft.observed.spec.action == Action::Apply {
        draft.set_condition(FORCED_REVIEW, true, AUTOPILOT_MANAGES, why);
    }
    draft.transition(InputsChanged, "");
    draft.decide_again()
}

/// A new plan would be different although no input changed. Without `action: Apply` nothing is applied before an edit, so no review
/// has to be forced.
fn plan_changed(mut draft: StatusDraft<'_>, change: &str) -> Decision {
    if draft.observed.spec.action == Action::Apply {
        return inputs_changed(draft, change);
    }
    draft.transition(InputsChanged, "");
    draft.decide_again()
}

/// Records inputs that changed without consequences, so that the next change is compared with them.
fn keep_inputs(draft: &mut StatusDraft<'_>, plan_draft: &Draft) {
    let mut now: Vec<_> = Vec::new();
    for input in plan_draft.intents.iter().flat_map(|intent| &intent.inputs).chain(&plan_draft.inputs) {
        if !now.contains(input) {
            now.push(input.clone());
        }
    }
    draft.status.inputs = now;
}

fn drifted(mut draft: StatusDraft<'_>, plan: &Plan) -> Decision {
    copy_diffs(&mut draft.status.items, plan);
    show_taken(&mut draft.status.items, plan);
    if draft.phase() != Phase::Drifted {
        draft.transition(DriftFound, "");
        return draft.decide_again();
    }
    remediation::remediate(draft, plan)
}

/// `set_back` are the names of the items that had drifted. Their pools may have taken over the drift, or may be about to, and then
/// have to give it up.
fn drift_gone(mut draft: StatusDraft<'_>, set_back: &[String], facts: &Facts) -> Decision {
    let now = draft.now();
    for item in draft.status.items.iter_mut().filter(|item| set_back.contains(&item.name)) {
        let is_awaited = match item.state {
            ItemState::InProgress => true,
            ItemState::Completed => matches!(progress(item, facts, None), Progress::Rolling(_) | Progress::Done(_)),
            ItemState::Pending | ItemState::Failed => false,
        };
        // Only now can it get on, so the wait begins again.
        if is_awaited {
            item.rollout.clear();
            item.waiting_since = Some(now.clone());
            set_state(item, ItemState::InProgress, "Back in desired state, waiting for its effect".into(), &now.0);
        }
    }
    for item in draft.status.items.iter_mut().filter(|item| item.applied_fingerprint.is_some()) {
        item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
    }
    let is_any = |state: ItemState| draft.status.items.iter().any(|item| item.state == state);
    let is_aborted = is_any(ItemState::Failed) && draft.observed.spec.failure_policy == FailurePolicy::Abort;
    if is_any(ItemState::InProgress) || is_aborted {
        // Nobody has approved what a new version of the operator would add.
        draft.status.items.retain(|item| !plan_inputs::is_proposed(item));
        draft.transition(RolloutResumed, "");
    } else if is_any(ItemState::Failed) {
        let message = completed_with_errors(&draft.status.items);
        draft.transition(SomeFailed, message);
    } else {
        draft.transition(DriftGone, "");
    }
    draft.decide_again()
}

/// Notes on each item whether it drifted, and who changed it. Whether any item drifted.
pub(super) fn mark_drift(items: &mut [Item], facts: &Facts) -> bool {
    let mut any = false;
    for item in items {
        let Some(baseline) = &item.applied_fingerprint else { continue };
        let Some(live) = live_target(item, facts) else { continue };
        let drifted = *baseline != drift::fingerprint(item, live);
        any |= drifted;
        match (drifted, &item.drifted_by) {
            (true, _) => {
                let by = drift::changed_by(item, live);
                // Why an item failed is not told anywhere else.
                if item.state != ItemState::Failed {
                    item.message = Some(drift_text::item_message(item, live, &by));
                }
                item.drifted_by = Some(by);
            }
            (false, Some(_)) => {
                item.drifted_by = None;
                if item.state != ItemState::Failed {
                    item.message = Some("Back in desired state".into());
                }
            }
            (false, None) => {}
        }
    }
    any
}

/// Shows what the autopilot has changed, if a new plan leaves the item out and so has no diff of it.
fn show_taken(items: &mut [Item], plan: &Plan) {
    let is_left_out = |item: &Item| plan.left_out.iter().any(|left| left.item == item.name);
    for item in items.iter_mut().filter(|item| autopilot::has_taken(item) && is_left_out(item)) {
        let Some(Some(live)) = live_target(item, &plan.facts) else { continue };
        let after = drift::overlaid(live, &json!(item.desired_state));
        item.diff = Some(diff::diff(&item.target_ref.kind, &item.target_ref.name, Some(live), Some(&after)));
    }
}

/// The target of an item, if it is among the facts; inside, `None` is a target that does not exist.
pub(super) fn live_target<'a>(item: &Item, facts: &'a Facts) -> Option<Option<&'a Value>> {
    facts.target(&item.target_ref)
}

/// Copies the diffs of a plan to the items of the same names.
pub(super) fn copy_diffs(items: &mut [Item], plan: &Plan) {
    for item in items {
        let planned = plan.items.iter().find(|planned| planned.item.name == item.name);
        if let Some(diff) = planned.and_then(|planned| planned.item.diff.clone()) {
            item.diff = Some(diff);
        }
    }
}
