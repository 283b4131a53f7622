//! Whether the plan in the status may be applied, and from when on.

use std::time::Duration;

use api::virt_platform_config::{Action, Approval, ApprovalMode, GrantedApproval, Phase};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{Decision, Explanation, Trigger, status_draft::StatusDraft};
use crate::start_time::{StartTime, start_time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Approved {
    Now,
    /// Approved, and to be started at this time.
    At(Timestamp),
    No(Explanation),
}

/// What the spec says about the plan in the status, under `action: Apply`.
pub(super) fn approved(draft: &StatusDraft<'_>) -> Approved {
    if let Some(explanation) = refused(draft) {
        return Approved::No(explanation);
    }
    let approval = draft.observed.spec.approval.as_ref();
    match start_time(approval, draft.observed.now) {
        StartTime::Now => Approved::Now,
        StartTime::At(time) => Approved::At(time),
        StartTime::Expired(end) => Approved::No(expired(draft, end)),
        StartTime::Invalid(error) => {
            Approved::No(Explanation::with_reason("WindowInvalid", format!("Nothing is applied. {error}.")))
        }
    }
}

/// Why nobody has agreed to the plan, whatever the time.
pub(super) fn refused(draft: &StatusDraft<'_>) -> Option<Explanation> {
    let approval = draft.observed.spec.approval.as_ref();
    let current = draft.status.plan_digest.as_deref().unwrap_or("none");
    let named = approval.and_then(|approval| approval.plan_digest.as_deref());
    if let Some(rejected) = rejected(draft) {
        return Some(rejected);
    }
    match named {
        Some(named) if named != current => Some(Explanation::with_reason(
            "ApprovalMismatch",
            format!(
                "The approval names plan {named}, the current plan is {current}: nothing is applied. Read the current plan \
                 and set spec.approval.planDigest to its digest, or remove it."
            ),
        )),
        None if mode(draft) == ApprovalMode::Reviewed => Some(unnamed(draft)),
        _ => None,
    }
}

/// The message about a plan that a person has turned down.
pub(super) fn rejected(draft: &StatusDraft<'_>) -> Option<Explanation> {
    let rejection = draft.observed.spec.approval.as_ref()?.rejected.as_ref()?;
    let current = draft.status.plan_digest.as_deref()?;
    let why = rejection.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
    let message = format!(
        "Plan {current} was rejected{why}. Nothing is applied until another plan replaces it. To replace it, change the \
         options; to take the rejection back, remove spec.approval.rejected."
    );
    (rejection.plan_digest == current).then(|| Explanation::with_reason("Rejected", message))
}

/// The message about a plan that has to be approved by its digest.
pub(super) fn unnamed(draft: &StatusDraft<'_>) -> Explanation {
    let current = draft.status.plan_digest.as_deref().unwrap_or("none");
    let action = if draft.observed.spec.action == Action::Apply { "" } else { " and action to 'Apply'" };
    let message = format!(
        "Plan ready for review. Only its digest approves it: set spec.approval.planDigest to {current}{action} to execute."
    );
    Explanation::with_reason("ApprovalRequired", message)
}

fn expired(draft: &StatusDraft<'_>, end: Timestamp) -> Explanation {
    let current = draft.status.plan_digest.as_deref().unwrap_or("none");
    let message = format!(
        "The approval of plan {current} ended at {end}: nothing is applied. To approve it again, set \
         spec.approval.notAfter to a later time or remove it."
    );
    Explanation::with_reason("ApprovalExpired", message)
}

/// What approves a plan of this configuration.
pub(super) fn mode(draft: &StatusDraft<'_>) -> ApprovalMode {
    let own = draft.observed.spec.approval.as_ref().and_then(|approval| approval.mode);
    own.unwrap_or(draft.observed.approval_mode)
}

/// Records the approval that is acted on, unless it is the recorded one.
pub(super) fn record(draft: &mut StatusDraft<'_>) {
    let Some(plan_digest) = draft.status.plan_digest.clone() else { return };
    let approval = draft.observed.spec.approval.clone().unwrap_or_default();
    let Approval { plan_digest: named, reason, approved_by, .. } = approval;
    let mode = if named.is_some() { ApprovalMode::Reviewed } else { ApprovalMode::Immediate };
    let (generation, time) = (draft.observed.generation, draft.now());
    let new = GrantedApproval { plan_digest, mode, generation, time, approved_by, reason };
    let is_known = |known: &GrantedApproval| GrantedApproval { time: new.time.clone(), ..known.clone() } == new;
    if !draft.status.approval.as_ref().is_some_and(is_known) {
        draft.status.approval = Some(new);
    }
}

/// Waits for the time at which the approved plan may start.
pub(super) fn schedule(mut draft: StatusDraft<'_>, start: Timestamp) -> Decision {
    record(&mut draft);
    let message = format!("Plan approved. It starts at {start}.");
    match draft.phase() {
        Phase::Scheduled => draft.enter_phase(Phase::Scheduled, message),
        _ => draft.transition(Trigger::PlanScheduled, message),
    }
    let wait = until(&draft, start);
    draft.requeue_after(wait)
}

/// How long to wait for a time, at most until the next regular check.
pub(super) fn until(draft: &StatusDraft<'_>, time: Timestamp) -> Duration {
    let left = time.duration_since(draft.observed.now).max(SignedDuration::ZERO);
    Duration::try_from(left).unwrap_or_default().min(draft.observed.intervals.recheck)
}
