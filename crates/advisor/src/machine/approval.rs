//! Whether the plan in the status may be applied, and from when on.

use std::time::Duration;

use api::{
    virt_platform_config::{
        Action, Approval, ApprovalMode, GrantedApproval, Item, Phase, RecordRef, Rejection, TargetRef,
    },
    virt_platform_plan_record::{name, number},
};
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::{Decision, Explanation, Trigger, status_draft::StatusDraft};
use crate::start_time::{StartTime, start_time};

/// The reasons of condition ReviewRequired for which an approval is not acted on.
pub const REJECTED: &str = "Rejected";
pub const MISMATCH: &str = "ApprovalMismatch";
pub const NOT_ACCEPTED: &str = "NotAccepted";
pub const RISKS_NOT_ACCEPTED: &str = "RisksNotAccepted";
pub const EXPIRED: &str = "ApprovalExpired";
pub const WINDOW_INVALID: &str = "WindowInvalid";
/// The reason for which a plan waits that only its digest approves.
pub const APPROVAL_REQUIRED: &str = "ApprovalRequired";

/// Whether a plan may be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MayApply {
    Now,
    /// Approved, and to be started at this time.
    At(Timestamp),
    No(Explanation),
}

/// What the spec says about the plan in the status, under `action: Apply`.
pub(super) fn may_apply(draft: &StatusDraft<'_>) -> MayApply {
    if let Some(refused) = refused(draft) {
        return MayApply::No(explain(draft, refused));
    }
    let approval = draft.observed.spec.approval.as_ref();
    match start_time(approval, draft.observed.now) {
        StartTime::Now => MayApply::Now,
        StartTime::At(time) => MayApply::At(time),
        StartTime::Expired(end) => MayApply::No(expired(draft, end)),
        StartTime::Invalid(error) => {
            MayApply::No(Explanation::with_reason(WINDOW_INVALID, format!("Nothing is applied. {error}.")))
        }
    }
}

/// Why nobody has agreed to a plan, whatever the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Rejected,
    /// The approval names another plan.
    OtherPlan,
    /// Plans are reviewed, and the approval names none.
    Unnamed,
    /// An item overwrites what somebody has changed since, and nobody has accepted that.
    NotAccepted,
    /// Plans are reviewed, and nobody has accepted the risks of this one.
    RisksNotAccepted,
}

pub(super) fn refused(draft: &StatusDraft<'_>) -> Option<Refused> {
    let named = draft.observed.spec.approval.as_ref().and_then(|approval| approval.plan_digest.as_ref());
    match named {
        _ if is_rejected(draft) => Some(Refused::Rejected),
        Some(_) if named != draft.status.plan_digest.as_ref() => Some(Refused::OtherPlan),
        None if mode(draft) == ApprovalMode::Reviewed => Some(Refused::Unnamed),
        _ if !not_accepted(draft).is_empty() => Some(Refused::NotAccepted),
        _ => (!open_risks(draft).is_empty()).then_some(Refused::RisksNotAccepted),
    }
}

/// The message about a plan that nobody has agreed to.
fn explain(draft: &StatusDraft<'_>, refused: Refused) -> Explanation {
    match refused {
        Refused::Rejected => rejected(draft),
        Refused::OtherPlan => other_plan(draft),
        Refused::Unnamed => unnamed(draft),
        Refused::NotAccepted => accept_first(draft),
        Refused::RisksNotAccepted => accept_risks_first(draft),
    }
}

/// The digest of the plan in the status, for messages.
fn current<'a>(draft: &'a StatusDraft<'_>) -> &'a str {
    draft.status.plan_digest.as_deref().unwrap_or("none")
}

/// The items that nobody has accepted, although somebody has changed their targets since.
fn not_accepted<'a>(draft: &'a StatusDraft<'_>) -> Vec<&'a Item> {
    let accepted = draft.observed.spec.approval.iter().flat_map(|approval| &approval.accepted_items);
    let accepted: Vec<&String> = accepted.collect();
    let items = draft.status.items.iter().filter(|item| !item.changed_since.is_empty());
    items.filter(|item| item.applied_fingerprint.is_none() && !accepted.contains(&&item.name)).collect()
}

/// The message about items that have to be accepted by name.
fn accept_first(draft: &StatusDraft<'_>) -> Explanation {
    let told = |item: &&Item| {
        let TargetRef { kind, name, .. } = &item.target_ref;
        format!("item '{}' ({kind} '{name}': {})", item.name, item.changed_since.join(", "))
    };
    let items: Vec<String> = not_accepted(draft).iter().map(told).collect();
    let message = format!(
        "Somebody has changed what the plan would set back, and the change would be lost: {}. To apply the plan nevertheless, \
         add the names of these items to spec.approval.acceptedItems.",
        items.join("; ")
    );
    Explanation::with_reason(NOT_ACCEPTED, message)
}

/// The names of the risks that nobody has accepted, although plans are reviewed. A plan that was started is past that.
fn open_risks<'a>(draft: &'a StatusDraft<'_>) -> Vec<&'a str> {
    let granted = draft.status.approval.as_ref().map(|granted| &granted.plan_digest);
    if mode(draft) != ApprovalMode::Reviewed || granted.is_some() && granted == draft.status.plan_digest.as_ref() {
        return Vec::new();
    }
    let accepted = draft.observed.spec.approval.iter().flat_map(|approval| &approval.accepted_risks);
    let accepted: Vec<&String> = accepted.collect();
    let names = draft.status.risks.iter().map(|risk| &risk.name);
    names.filter(|name| !accepted.contains(name)).map(String::as_str).collect()
}

/// The message about risks that have to be accepted by name.
fn accept_risks_first(draft: &StatusDraft<'_>) -> Explanation {
    let message = format!(
        "The plan has risks that nobody has accepted: {}. status.risks says what they are. To apply the plan nevertheless, add \
         their names to spec.approval.acceptedRisks.",
        open_risks(draft).join(", ")
    );
    Explanation::with_reason(RISKS_NOT_ACCEPTED, message)
}

/// The message for an approval that names another plan.
fn other_plan(draft: &StatusDraft<'_>) -> Explanation {
    let named = draft.observed.spec.approval.as_ref().and_then(|approval| approval.plan_digest.as_deref());
    let (named, current) = (named.unwrap_or("none"), current(draft));
    let message = format!(
        "The approval names plan {named}, the current plan is {current}: nothing is applied. Read the current plan and set \
         spec.approval.planDigest to its digest, or remove it."
    );
    Explanation::with_reason(MISMATCH, message)
}

fn rejection<'a>(draft: &StatusDraft<'a>) -> Option<&'a Rejection> {
    draft.observed.spec.approval.as_ref()?.rejected.as_ref()
}

/// Whether a person has turned down the plan in the status.
pub(super) fn is_rejected(draft: &StatusDraft<'_>) -> bool {
    rejection(draft).is_some_and(|rejection| draft.status.plan_digest.as_ref() == Some(&rejection.plan_digest))
}

/// The message about a plan that a person has turned down.
pub(super) fn rejected(draft: &StatusDraft<'_>) -> Explanation {
    let reason = rejection(draft).and_then(|rejection| rejection.reason.as_ref());
    let why = reason.map_or(String::new(), |reason| format!(": {reason}"));
    let current = current(draft);
    let message = format!(
        "Plan {current} was rejected{why}. Nothing is applied until another plan replaces it. To replace it, change the \
         options; to take the rejection back, remove spec.approval.rejected."
    );
    Explanation::with_reason(REJECTED, message)
}

/// The message about a plan that has to be approved by its digest.
pub(super) fn unnamed(draft: &StatusDraft<'_>) -> Explanation {
    let current = current(draft);
    let action = if draft.observed.spec.action == Action::Apply { "" } else { " and action to 'Apply'" };
    let message = format!(
        "Plan ready for review. Only its digest approves it: set spec.approval.planDigest to {current}{action} to execute."
    );
    Explanation::with_reason(APPROVAL_REQUIRED, message)
}

fn expired(draft: &StatusDraft<'_>, end: Timestamp) -> Explanation {
    let current = current(draft);
    let message = format!(
        "The approval of plan {current} ended at {end}: nothing is applied. To approve it again, set \
         spec.approval.notAfter to a later time or remove it."
    );
    Explanation::with_reason(EXPIRED, message)
}

/// What approves a plan of this configuration.
pub(super) fn mode(draft: &StatusDraft<'_>) -> ApprovalMode {
    let own = draft.observed.spec.approval.as_ref().and_then(|approval| approval.mode);
    own.unwrap_or(draft.observed.approval_mode)
}

/// Starts to apply the plan: records the approval that is acted on, and names the record of the plan.
pub(super) fn start(draft: &mut StatusDraft<'_>) {
    record(draft);
    name_record(draft);
}

/// Names the record of the plan. No name is used twice; if it is taken nevertheless, the record gets another one later.
pub(super) fn name_record(draft: &mut StatusDraft<'_>) {
    let Some(plan_digest) = draft.status.plan_digest.clone() else { return };
    let profile = draft.observed.spec.profile;
    let last = draft.status.record.as_ref();
    let number = last.and_then(|last| number(profile, &last.name)).map_or(1, |last| last.saturating_add(1));
    draft.status.record = Some(RecordRef { name: name(profile, number), plan_digest, created: false });
}

/// Records the approval that is acted on, unless it is the recorded one.
fn record(draft: &mut StatusDraft<'_>) {
    let Some(plan_digest) = draft.status.plan_digest.clone() else { return };
    let approval = draft.observed.spec.approval.clone().unwrap_or_default();
    let Approval { plan_digest: named, reason, approved_by, accepted_risks, .. } = approval;
    let mode = if named.is_some() { ApprovalMode::Reviewed } else { ApprovalMode::Immediate };
    let (generation, time) = (draft.observed.generation, draft.now());
    let new = GrantedApproval { plan_digest, mode, generation, time, approved_by, accepted_risks, reason };
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
