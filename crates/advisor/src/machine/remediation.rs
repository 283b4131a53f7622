//! Reverts drift if the spec asks for it, and stops when somebody else keeps causing it.

use std::time::Duration;

use api::virt_platform_config::{Action, ItemState, Phase};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    Decision, Explanation, Trigger::DriftReverted, approval, drift_text, execution::set_state, plan_inputs,
    status_draft::StatusDraft,
};
use crate::{Plan, Refusal, autopilot};

const WINDOW: Duration = Duration::from_secs(10 * 60);

/// How long to wait before the next revert, by the number of reverts in the window.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(30), Duration::from_secs(2 * 60)];

/// The reason of drift that is not reverted any more.
pub const STALLED: &str = "RemediationStalled";

/// The reason of drift that waits for a review, because a new plan would be another one.
pub const PLAN_DIFFERS: &str = "PlanDiffers";

/// Whether drift is reverted without a person.
pub(super) fn is_active(draft: &StatusDraft<'_>) -> bool {
    let is_drift = |kind: &str| kind == Phase::Drifted.as_str();
    let stalled = draft.status.conditions.iter().any(|known| is_drift(&known.type_) && known.reason == STALLED);
    is_requested(draft) && !stalled
}

/// Whether the spec asks for it, and the plan is approved.
fn is_requested(draft: &StatusDraft<'_>) -> bool {
    let spec = draft.observed.spec;
    spec.action == Action::Apply && spec.bypass_optimistic_lock && approval::refused(draft).is_none()
}

/// Nothing is reverted: the autopilot would take it back again.
fn taken(mut draft: StatusDraft<'_>) -> Decision {
    let items = || draft.status.items.iter().filter(|item| autopilot::has_taken(item));
    let what: Vec<_> = items().filter_map(drift_text::recorded).collect();
    let commands: Vec<_> = items().map(|item| autopilot::opt_out(&item.target_ref)).collect();
    let message = format!(
        "{} manages what this plan has applied ({}), and the operator does not fight. To leave it to the autopilot, edit the \
         spec for a new plan. To keep the autopilot away, edit the spec after: {}",
        autopilot::MANAGER,
        what.join(", "),
        commands.join("; ")
    );
    draft.enter_phase(Phase::Drifted, Explanation::with_reason(STALLED, message));
    draft.requeue_for_recheck()
}

pub(super) fn remediate(mut draft: StatusDraft<'_>, plan: &Plan) -> Decision {
    if is_requested(&draft) && draft.status.items.iter().any(autopilot::has_taken) {
        return taken(draft);
    }
    if !is_active(&draft) {
        return draft.requeue_for_recheck();
    }
    let now = draft.observed.now;
    let age = |time: &Time| Duration::try_from(now.duration_since(time.0)).unwrap_or_default();
    // A time in the future was written by a wrong clock.
    draft.status.reverts.iter_mut().for_each(|time| time.0 = time.0.min(now));
    draft.status.reverts.retain(|time| age(time) < WINDOW);
    let Some(pause) = PAUSES.get(draft.status.reverts.len()) else {
        let what: Vec<_> = draft.status.items.iter().filter_map(drift_text::recorded).collect();
        let message = format!(
            "Drift was reverted {} times within ten minutes and is back ({}). The operator does not fight: find \
             out who changes it, then edit the spec to start over.",
            PAUSES.len(),
            what.join(", ")
        );
        draft.enter_phase(Phase::Drifted, Explanation::with_reason(STALLED, message));
        return draft.requeue_for_recheck();
    };
    if let Some(left) =
        draft.status.reverts.last().and_then(|last| pause.checked_sub(age(last))).filter(|left| !left.is_zero())
    {
        return draft.requeue_after(left);
    }
    // Nobody has approved what a new version of the operator would add.
    draft.status.items.retain(|item| !plan_inputs::is_proposed(item));
    let (mut refused, mut different) = (None, Vec::new());
    for item in draft.status.items.iter_mut().filter(|item| item.drifted_by.is_some()) {
        let planned = plan.items.iter().find(|planned| planned.item.name == item.name);
        // An item that would be different now needs a review.
        let Some(planned) = planned.filter(|planned| plan_inputs::is_same(&planned.item, item)) else {
            different.push(plan_inputs::different(&item.name, &plan.left_out));
            continue;
        };
        // Fields that another profile has set meanwhile stay as they are.
        if let Some(refusal @ Refusal::ProfileConflict { .. }) = &planned.refusal {
            refused = Some(refusal);
            continue;
        }
        item.applied_fingerprint = None;
        item.waiting_since = None;
        item.drifted_by = None;
        item.source_fingerprint = Some(planned.fingerprint.clone());
        set_state(item, ItemState::Pending, "Re-applying to fix drift (bypassOptimisticLock)".into(), &now);
    }
    if draft.status.items.iter().all(|item| item.state != ItemState::Pending) {
        if let Some(explanation) = not_reverted(&draft, refused, &different) {
            draft.enter_phase(Phase::Drifted, explanation);
        }
        return draft.requeue_for_recheck();
    }
    let now = draft.now();
    draft.status.reverts.push(now);
    draft.transition(DriftReverted, "");
    draft.decide_again()
}

/// Why no drift is reverted. It is tried again from time to time, because the cause may go away.
fn not_reverted(draft: &StatusDraft<'_>, refused: Option<&Refusal>, different: &[String]) -> Option<Explanation> {
    if let Some(refusal) = refused {
        return Some(Explanation::with_reason(refusal.reason(), refusal.to_string()));
    }
    let what: Vec<_> = draft.status.items.iter().filter_map(drift_text::recorded).collect();
    (!different.is_empty()).then(|| {
        let message = format!(
            "Drift is not reverted ({}), because nobody has reviewed what would be applied now: {}. Edit the spec for a new \
             plan, and review it",
            what.join(", "),
            different.join("; ")
        );
        Explanation::with_reason(PLAN_DIFFERS, message)
    })
}
