//! Phase InProgress, second part: everything is written, and nodes and operators have to take it over.

use std::time::Duration;

use api::{
    bounds,
    virt_platform_config::{ImpactDetail, Item, ItemState, Operation, Phase, RolloutState, Severity},
};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::{Value, json};

use super::{
    Decision, Input, Intervals, PlanFailure, Request,
    Trigger::{AllApplied, DriftFound, SomeFailed},
    applied::mark_drift,
    conditions::{DRIFT_DETECTED, condition},
    drafting::{restored, settle_upgrade},
    drift_text,
    execution::{is_aborted, prerequisites_missing, set_state},
    late_pools,
    pool_wait::{Kept, keep},
    status_draft::StatusDraft,
};
use crate::{
    Effect, Facts, PlannedItem, Planner, drift, kind,
    pools::{self, ROLE},
    profile::missing,
    rollout::{Expected, PoolWait, Rollout, pool_missing, rollout},
    truncate,
};

/// Follows the items that are not in effect yet, and completes the plan when all are.
pub(super) fn converge(mut draft: StatusDraft<'_>, input: &Input<'_>) -> Decision {
    let facts = match input {
        Input::Facts(facts) => *facts,
        Input::Plan(Ok(plan)) => &plan.facts,
        // These facts are older than the write: the generation that the operator of the target must observe is newer.
        Input::Write { .. } if draft.status.items.iter().any(waits_for_operator) => {
            return draft.request(Request::FetchFacts);
        }
        // Meanwhile a pool may have rendered what was there before the write.
        Input::Write { plan, .. } if draft.status.items.iter().any(|item| is_on_nodes(item, &plan.facts)) => {
            return draft.request(Request::FetchFacts);
        }
        // Pools have not seen the write yet, and the messages say so.
        Input::Write { plan, .. } => &plan.facts,
        Input::Plan(Err(PlanFailure::Missing(missing))) => return prerequisites_missing(draft, missing),
        Input::None | Input::Plan(Err(_)) => return draft.request(Request::FetchFacts),
    };
    let planner = draft.planner();
    if let Some(missing) = planner.and_then(|planner| missing(&planner.requirements(facts), facts)) {
        return prerequisites_missing(draft, &missing);
    }
    if !matches!(input, Input::Write { .. }) && is_overtaken(&mut draft, facts) {
        draft.transition(DriftFound, "");
        return draft.decide_again();
    }
    let requeue_after = follow(&mut draft, facts);
    if is_aborted(&mut draft) {
        return draft.await_change();
    }
    if draft.status.items.iter().all(|item| item.state != ItemState::InProgress) {
        return finish(draft);
    }
    if !matches!(input, Input::Write { .. }) {
        show_drift(&mut draft, facts);
    }
    draft.requeue_after(requeue_after)
}

/// Updates the items that are not in effect yet, and returns when to look again. Items that have drifted are not waited for.
pub(super) fn follow(draft: &mut StatusDraft<'_>, facts: &Facts) -> Duration {
    let planner = draft.planner();
    let now = draft.observed.now;
    let limit = draft.observed.spec.wait_timeout.as_ref().and_then(|limit| limit.duration().ok());
    let Intervals { stuck_after, settle, .. } = draft.observed.intervals;
    // Nothing that is in effect is given up.
    let settle = limit.map_or(settle, |limit| limit.min(settle));
    let mut requeue_after = draft.observed.intervals.recheck;
    let mut is_stuck = false;
    let is_taking_effect = |item: &&mut Item| {
        item.state == ItemState::InProgress && item.applied_fingerprint.is_some() && item.drifted_by.is_none()
    };
    for item in draft.status.items.iter_mut().filter(is_taking_effect) {
        let waiting = match progress(item, facts, planner.as_deref()) {
            Progress::Waiting(message) => {
                item.rollout.clear();
                Kept { message, ..Kept::default() }
            }
            Progress::Rolling(pools) => keep(item, pools, now, stuck_after),
            Progress::Done(message) => {
                if let Some(until) = settles_at(item, facts, now, settle) {
                    item.rollout.clear();
                    let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                    requeue_after = requeue_after.min(left);
                    let message = format!(
                        "{message}; looked at again at {until:.0}, because a pool may not have seen the change"
                    );
                    set_state(item, ItemState::InProgress, message, &now);
                    continue;
                }
                set_state(item, ItemState::Completed, message, &now);
                continue;
            }
            Progress::Settled => {
                set_state(item, ItemState::Completed, "Applied successfully".into(), &now);
                continue;
            }
        };
        let since = item.waiting_since.get_or_insert(Time(now));
        // A time in the future was written by a wrong clock.
        since.0 = since.0.min(now);
        let waited = Duration::try_from(now.duration_since(since.0)).unwrap_or_default();
        let Kept { message: waiting, is_stuck: pool_is_stuck, stuck_in } = waiting;
        // Nodes that have the item and get something else besides fail nothing.
        let limit = limit.filter(|_| !late_pools::is_on_all_nodes(item, facts));
        match limit {
            Some(limit) if waited >= limit => {
                let message = format!(
                    "Timeout waiting for resource to become healthy (waited {}, timeout {}): {waiting}",
                    go_duration(waited),
                    go_duration(limit)
                );
                set_state(item, ItemState::Failed, message, &now);
            }
            limit => {
                is_stuck |= pool_is_stuck;
                let next = [limit.map(|limit| limit - waited), stuck_in].into_iter().flatten().min();
                requeue_after = requeue_after.min(next.unwrap_or(requeue_after));
                set_state(item, ItemState::InProgress, waiting, &now);
            }
        }
    }
    draft.is_stuck = Some(is_stuck);
    requeue_after
}

/// Notes which pools do not have an item that was just applied, according to facts from before that.
pub(super) fn wait_for_pools(item: &mut Item, facts: &Facts, now: Timestamp, stuck_after: Duration) {
    item.rollout.clear();
    if let Progress::Rolling(pools) = progress(item, facts, None) {
        keep(item, pools, now, stuck_after);
    }
}

/// Until when an item is watched although its pools have its content: they had it already when it was applied, or when drift of it was
/// gone, and may not have seen yet what was there in between. A pool that was waited for since then has seen it, if it has rendered
/// something.
fn settles_at(item: &mut Item, facts: &Facts, now: Timestamp, settle: Duration) -> Option<Timestamp> {
    let disturbs =
        item.impact_severity != Some(Severity::Low) || item.impact_detail.as_ref().is_some_and(|detail| detail.reboot);
    let is_new = disturbs && (item.rollout.is_empty() || late_pools::is_unnoticed(item, facts));
    let since = item.waiting_since.as_mut().filter(|_| is_new)?;
    // A time in the future was written by a wrong clock.
    since.0 = since.0.min(now);
    since.0.checked_add(settle).ok().filter(|until| *until > now)
}

/// Whether the target of an item was changed, deleted or created again before the item was in effect. Then it never will be, and the
/// drift is what people have to know.
fn is_overtaken(draft: &mut StatusDraft<'_>, facts: &Facts) -> bool {
    let mut items = draft.status.items.clone();
    mark_drift(&mut items, facts);
    if !items.iter().any(|item| item.state == ItemState::InProgress && item.drifted_by.is_some()) {
        return false;
    }
    draft.status.items = items;
    watch_overtaken(draft, facts);
    true
}

/// Looks at the pools of items whose targets were changed on their way, and names who changed them.
pub(super) fn watch_overtaken(draft: &mut StatusDraft<'_>, facts: &Facts) {
    let (now, stuck_after) = (draft.observed.now, draft.observed.intervals.stuck_after);
    let is_overtaken = |item: &&mut Item| item.state == ItemState::InProgress && item.drifted_by.is_some();
    for item in draft.status.items.iter_mut().filter(is_overtaken) {
        let waits = progress(item, facts, None);
        let is_new = matches!(waits, Progress::Rolling(_));
        if let Progress::Rolling(pools) = waits {
            keep(item, pools, now, stuck_after);
        }
        let Some(culprit) = drift_text::recorded(item) else { continue };
        for pool in &mut item.rollout {
            // The node that is in trouble has to be repaired, whoever changed the config.
            let own = pool.cause.take().filter(|_| is_degraded(pool.state));
            pool.cause = Some(match own {
                Some(own) if is_new => {
                    // Trouble of many nodes must not cut off who changed the config.
                    let room = bounds::NOTE.saturating_sub(culprit.len() + 2);
                    format!("{}; {culprit}", truncate::cut(own, room))
                }
                Some(own) => own,
                None => culprit.clone(),
            });
        }
    }
}

fn is_degraded(state: RolloutState) -> bool {
    matches!(state, RolloutState::Degraded | RolloutState::RenderDegraded)
}

/// Shows drift of applied items at once, although the phase changes only when all items are in effect.
fn show_drift(draft: &mut StatusDraft<'_>, facts: &Facts) {
    let drifted = mark_drift(&mut draft.status.items, facts);
    let (holds, reason, message) = match drifted {
        true => (true, DRIFT_DETECTED, "Configuration has drifted from desired state"),
        false => (false, "InProgress", "Applying plan configuration"),
    };
    let (before, generation, now) = (&draft.status.conditions, draft.observed.generation, draft.now());
    let new = condition(before, Phase::Drifted.as_str(), holds, reason, message, generation, &now);
    if let Some(known) = draft.status.conditions.iter_mut().find(|known| known.type_ == new.type_) {
        *known = new;
    }
}

fn finish(mut draft: StatusDraft<'_>) -> Decision {
    draft.update_snapshot();
    if draft.status.items.iter().any(|item| item.state == ItemState::Failed) {
        let message = completed_with_errors(&draft.status.items);
        draft.transition(SomeFailed, message);
    } else {
        // A plan of an earlier version has applied nothing of what this one would change.
        if draft.status.operator_version.as_deref() == Some(draft.observed.version) {
            settle_upgrade(&mut draft, "Applied", "Upgrade changes applied");
        }
        let message = restored(&draft).unwrap_or_else(|| "All items applied successfully".into());
        draft.transition(AllApplied, message);
    }
    draft.decide_again()
}

/// The message of a plan of which some items failed: which ones, why, and what to do.
pub(super) fn completed_with_errors(items: &[Item]) -> String {
    let failed = items.iter().filter(|item| item.state == ItemState::Failed);
    let told = |item: &Item| {
        let message = item.message.as_deref().unwrap_or("no reason is known");
        format!("item '{}' failed: {}", item.name, message.trim_start_matches("Failed to apply: "))
    };
    let failed: Vec<_> = failed.map(told).collect();
    format!(
        "Plan completed with some errors: {}. Remove the cause, then edit the spec to try again, for example change action to \
         'DryRun' and back to 'Apply'.",
        failed.join("; ")
    )
}

pub(super) enum Progress {
    /// Nothing to wait for.
    Settled,
    Done(String),
    /// Pools are waited for.
    Rolling(Vec<PoolWait>),
    /// Something else is waited for.
    Waiting(String),
}

/// Whether the item is rolled out to nodes.
pub(super) fn is_rolled_out(item: &Item) -> bool {
    item.target_ref.kind == kind::MACHINE_CONFIG.kind
}

/// Whether an item that was just written is on the nodes already, according to facts from before the write.
fn is_on_nodes(item: &Item, facts: &Facts) -> bool {
    let is_taking_effect = item.state == ItemState::InProgress && item.applied_fingerprint.is_some();
    is_taking_effect && is_rolled_out(item) && matches!(rollout_of(item, facts), Rollout::Done(_))
}

fn waits_for_operator(item: &Item) -> bool {
    item.state == ItemState::InProgress && !is_rolled_out(item)
}

/// How far an applied item is: on the nodes, and with the operator that has to take it over.
pub(super) fn progress(item: &Item, facts: &Facts, planner: Option<&dyn Planner>) -> Progress {
    let rolled_out = match is_rolled_out(item).then(|| rollout_of(item, facts)) {
        Some(Rollout::Waiting(pools)) => return Progress::Rolling(pools),
        Some(Rollout::Unknown(message)) => return Progress::Waiting(message),
        // Without any pool there is nothing to tell.
        Some(Rollout::Done(message)) => Some(message).filter(|message| !message.is_empty()),
        None => None,
    };
    let planner = planner.filter(|_| item.operation == Operation::Apply);
    if let Some(Effect::Pending(why) | Effect::Refused(why)) = planner.map(|planner| planner.effect(item, facts)) {
        return Progress::Waiting(why);
    }
    rolled_out.map_or(Progress::Settled, Progress::Done)
}

fn rollout_of(item: &Item, facts: &Facts) -> Rollout {
    let planned = || item.impact_detail.iter().flat_map(|detail| &detail.pools);
    let desired = drift::result(item);
    let reached = match item.operation {
        Operation::Apply => pools::reached(facts, &labels_of(item, &desired, facts)),
        // The labels are deleted with the object; the plan says which pools they reached.
        Operation::Delete => Vec::new(),
    };
    let may_reach_none = item.operation == Operation::Delete || !item.removes.is_empty();
    if may_reach_none && facts.answer(&pools::all()).is_none() {
        return Rollout::Unknown("MachineConfigPools not known yet".into());
    }
    let is_left = |name: &&str| !reached.iter().any(|pool| pool.name() == *name);
    let left: Vec<&str> = planned().map(|pool| pool.name.as_str()).filter(is_left).collect();
    let left = pools::named(facts, &left).into_iter().map(|pool| Expected { pool, config: None });
    let expected: Vec<Expected<'_>> =
        reached.iter().map(|pool| Expected { pool: *pool, config: Some(&desired) }).chain(left).collect();
    if expected.is_empty() && !may_reach_none {
        let role = desired.pointer("/metadata/labels").and_then(|labels| labels[ROLE].as_str());
        return Rollout::Waiting(vec![pool_missing(role.unwrap_or("worker"))]);
    }
    let before = |name: &str| {
        let rendered = planned().find(|pool| pool.name == name).and_then(|pool| pool.rendered.as_deref());
        rendered.filter(|_| !late_pools::has_nothing_to_render(item, name, facts))
    };
    rollout(&item.target_ref.name, &expected, facts, before)
}

/// The labels of a target after the item was applied. Others may have set some of them.
pub(super) fn labels_of(item: &Item, desired: &Value, facts: &Facts) -> Value {
    let live = facts.target(&item.target_ref).flatten().cloned().unwrap_or_else(|| json!({}));
    let mut after = drift::overlaid(&live, desired);
    drift::remove(item, &mut after);
    after.pointer("/metadata/labels").cloned().unwrap_or_default()
}

/// Notes what the pools have rendered right before the write, where that must change. The rest of the impact stays as reviewed, but
/// an item that changed nothing when it was planned had no pools.
pub(super) fn note_rendered(item: &mut Item, planned: &PlannedItem) {
    let Some(now) = &planned.item.impact_detail else { return };
    let detail = item.impact_detail.get_or_insert_with(|| ImpactDetail { reboot: now.reboot, pools: Vec::new() });
    for known in &now.pools {
        match detail.pools.iter_mut().find(|pool| pool.name == known.name) {
            Some(pool) => pool.rendered.clone_from(&known.rendered),
            None => detail.pools.push(known.clone()),
        }
    }
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
