//! Phase InProgress, first part: writes a plan, item by item.
//! An item is written only while its target is what the plan found, and only as the plan in the status says: a new plan is made
//! before each run, and its item must be the same.

use api::virt_platform_config::{Action, FailurePolicy, Item, ItemState, Operation, Phase};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::Value;

use super::{
    Decision, Explanation, Input, NotWritten, PlanFailure, Request,
    Trigger::{self, ApprovalWithdrawn, ItemFailed, PlanStale, PrerequisitesMissing, SpecChanged},
    Written,
    applied::{mark_drift, require_review_of_missing},
    approval::{self, Refused},
    plan_inputs,
    progress::{converge, follow, is_rolled_out, note_rendered, wait_for_pools, watch_overtaken},
    review::PLAN_STALE,
    status_draft::{FORCED_REVIEW, StatusDraft},
};
use crate::{
    Effect, Facts, PlannedItem, Verb, diff, drift,
    start_time::{StartTime, start_time},
};

pub(super) const STALE: &str = "Plan is stale: target resources have been modified since plan generation. Please \
                                regenerate the plan by changing action to DryRun, then review and re-approve.";

pub(super) fn in_progress(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    if let Some((trigger, message)) = withdrawn(&draft) {
        // What is left of the plan is another plan, which nobody has rejected.
        if approval::is_rejected(&draft) {
            let message = "The plan was rejected while it was being applied";
            draft.set_condition(FORCED_REVIEW, true, approval::REJECTED, message);
        }
        draft.transition(trigger, message);
        return draft.decide_again();
    }
    if draft.spec_is_new() {
        draft.enter_phase(Phase::InProgress, "");
    }
    let is_unrecorded = |name: &str| draft.status.items.iter().any(|item| item.name == name && is_unwritten(item));
    // The same result is the input of several decisions, and counts once.
    if let Input::Write { item, result, plan } = input
        && is_unrecorded(item)
    {
        if let (Some(record), false) = (&mut draft.status.record, matches!(result, Err(NotWritten::Unrecorded(_)))) {
            record.created = true;
        }
        match result {
            Ok(written) => item_written(&mut draft, item, written, &plan.facts),
            Err(NotWritten::Stale { target }) => return stale(draft, item, target),
            Err(error) => item_failed(&mut draft, item, format!("Failed to apply: {error}")),
        }
    }
    loop {
        if is_aborted(&mut draft) {
            return draft.await_change();
        }
        let Some(position) = draft.status.items.iter().position(is_unwritten) else { return converge(draft, input) };
        let plan = match input {
            Input::Plan(Ok(plan)) => plan,
            Input::Write { plan, .. } => plan,
            Input::Plan(Err(PlanFailure::Missing(missing))) => return prerequisites_missing(draft, missing),
            Input::Plan(Err(error)) => {
                let name = draft.status.items[position].name.clone();
                item_failed(&mut draft, &name, format!("Failed to apply: {error}"));
                continue;
            }
            _ => return draft.request(Request::MakePlan),
        };
        let item = &draft.status.items[position];
        let name = item.name.clone();
        if item.operation == Operation::Delete && plan.facts.target(&item.target_ref) == Some(None) {
            if item.state == ItemState::Pending {
                return confirm_absent(draft, position);
            }
            // Most likely the operator deleted it and the answer was lost.
            item_applied(&mut draft, &name, None, &plan.facts, "Already in desired state");
            continue;
        }
        if let Some(left) = plan.left_out.iter().find(|left| left.item == name) {
            item_failed(&mut draft, &name, format!("Failed to apply: {}", left.why));
            continue;
        }
        let planned = plan.items.iter().find(|planned| planned.item.name == name);
        // A restore follows from what is left to set back: when nothing is left, it is done.
        let is_done = |planned: &PlannedItem| planned.restores && planned.verb == Verb::Unchanged;
        let Some(planned) = planned.filter(|planned| is_done(planned) || plan_inputs::is_same(&planned.item, item))
        else {
            let target = format!("{} {}", item.target_ref.kind, item.target_ref.name);
            return stale(draft, &name, &target);
        };
        // The field manager follows from the ownership of fields, which may have changed since the plan was made.
        draft.status.items[position].field_manager.clone_from(&planned.item.field_manager);
        let item = &draft.status.items[position];
        if let Some(refusal) = &planned.refusal {
            item_failed(&mut draft, &name, format!("Failed to apply: {refusal}"));
            continue;
        }
        let live = plan.facts.object(&planned.target);
        if planned.verb == Verb::Unchanged {
            item_applied(&mut draft, &name, live, &plan.facts, "Already in desired state");
            continue;
        }
        let as_found = item.source_fingerprint.as_deref() == Some(&planned.fingerprint);
        // The answer to an earlier write may be lost, and the fields that it was to remove still exist.
        let has_second_step = planned.restores || !item.removes.is_empty();
        let is_half_done = item.state == ItemState::InProgress && has_second_step && drift::is_applied(item, live);
        if !as_found && !is_half_done && !draft.observed.spec.bypass_optimistic_lock {
            return stale(draft, &name, &planned.target.to_string());
        }
        if reboots(&planned.item) {
            match start_time(draft.observed.spec.approval.as_ref(), draft.observed.now) {
                StartTime::Now => {}
                StartTime::At(time) => return hold(draft, position, time, input),
                StartTime::Expired(_) | StartTime::Invalid(_) => {
                    draft.transition(ApprovalWithdrawn, "The approval has ended - regenerating plan");
                    return draft.decide_again();
                }
            }
        }
        return write(draft, position, planned);
    }
}

fn reboots(item: &Item) -> bool {
    item.impact_detail.as_ref().is_some_and(|detail| detail.reboot)
}

/// Starts nothing that reboots nodes before this time. Nodes that are being updated go on, and so does following them.
fn hold(mut draft: StatusDraft<'_>, position: usize, time: Timestamp, input: &Input<'_>) -> Decision {
    draft.status.items[position].message = Some(format!("Waits for its window, which opens at {time}"));
    let mut requeue_after = approval::until(&draft, time);
    if let Input::Plan(Ok(plan)) = input {
        mark_drift(&mut draft.status.items, &plan.facts);
        watch_overtaken(&mut draft, &plan.facts);
        requeue_after = requeue_after.min(follow(&mut draft, &plan.facts));
        if is_aborted(&mut draft) {
            return draft.await_change();
        }
    }
    draft.requeue_after(requeue_after)
}

/// Why the plan must not be applied any further, if the spec says so.
fn withdrawn(draft: &StatusDraft<'_>) -> Option<(Trigger, &'static str)> {
    let spec = draft.observed.spec;
    let unwritten = draft.status.items.iter().any(is_unwritten);
    if draft.spec_is_new() && draft.options_changed() {
        return Some((SpecChanged, "Options changed - regenerating plan"));
    }
    if spec.action != Action::Apply && (unwritten || draft.spec_is_new()) {
        return Some((ApprovalWithdrawn, "Approval withdrawn - regenerating plan"));
    }
    let start = spec.approval.as_ref().and_then(|approval| approval.not_before.as_ref());
    if unwritten && start.is_some_and(|start| start.0 > draft.observed.now) {
        return Some((ApprovalWithdrawn, "The plan was postponed - regenerating plan"));
    }
    let why = match approval::refused(draft).filter(|_| unwritten)? {
        Refused::Rejected => "Plan rejected - regenerating plan",
        Refused::OtherPlan => "Another plan was approved - regenerating plan",
        Refused::Unnamed | Refused::NotAccepted | Refused::RisksNotAccepted => "Approval withdrawn - regenerating plan",
    };
    Some((ApprovalWithdrawn, why))
}

fn is_unwritten(item: &Item) -> bool {
    item.applied_fingerprint.is_none() && matches!(item.state, ItemState::Pending | ItemState::InProgress)
}

/// Requests the write of one item. The status is stored first, so that a write whose answer is lost is noticed; then it is decided
/// again, because the window may have closed meanwhile.
fn write(mut draft: StatusDraft<'_>, position: usize, planned: &PlannedItem) -> Decision {
    let now = draft.now();
    // A revert of drift applies a plan that nobody had to approve, because it changed nothing when it was made.
    let recorded = draft.status.record.as_ref().map(|record| &record.plan_digest);
    if recorded != draft.status.plan_digest.as_ref() {
        approval::name_record(&mut draft);
    }
    let item = &mut draft.status.items[position];
    set_state(item, ItemState::InProgress, "Applying configuration...".into(), &now.0);
    item.source_fingerprint = Some(planned.fingerprint.clone());
    note_rendered(item, planned);
    let item = item.name.clone();
    if draft.status == *draft.observed.status {
        draft.request(Request::WriteItem { item })
    } else {
        draft.decide_again()
    }
}

/// The target is absent before the operator has deleted it: somebody else has, or the answer was old. A second answer decides.
fn confirm_absent(mut draft: StatusDraft<'_>, position: usize) -> Decision {
    let now = draft.observed.now;
    set_state(&mut draft.status.items[position], ItemState::InProgress, "Applying configuration...".into(), &now);
    draft.request(Request::MakePlan)
}

fn item_written(draft: &mut StatusDraft<'_>, name: &str, written: &Written, facts: &Facts) {
    let object = match written {
        Written::Applied(object) | Written::AlreadyApplied(object) => Some(object.as_ref()),
        Written::Gone => None,
    };
    item_applied(draft, name, object, facts, "Applied successfully");
}

/// `object` is the target after the write, the baseline for drift. `facts` may be older; they say whether an operator will report.
fn item_applied(draft: &mut StatusDraft<'_>, name: &str, object: Option<&Value>, facts: &Facts, message: &str) {
    let (now, planner, stuck_after) = (draft.now(), draft.planner(), draft.observed.intervals.stuck_after);
    let Some(item) = draft.status.items.iter_mut().find(|item| item.name == name) else { return };
    item.applied_fingerprint = Some(drift::fingerprint(item, object));
    item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
    item.drifted_by = None;
    let is_reported = planner.is_some_and(|planner| planner.effect(item, facts) != Effect::Unreported);
    let waits_for = match is_rolled_out(item) {
        true => Some("Applied, waiting for the nodes"),
        false => (object.is_some() && is_reported).then_some("Applied, waiting for its operator"),
    };
    wait_for_pools(item, facts, now.0, stuck_after);
    if let Some(waiting) = waits_for {
        item.waiting_since = Some(now.clone());
        set_state(item, ItemState::InProgress, waiting.into(), &now.0);
    } else {
        set_state(item, ItemState::Completed, message.into(), &now.0);
    }
    let item = item.clone();
    plan_inputs::settle(&mut draft.status.inputs, &item, object);
    draft.update_snapshot();
}

fn item_failed(draft: &mut StatusDraft<'_>, name: &str, message: String) {
    let now = draft.observed.now;
    if let Some(item) = draft.status.items.iter_mut().find(|item| item.name == name) {
        set_state(item, ItemState::Failed, message, &now);
    }
}

pub(super) fn set_state(item: &mut Item, state: ItemState, message: String, now: &Timestamp) {
    if item.state != state || item.last_transition_time.is_none() {
        item.last_transition_time = Some(Time(*now));
    }
    // Pools are waited for only while the item takes effect.
    if state != ItemState::InProgress {
        item.rollout.clear();
    }
    item.state = state;
    item.message = Some(message);
}

fn stale(mut draft: StatusDraft<'_>, name: &str, target: &str) -> Decision {
    item_failed(
        &mut draft,
        name,
        format!("{target} has been modified since the plan was made; nothing was written to it"),
    );
    draft.transition(PlanStale, Explanation::with_reason(PLAN_STALE, STALE));
    draft.await_change()
}

/// Something that the plan needs is gone. A person reviews the plan when it is back, because part of it may be applied.
pub(super) fn prerequisites_missing(mut draft: StatusDraft<'_>, missing: &str) -> Decision {
    require_review_of_missing(&mut draft, missing);
    draft.transition(PrerequisitesMissing, missing);
    draft.requeue_for_prerequisites()
}

/// Whether an item has failed under Abort. Then the plan has failed.
pub(super) fn is_aborted(draft: &mut StatusDraft<'_>) -> bool {
    let failed = draft.status.items.iter().find(|item| item.state == ItemState::Failed);
    let Some(failed) = failed.filter(|_| draft.observed.spec.failure_policy == FailurePolicy::Abort) else {
        return false;
    };
    let message = failed.message.clone().unwrap_or_default();
    let message = format!("Item '{}' failed: {}", failed.name, message.trim_start_matches("Failed to apply: "));
    draft.transition(ItemFailed, message);
    true
}
