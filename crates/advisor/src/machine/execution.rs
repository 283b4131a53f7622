//! Carrying out a plan item by item, and waiting for the effect.
//!
//! An item is written only while its target is what the plan found, and only what the plan in the status says: the plan is
//! derived anew before each run, and the item must come out the same.

use std::time::Duration;

use api::virt_platform_config::{Action, FailurePolicy, Item, ItemState, Operation, Phase};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::{Value, json};

use super::{
    Decision,
    Event::{AllApplied, ApprovalWithdrawn, ItemFailed, PlanStale, PrerequisitesMissing, SomeFailed, SpecChanged},
    News, Next, NoPlan, NotWritten, Saying, Written,
    conditions::condition,
    desk::Desk,
    drafting::settle_upgrade,
    in_force::{self, mark_drift},
    inputs,
};
use crate::{
    Effect, Facts, PlannedItem, Planner, Verb, diff, drift, kind, pools,
    profile::missing,
    rollout::{Rollout, Wanted, rollout},
};

pub(super) const STALE: &str = "Plan is stale: target resources have been modified since plan generation. Please \
                                regenerate the plan by changing action to DryRun, then review and re-approve.";

pub(super) fn execution(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    if let Some((event, message)) = withdrawn(&desk) {
        desk.on(event, message);
        return desk.next(Next::Continue);
    }
    if desk.spec_is_new() {
        desk.say(Phase::InProgress, "");
    }
    if let News::Wrote { item, result, plan } = news {
        match result {
            Ok(written) => wrote(&mut desk, item, written, &plan.facts),
            Err(NotWritten::Stale { target }) => return stale(desk, item, target),
            Err(error) => fail(&mut desk, item, format!("Failed to apply: {error}")),
        }
    }
    loop {
        if let Some(decision) = aborted(&mut desk) {
            return desk.next(decision);
        }
        let Some(position) = desk.status.items.iter().position(is_unwritten) else { return converge(desk, news) };
        let plan = match news {
            News::Drew(Ok(plan)) => plan,
            News::Wrote { plan, .. } => plan,
            News::Drew(Err(NoPlan::Missing(missing))) => return vanished(desk, missing),
            News::Drew(Err(no_plan)) => {
                let name = desk.status.items[position].name.clone();
                fail(&mut desk, &name, format!("Failed to apply: {no_plan}"));
                continue;
            }
            _ => return desk.next(Next::DrawUp),
        };
        let item = &desk.status.items[position];
        let name = item.name.clone();
        if item.operation == Operation::Delete && plan.facts.target(&item.target_ref) == Some(None) {
            if item.state == ItemState::Pending {
                return confirm_gone(desk, position);
            }
            // Most likely by a removal of ours whose answer was lost. There is nothing left to plan for it.
            applied(&mut desk, &name, None, &plan.facts, "Already in desired state");
            continue;
        }
        let planned = plan.items.iter().find(|planned| planned.item.name == name);
        let Some(planned) = planned.filter(|planned| inputs::is_same(&planned.item, item)) else {
            let target = format!("{} {}", item.target_ref.kind, item.target_ref.name);
            return stale(desk, &name, &target);
        };
        // Who owns what decides under which name it is applied, and may have changed since the plan was drawn up.
        desk.status.items[position].field_manager.clone_from(&planned.item.field_manager);
        let item = &desk.status.items[position];
        if let Some(refusal) = &planned.refusal {
            fail(&mut desk, &name, format!("Failed to apply: {refusal}"));
            continue;
        }
        let live = plan.facts.object(&planned.target);
        if planned.verb == Verb::Unchanged {
            applied(&mut desk, &name, live, &plan.facts, "Already in desired state");
            continue;
        }
        let as_found = item.source_fingerprint.as_deref() == Some(&planned.fingerprint);
        // A write of ours may have gone through unheard, and fields that it was to take out are still there.
        let is_half_done =
            item.state == ItemState::InProgress && !item.removes.is_empty() && drift::is_applied(item, live);
        if !as_found && !is_half_done && !desk.observed.spec.bypass_optimistic_lock {
            return stale(desk, &name, &planned.target.to_string());
        }
        return write(desk, position, planned);
    }
}

/// Whether what is being applied is no longer what the spec says.
fn withdrawn(desk: &Desk<'_>) -> Option<(super::Event, &'static str)> {
    let spec = desk.observed.spec;
    let unwritten = desk.status.items.iter().any(is_unwritten);
    if desk.spec_is_new() && desk.options_changed() {
        return Some((SpecChanged, "Options changed - regenerating plan"));
    }
    if spec.action != Action::Apply && (unwritten || desk.spec_is_new()) {
        return Some((ApprovalWithdrawn, "Approval withdrawn - regenerating plan"));
    }
    if unwritten && desk.mismatched_approval().is_some() {
        return Some((ApprovalWithdrawn, "Another plan was approved - regenerating plan"));
    }
    None
}

fn is_unwritten(item: &Item) -> bool {
    item.applied_fingerprint.is_none() && matches!(item.state, ItemState::Pending | ItemState::InProgress)
}

/// Asks for one item to be written. That is recorded first, so that a write whose answer was lost is looked for.
fn write(mut desk: Desk<'_>, position: usize, planned: &PlannedItem) -> Decision {
    let now = desk.now();
    let item = &mut desk.status.items[position];
    enter(item, ItemState::InProgress, "Applying configuration...".into(), &now.0);
    item.source_fingerprint = Some(planned.fingerprint.clone());
    note_rendered(item, planned);
    let item = item.name.clone();
    desk.next(Next::Write { item })
}

/// Gone before we have removed it: somebody was faster, or the answer was an old one. Believed when it is said again.
fn confirm_gone(mut desk: Desk<'_>, position: usize) -> Decision {
    let now = desk.observed.now;
    enter(&mut desk.status.items[position], ItemState::InProgress, "Applying configuration...".into(), &now);
    desk.next(Next::DrawUp)
}

/// What the pools have rendered right before the write, where that must become something else. The rest of the impact
/// stays as it was reviewed.
pub(super) fn note_rendered(item: &mut Item, planned: &PlannedItem) {
    let now: Vec<_> = planned.item.impact_detail.iter().flat_map(|detail| &detail.pools).collect();
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let known = now.iter().find(|known| known.name == pool.name);
        pool.rendered = pool.rendered.take().and(known.and_then(|known| known.rendered.clone()));
    }
}

/// What the pools have rendered with the item in it: as long as it is that, no drift has reached them.
pub(super) fn note_rolled_out(item: &mut Item, facts: &Facts) {
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let now = pools::named(facts, &[&pool.name]);
        pool.rendered = now.first().and_then(pools::Pool::target).map(str::to_owned);
    }
}

/// A pool that has not noticed that something drifted which was rolled out will not notice that it is set back: nothing has to
/// be rendered anew there.
pub(super) fn note_unnoticed(item: &mut Item, rolled_out: &Item) {
    let known: Vec<_> = rolled_out.impact_detail.iter().flat_map(|detail| &detail.pools).collect();
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let is_same = known.iter().any(|known| (&known.name, &known.rendered) == (&pool.name, &pool.rendered));
        pool.rendered = pool.rendered.take().filter(|_| !is_same);
    }
}

fn wrote(desk: &mut Desk<'_>, name: &str, written: &Written, facts: &Facts) {
    let object = match written {
        Written::Applied(object) | Written::Found(object) => Some(object.as_ref()),
        Written::Gone => None,
    };
    applied(desk, name, object, facts, "Applied successfully");
}

/// The item is in the cluster. What it looks like there is the baseline for drift. `facts` tell whether anybody will report on
/// it; they may be from before the write.
fn applied(desk: &mut Desk<'_>, name: &str, object: Option<&Value>, facts: &Facts, message: &str) {
    let (now, planner) = (desk.now(), desk.planner());
    let Some(item) = desk.status.items.iter_mut().find(|item| item.name == name) else { return };
    item.applied_fingerprint = Some(drift::fingerprint(item, object));
    item.diff = Some(diff::none(&item.target_ref.kind, &item.target_ref.name));
    item.drifted_by = None;
    let is_reported = planner.is_some_and(|planner| planner.effect(item, facts) != Effect::Unreported);
    let waits_for = match is_rolled_out(item) {
        true => Some("Applied, waiting for the nodes"),
        false => (object.is_some() && is_reported).then_some("Applied, waiting for its operator"),
    };
    if let Some(waiting) = waits_for {
        item.waiting_since = Some(now.clone());
        enter(item, ItemState::InProgress, waiting.into(), &now.0);
    } else {
        enter(item, ItemState::Completed, message.into(), &now.0);
    }
    let item = item.clone();
    inputs::settle(&mut desk.status.inputs, &item, object);
    desk.take_snapshot();
}

fn fail(desk: &mut Desk<'_>, name: &str, message: String) {
    let now = desk.observed.now;
    if let Some(item) = desk.status.items.iter_mut().find(|item| item.name == name) {
        enter(item, ItemState::Failed, message, &now);
    }
}

pub(super) fn enter(item: &mut Item, state: ItemState, message: String, now: &Timestamp) {
    if item.state != state || item.last_transition_time.is_none() {
        item.last_transition_time = Some(Time(*now));
    }
    item.state = state;
    item.message = Some(message);
}

fn stale(mut desk: Desk<'_>, name: &str, target: &str) -> Decision {
    fail(&mut desk, name, format!("{target} has been modified since the plan was drawn up; nothing was written to it"));
    desk.on(PlanStale, Saying::because("PlanStale", STALE));
    desk.next(Next::Rest(None))
}

/// What the plan needs is gone. When it is back, a person looks first: part of the plan may have been applied.
fn vanished(mut desk: Desk<'_>, missing: &str) -> Decision {
    in_force::demand_review_of_vanished(&mut desk, missing);
    desk.on(PrerequisitesMissing, missing);
    desk.rest_until_available()
}

/// Under Abort, the first failure of any kind ends it.
fn aborted(desk: &mut Desk<'_>) -> Option<Next> {
    let failed = desk.status.items.iter().find(|item| item.state == ItemState::Failed)?;
    if desk.observed.spec.failure_policy != FailurePolicy::Abort {
        return None;
    }
    let message = failed.message.clone().unwrap_or_default();
    let message = format!("Item '{}' failed: {}", failed.name, message.trim_start_matches("Failed to apply: "));
    desk.on(ItemFailed, message);
    Some(Next::Rest(None))
}

/// Everything is written: follow what is on its way, and finish.
fn converge(mut desk: Desk<'_>, news: &News<'_>) -> Decision {
    let facts = match news {
        News::Saw(facts) => *facts,
        News::Drew(Ok(plan)) => &plan.facts,
        // From before the write: an operator has to be asked again, at least for the generation that it has to see.
        News::Wrote { .. } if desk.status.items.iter().any(waits_for_operator) => return desk.next(Next::Look),
        // Pools are told as they are, and have not seen it.
        News::Wrote { plan, .. } => &plan.facts,
        News::Drew(Err(NoPlan::Missing(missing))) => return vanished(desk, missing),
        News::Nothing | News::Drew(Err(_)) => return desk.next(Next::Look),
    };
    let planner = desk.planner();
    let planner = planner.as_deref();
    if let Some(missing) = planner.and_then(|planner| missing(&planner.requirements(facts), facts)) {
        return vanished(desk, &missing);
    }
    let now = desk.observed.now;
    let limit = desk.observed.spec.wait_timeout.as_ref().and_then(|limit| limit.duration().ok());
    let mut wake = desk.observed.rhythm.recheck;
    for item in desk.status.items.iter_mut().filter(|item| item.state == ItemState::InProgress) {
        let waiting = match progress(item, facts, planner) {
            Progress::Waiting(message) => message,
            Progress::Done(message) => {
                if item.operation == Operation::Apply {
                    note_rolled_out(item, facts);
                }
                enter(item, ItemState::Completed, message, &now);
                continue;
            }
            Progress::Settled => {
                enter(item, ItemState::Completed, "Applied successfully".into(), &now);
                continue;
            }
        };
        let since = item.waiting_since.get_or_insert(Time(now));
        // Nobody waits since a time that is yet to come; the clock that wrote it was wrong.
        since.0 = since.0.min(now);
        let waited = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
        match limit {
            Some(limit) if waited >= limit => {
                let message = format!(
                    "Timeout waiting for resource to become healthy (waited {}, timeout {}): {waiting}",
                    go_duration(waited),
                    go_duration(limit)
                );
                enter(item, ItemState::Failed, message, &now);
            }
            limit => {
                wake = wake.min(limit.map_or(wake, |limit| limit - waited));
                enter(item, ItemState::InProgress, waiting, &now);
            }
        }
    }
    if let Some(next) = aborted(&mut desk) {
        return desk.next(next);
    }
    if desk.status.items.iter().all(|item| item.state != ItemState::InProgress) {
        return finish(desk);
    }
    if !matches!(news, News::Wrote { .. }) {
        show_drift(&mut desk, facts);
    }
    desk.next(Next::Rest(Some(wake)))
}

/// Somebody may change what is applied while the rest is on its way. That is said at once; the phase follows later.
fn show_drift(desk: &mut Desk<'_>, facts: &Facts) {
    let drifted = mark_drift(&mut desk.status.items, facts);
    let (holds, reason, message) = match drifted {
        true => (true, "DriftDetected", "Configuration has drifted from desired state"),
        false => (false, "InProgress", "Applying plan configuration"),
    };
    let (before, generation, now) = (&desk.status.conditions, desk.observed.generation, desk.now());
    let new = condition(before, Phase::Drifted.as_str(), holds, reason, message, generation, &now);
    if let Some(known) = desk.status.conditions.iter_mut().find(|known| known.type_ == new.type_) {
        *known = new;
    }
}

fn finish(mut desk: Desk<'_>) -> Decision {
    desk.take_snapshot();
    if desk.status.items.iter().any(|item| item.state == ItemState::Failed) {
        desk.on(SomeFailed, "Plan completed with some errors");
    } else {
        settle_upgrade(&mut desk, "Applied", "Upgrade changes applied");
        desk.on(AllApplied, "All items applied successfully");
    }
    desk.next(Next::Continue)
}

pub(super) enum Progress {
    /// Nothing to wait for.
    Settled,
    Done(String),
    Waiting(String),
}

/// Whether nodes take the item over, one after another.
fn is_rolled_out(item: &Item) -> bool {
    item.target_ref.kind == kind::MACHINE_CONFIG.kind
}

fn waits_for_operator(item: &Item) -> bool {
    item.state == ItemState::InProgress && !is_rolled_out(item)
}

/// How far an applied item is: on the nodes, and with whoever has to take it.
pub(super) fn progress(item: &Item, facts: &Facts, planner: Option<&dyn Planner>) -> Progress {
    let rolled_out = match is_rolled_out(item).then(|| on_nodes(item, facts)) {
        Some(Rollout::Waiting(message)) => return Progress::Waiting(message),
        Some(Rollout::Done(message)) => Some(message),
        None => None,
    };
    let planner = planner.filter(|_| item.operation == Operation::Apply);
    if let Some(Effect::Pending(why) | Effect::Refused(why)) = planner.map(|planner| planner.effect(item, facts)) {
        return Progress::Waiting(why);
    }
    rolled_out.map_or(Progress::Settled, Progress::Done)
}

fn on_nodes(item: &Item, facts: &Facts) -> Rollout {
    let (pools, wanted) = match item.operation {
        Operation::Apply => {
            let labels = json!(item.desired_state).pointer("/metadata/labels").cloned().unwrap_or_default();
            let reached = pools::reached(facts, &labels);
            if reached.is_empty() {
                let role = labels["machineconfiguration.openshift.io/role"].as_str().unwrap_or("worker");
                return Rollout::Waiting(format!("MachineConfigPool '{role}' not found"));
            }
            (reached, Wanted::Present)
        }
        // The labels went with the object; the plan has noted which pools they reached.
        Operation::Delete => {
            if facts.answer(&pools::all()).is_none() {
                return Rollout::Waiting("MachineConfigPools not known yet".into());
            }
            let named = item.impact_detail.iter().flat_map(|detail| &detail.pools).map(|pool| pool.name.as_str());
            (pools::named(facts, &named.collect::<Vec<_>>()), Wanted::Absent)
        }
    };
    let planned =
        |name: &str| item.impact_detail.iter().flat_map(|detail| &detail.pools).find(|pool| pool.name == name);
    let before = |name: &str| planned(name).and_then(|pool| pool.rendered.as_deref());
    rollout(&item.target_ref.name, &pools, wanted, before)
}

/// A duration as Kubernetes users read it, to the second: `1h30m0s`, `45s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}s"),
        (0, _) => format!("{minutes}m{rest}s"),
        _ => format!("{hours}h{minutes}m{rest}s"),
    }
}
