//! Phase InProgress, second part: everything is written, and nodes and operators have to take it over.

use std::time::Duration;

use api::virt_platform_config::{Item, ItemState, Operation, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{
    Decision, Input, PlanFailure, Request,
    Trigger::{AllApplied, SomeFailed},
    applied::mark_drift,
    conditions::condition,
    drafting::settle_upgrade,
    execution::{is_aborted, prerequisites_missing, set_state},
    status_draft::StatusDraft,
};
use crate::{
    Effect, Facts, PlannedItem, Planner, kind, pools,
    profile::missing,
    rollout::{Expected, Rollout, rollout},
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
        // Pools have not seen the write yet, and the messages say so.
        Input::Write { plan, .. } => &plan.facts,
        Input::Plan(Err(PlanFailure::Missing(missing))) => return prerequisites_missing(draft, missing),
        Input::None | Input::Plan(Err(_)) => return draft.request(Request::FetchFacts),
    };
    let planner = draft.planner();
    if let Some(missing) = planner.and_then(|planner| missing(&planner.requirements(facts), facts)) {
        return prerequisites_missing(draft, &missing);
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

/// Updates the items that are not in effect yet, and returns when to look again.
pub(super) fn follow(draft: &mut StatusDraft<'_>, facts: &Facts) -> Duration {
    let planner = draft.planner();
    let now = draft.observed.now;
    let limit = draft.observed.spec.wait_timeout.as_ref().and_then(|limit| limit.duration().ok());
    let mut requeue_after = draft.observed.intervals.recheck;
    let is_taking_effect = |item: &&mut Item| item.state == ItemState::InProgress && item.applied_fingerprint.is_some();
    for item in draft.status.items.iter_mut().filter(is_taking_effect) {
        let waiting = match progress(item, facts, planner.as_deref()) {
            Progress::Waiting(message) => message,
            Progress::Done(message) => {
                if item.operation == Operation::Apply {
                    note_rolled_out(item, facts);
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
                requeue_after = requeue_after.min(limit.map_or(requeue_after, |limit| limit - waited));
                set_state(item, ItemState::InProgress, waiting, &now);
            }
        }
    }
    requeue_after
}

/// Shows drift of applied items at once, although the phase changes only when all items are in effect.
fn show_drift(draft: &mut StatusDraft<'_>, facts: &Facts) {
    let drifted = mark_drift(&mut draft.status.items, facts);
    let (holds, reason, message) = match drifted {
        true => (true, "DriftDetected", "Configuration has drifted from desired state"),
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
        draft.transition(SomeFailed, "Plan completed with some errors");
    } else {
        settle_upgrade(&mut draft, "Applied", "Upgrade changes applied");
        draft.transition(AllApplied, "All items applied successfully");
    }
    draft.decide_again()
}

pub(super) enum Progress {
    /// Nothing to wait for.
    Settled,
    Done(String),
    Waiting(String),
}

/// Whether the item is rolled out to nodes.
pub(super) fn is_rolled_out(item: &Item) -> bool {
    item.target_ref.kind == kind::MACHINE_CONFIG.kind
}

fn waits_for_operator(item: &Item) -> bool {
    item.state == ItemState::InProgress && !is_rolled_out(item)
}

/// How far an applied item is: on the nodes, and with the operator that has to take it over.
pub(super) fn progress(item: &Item, facts: &Facts, planner: Option<&dyn Planner>) -> Progress {
    let rolled_out = match is_rolled_out(item).then(|| rollout_of(item, facts)) {
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

fn rollout_of(item: &Item, facts: &Facts) -> Rollout {
    let (pools, expected) = match item.operation {
        Operation::Apply => {
            let labels = json!(item.desired_state).pointer("/metadata/labels").cloned().unwrap_or_default();
            let reached = pools::reached(facts, &labels);
            if reached.is_empty() {
                let role = labels["machineconfiguration.openshift.io/role"].as_str().unwrap_or("worker");
                return Rollout::Waiting(format!("MachineConfigPool '{role}' not found"));
            }
            (reached, Expected::Present)
        }
        // The labels are deleted with the object; the plan says which pools they reached.
        Operation::Delete => {
            if facts.answer(&pools::all()).is_none() {
                return Rollout::Waiting("MachineConfigPools not known yet".into());
            }
            let named = item.impact_detail.iter().flat_map(|detail| &detail.pools).map(|pool| pool.name.as_str());
            (pools::named(facts, &named.collect::<Vec<_>>()), Expected::Absent)
        }
    };
    let planned =
        |name: &str| item.impact_detail.iter().flat_map(|detail| &detail.pools).find(|pool| pool.name == name);
    let before = |name: &str| planned(name).and_then(|pool| pool.rendered.as_deref());
    rollout(&item.target_ref.name, &pools, expected, before)
}

/// Notes what the pools have rendered right before the write, where that must change. The rest of the impact stays as reviewed.
pub(super) fn note_rendered(item: &mut Item, planned: &PlannedItem) {
    let now: Vec<_> = planned.item.impact_detail.iter().flat_map(|detail| &detail.pools).collect();
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let known = now.iter().find(|known| known.name == pool.name);
        pool.rendered = pool.rendered.take().and(known.and_then(|known| known.rendered.clone()));
    }
}

/// Notes what the pools have rendered with the item: while that stays the same, no drift has reached them.
pub(super) fn note_rolled_out(item: &mut Item, facts: &Facts) {
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let now = pools::named(facts, &[&pool.name]);
        pool.rendered = now.first().and_then(pools::Pool::target).map(str::to_owned);
    }
}

/// A pool that has not rendered the drift will not render its revert either: no new rendering is expected of it.
pub(super) fn note_unchanged(item: &mut Item, rolled_out: &Item) {
    let known: Vec<_> = rolled_out.impact_detail.iter().flat_map(|detail| &detail.pools).collect();
    for pool in item.impact_detail.iter_mut().flat_map(|detail| &mut detail.pools) {
        let is_same = known.iter().any(|known| (&known.name, &known.rendered) == (&pool.name, &pool.rendered));
        pool.rendered = pool.rendered.take().filter(|_| !is_same);
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
