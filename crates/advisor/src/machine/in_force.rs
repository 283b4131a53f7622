//! Watching what is in force: whether its prerequisites are there, its inputs the same, its targets as they were left, and
//! whether this version of the operator would do it differently.

use api::virt_platform_config::{Action, Item, ItemState, Operation, Phase};
use serde_json::Value;

use super::{
    Decision,
    Event::{DriftFound, DriftGone, EffectLost, InputsChanged, PrerequisitesMissing, SomeFailed, SpecChanged},
    News, Next, NoPlan, after,
    desk::{Desk, FORCED_REVIEW},
    drift_text,
    execution::enter,
    inputs, remediation, upgrade,
};
use crate::{Draft, Effect, Facts, Plan, Planner, diff, drift, profile::missing};

pub(super) fn in_force(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    if desk.spec_is_new() {
        return spec_changed(desk);
    }
    let (facts, plan) = match news {
        News::Saw(facts) => (*facts, None),
        News::Drew(Ok(plan)) => (&plan.facts, Some(*plan)),
        News::Drew(Err(NoPlan::Missing(missing))) => return prerequisites_gone(desk, missing),
        News::Drew(Err(_)) => return desk.rest(),
        News::Nothing | News::Wrote { .. } => return desk.next(Next::Look),
    };
    let Some(planner) = desk.planner() else { return desk.rest() };
    if let Some(missing) = missing(&planner.requirements(facts), facts) {
        return prerequisites_gone(desk, &missing);
    }
    let draft = planner.plan(facts);
    if let Some(change) = inputs::changed(planner.as_ref(), &desk.status.inputs, &desk.status.items, &draft) {
        return inputs_changed(desk, &change);
    }
    let is_upgraded = desk.status.operator_version.as_deref() != Some(desk.observed.version);
    // Somebody who has done by hand what this version would do has not caused drift.
    if is_upgraded && upgrade::is_aligned(&draft, facts) {
        return upgrade::upgrade(desk, &draft, plan);
    }
    let mut items = desk.status.items.clone();
    if mark_drift(&mut items, facts) {
        // The diff of a plan drawn up now shows what is different; it is told together with it.
        let Some(plan) = plan else { return desk.next(Next::DrawUp) };
        desk.status.items = items;
        return drifted(desk, plan);
    }
    desk.status.items = items;
    if desk.phase() == Phase::Drifted {
        return drift_gone(desk);
    }
    if let Some(lost) = effect_lost(&mut desk, planner.as_ref(), facts) {
        return desk.next(lost);
    }
    if is_upgraded || desk.phase() == Phase::CompletedWithUpgrade {
        return upgrade::upgrade(desk, &draft, plan);
    }
    if let Some(item) = inputs::differs(&desk.status.items, &draft) {
        let change = inputs::different(item);
        return plan_changed(desk, &change);
    }
    keep_inputs(&mut desk, &draft);
    desk.rest()
}

/// An item that is no longer in effect is waited for again, and says why.
fn effect_lost(desk: &mut Desk<'_>, planner: &dyn Planner, facts: &Facts) -> Option<Next> {
    if after(desk.phase(), EffectLost) == desk.phase() {
        return None;
    }
    let now = desk.now();
    let mut is_lost = false;
    for item in desk.status.items.iter_mut().filter(|item| item.state == ItemState::Completed) {
        if let (Operation::Apply, Effect::Refused(why)) = (item.operation, planner.effect(item, facts)) {
            is_lost = true;
            item.waiting_since = Some(now.clone());
            enter(item, ItemState::InProgress, why, &now.0);
        }
    }
    is_lost.then(|| {
        desk.on(EffectLost, "");
        Next::Continue
    })
}

fn spec_changed(mut desk: Desk<'_>) -> Decision {
    let message = match desk.phase() {
        _ if desk.options_changed() => "Options changed - regenerating plan",
        Phase::CompletedWithUpgrade => "User regenerating plan to adopt operator upgrade",
        _ => "Regenerating after spec change",
    };
    desk.status.reverts.clear();
    desk.on(SpecChanged, message);
    desk.next(Next::Continue)
}

/// What the plan needs has gone after it was applied. When it is back, a person looks first.
fn prerequisites_gone(mut desk: Desk<'_>, missing: &str) -> Decision {
    demand_review_of_vanished(&mut desk, missing);
    desk.on(PrerequisitesMissing, missing);
    desk.rest_until_available()
}

pub(super) fn demand_review_of_vanished(desk: &mut Desk<'_>, missing: &str) {
    let message = format!("Prerequisites vanished after the plan was applied. {missing}");
    desk.mark(FORCED_REVIEW, true, "PrerequisitesVanished", &message);
}

fn inputs_changed(mut desk: Desk<'_>, change: &str) -> Decision {
    desk.mark(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {change}"));
    desk.on(InputsChanged, "");
    desk.next(Next::Continue)
}

/// The plan would come out differently and no input says why. Where nothing is applied without an edit, there is no review to
/// force.
fn plan_changed(mut desk: Desk<'_>, change: &str) -> Decision {
    if desk.observed.spec.action == Action::Apply {
        return inputs_changed(desk, change);
    }
    desk.on(InputsChanged, "");
    desk.next(Next::Continue)
}

/// Inputs that changed without consequences are recorded, so that the next change is told from what is.
fn keep_inputs(desk: &mut Desk<'_>, draft: &Draft) {
    let mut now: Vec<_> = Vec::new();
    for input in draft.intents.iter().flat_map(|intent| &intent.inputs) {
        if !now.contains(input) {
            now.push(input.clone());
        }
    }
    desk.status.inputs = now;
}

fn drifted(mut desk: Desk<'_>, plan: &Plan) -> Decision {
    show(&mut desk.status.items, plan);
    if desk.phase() != Phase::Drifted {
        desk.on(DriftFound, "");
        return desk.next(Next::Continue);
    }
    remediation::remediate(desk, plan)
}

fn drift_gone(mut desk: Desk<'_>) -> Decision {
    for item in desk.status.items.iter_mut().filter(|item| item.applied_fingerprint.is_some()) {
        item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
    }
    let some_failed = desk.status.items.iter().any(|item| item.state == ItemState::Failed);
    match some_failed {
        true => desk.on(SomeFailed, "Plan completed with some errors"),
        false => desk.on(DriftGone, ""),
    }
    desk.next(Next::Continue)
}

/// Notes on each item whether it drifted and by whom. Whether any did.
pub(super) fn mark_drift(items: &mut [Item], facts: &Facts) -> bool {
    let mut any = false;
    for item in items {
        let Some(baseline) = &item.applied_fingerprint else { continue };
        let Some(live) = object_of(item, facts) else { continue };
        let drifted = *baseline != drift::fingerprint(item, live);
        any |= drifted;
        match (drifted, &item.drifted_by) {
            (true, _) => {
                let by = drift::culprit(item, live);
                item.message = Some(drift_text::item_message(&item.target_ref, live, &by));
                item.drifted_by = Some(by);
            }
            (false, Some(_)) => {
                item.drifted_by = None;
                item.message = Some("Back in desired state".into());
            }
            (false, None) => {}
        }
    }
    any
}

/// The target of an item, if it was looked for: then it is there or not.
pub(super) fn object_of<'a>(item: &Item, facts: &'a Facts) -> Option<Option<&'a Value>> {
    facts.target(&item.target_ref)
}

/// Puts the diffs of a plan on the items they belong to.
pub(super) fn show(items: &mut [Item], plan: &Plan) {
    for item in items {
        let planned = plan.items.iter().find(|planned| planned.item.name == item.name);
        if let Some(diff) = planned.and_then(|planned| planned.item.diff.clone()) {
            item.diff = Some(diff);
        }
    }
}
