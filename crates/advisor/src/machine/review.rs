//! Waiting for a person, and taking their answer.

use api::virt_platform_config::{Action, Item, Operation, Phase};

use super::{
    Decision,
    Event::{PlanStale, PrerequisitesMissing, ReviewPassed, SpecChanged},
    News, Next, NoPlan, Saying,
    desk::{Desk, FORCED_REVIEW},
    drafting::{drawn, mismatch, not_drawn, review_saying},
    drift_text,
    execution::{STALE, execution},
    in_force::object_of,
    inputs,
};
use crate::{Facts, Plan, PlannedItem, Refusal, drift, profile::missing};

pub(super) fn review(desk: Desk<'_>, news: &News<'_>) -> Decision {
    if desk.spec_is_new() { answered(desk, news) } else { wait(desk, news) }
}

/// The spec was edited: an approval, other options, or just an acknowledgement.
fn answered(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    let options_changed = desk.options_changed();
    if options_changed || desk.observed.spec.action != Action::Apply {
        // Whoever edits options has not read the plan that follows from them.
        if !options_changed {
            desk.acknowledge(FORCED_REVIEW);
        }
        let message =
            if options_changed { "Options changed - regenerating plan" } else { "Regenerating after spec change" };
        desk.on(SpecChanged, message);
        return desk.next(Next::Continue);
    }
    if let Some(saying) = mismatch(&desk) {
        desk.say(Phase::ReviewRequired, saying);
        return desk.rest();
    }
    match news {
        News::Drew(Ok(plan)) => approved(desk, plan),
        News::Drew(Err(no_plan)) => not_drawn(desk, no_plan),
        _ => desk.next(Next::DrawUp),
    }
}

/// Approved is the plan that was read. It is carried out if it still is the plan.
fn approved(mut desk: Desk<'_>, plan: &Plan) -> Decision {
    if desk.status.plan_digest.as_deref() == Some(&plan.digest) {
        desk.acknowledge(FORCED_REVIEW);
        desk.on(ReviewPassed, "");
        return execution(desk, &News::Drew(Ok(plan)));
    }
    if is_all_but_gone(&desk, plan) {
        desk.acknowledge(FORCED_REVIEW);
        desk.on(ReviewPassed, "");
        return execution(desk, &News::Drew(Ok(plan)));
    }
    if !plan.has_changes() {
        desk.acknowledge(FORCED_REVIEW);
        return drawn(desk, plan);
    }
    // That the target has moved is not the point when another profile has moved it.
    if plan.refusals().any(|refusal| matches!(refusal, Refusal::ProfileConflict { .. })) {
        return drawn(desk, plan);
    }
    let moved = desk.status.source_snapshot_hash.as_deref() != Some(&plan.snapshot);
    let rederived = |name: &str| plan.items.iter().find(|planned| planned.item.name == name);
    let same_items = desk.status.items.len() == plan.items.len()
        && desk
            .status
            .items
            .iter()
            .all(|item| rederived(&item.name).is_some_and(|new| inputs::is_same(&new.item, item)));
    if moved && same_items && desk.status.inputs == plan.inputs {
        let named = desk.observed.spec.approval.as_ref().is_some_and(|approval| approval.plan_digest.is_some());
        if desk.observed.spec.bypass_optimistic_lock && !named && plan.refusals().next().is_none() {
            desk.acknowledge(FORCED_REVIEW);
            desk.adopt(plan);
            desk.on(ReviewPassed, "");
            return execution(desk, &News::Drew(Ok(plan)));
        }
        desk.on(PlanStale, Saying::because("PlanStale", STALE));
        return desk.next(Next::Rest(None));
    }
    let why =
        inputs::describe(&desk, plan).unwrap_or_else(|| "the plan came out differently when it was approved".into());
    desk.mark(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {why}"));
    drawn(desk, plan)
}

/// Whether a plan is the one that was read, but for removals of what is not there any more.
fn is_all_but_gone(desk: &Desk<'_>, plan: &Plan) -> bool {
    let items = &desk.status.items;
    let is_kept = |planned: &PlannedItem| {
        let fingerprint = Some(&planned.fingerprint);
        items.iter().any(|item| inputs::is_same(&planned.item, item) && item.source_fingerprint.as_ref() == fingerprint)
    };
    let is_gone =
        |item: &Item| item.operation == Operation::Delete && plan.facts.target(&item.target_ref) == Some(None);
    let is_planned = |item: &Item| plan.items.iter().any(|planned| planned.item.name == item.name);
    desk.status.inputs == plan.inputs
        && items.iter().any(is_gone)
        && items.iter().all(|item| is_planned(item) || is_gone(item))
        && plan.items.iter().all(is_kept)
}

/// Nobody said anything. The plan is kept in step with its inputs; targets that moved are pointed out, and the plan that
/// somebody may be reading right now stays.
fn wait(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    let facts = match news {
        News::Saw(facts) => *facts,
        News::Drew(Ok(plan)) => &plan.facts,
        News::Drew(Err(no_plan @ NoPlan::Missing(_))) => return not_drawn(desk, no_plan),
        News::Drew(Err(_)) => return desk.rest(),
        News::Nothing | News::Wrote { .. } => return desk.next(Next::Look),
    };
    let Some(planner) = desk.planner() else { return desk.next(Next::Rest(None)) };
    if let Some(missing) = missing(&planner.requirements(facts), facts) {
        desk.on(PrerequisitesMissing, missing);
        return desk.rest_until_available();
    }
    let draft = planner.plan(facts);
    let moved = moved(&desk, facts);
    let change = inputs::changed(planner.as_ref(), &desk.status.inputs, &desk.status.items, &draft);
    let change = change.or_else(|| {
        // What a plan wants may follow from its target, too; then it is the target that moved.
        let item = inputs::differs(&desk.status.items, &draft).filter(|_| moved.is_none())?;
        Some(inputs::different(item))
    });
    if let Some(change) = change {
        let News::Drew(Ok(plan)) = news else { return desk.next(Next::DrawUp) };
        desk.mark(FORCED_REVIEW, true, "InputChanged", &format!("Input dependency changed: {change}"));
        return drawn(desk, plan);
    }
    let saying = mismatch(&desk).filter(|_| desk.observed.spec.action == Action::Apply);
    let saying = saying.or(moved).unwrap_or_else(|| review_saying(&desk));
    desk.say(Phase::ReviewRequired, saying);
    desk.rest()
}

/// The targets that are no longer as the plan found them.
fn moved(desk: &Desk<'_>, facts: &Facts) -> Option<Saying> {
    let moved: Vec<String> = desk
        .status
        .items
        .iter()
        .filter_map(|item| {
            let target = &item.target_ref;
            if facts.is_of_no_kind(target) {
                return Some(format!(
                    "{} '{}' went with its kind, which is not served any more",
                    target.kind, target.name
                ));
            }
            let live = object_of(item, facts)?;
            let as_found = item.source_fingerprint.as_deref() == Some(&drift::fingerprint(item, live));
            (!as_found).then(|| drift_text::sentence(target, live, &drift::culprit(item, live)))
        })
        .collect();
    let message = format!(
        "The plan is out of date and will not be applied. Since it was drawn up, {}. To draw it up again, change \
         action to 'Ignore' and back to 'DryRun', or edit the spec.",
        moved.join(", ")
    );
    (!moved.is_empty()).then(|| Saying::because("PlanStale", message))
}
