//! What to do next, given what is known: one total function from values to values.
//! The caller first stores the status, if it changed, and then performs the step. So the process may stop at any point, and the next
//! one continues from the stored status.

use std::time::Duration;

use api::virt_platform_config::{Action, ApprovalMode, Phase, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{
    Trigger::{DraftingBegun, IgnoreRequested, ManagementResumed, SpecChanged},
    applied, drafting, execution, review,
    status_draft::{FORCED_REVIEW, StatusDraft},
};
use crate::{Facts, InvalidOptions, Plan, Profile, Refusal};

/// How long to wait if nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    /// Until a plan is compared with the cluster again.
    pub recheck: Duration,
    /// Until missing prerequisites are looked for again.
    pub prerequisites: Duration,
    /// Until a pool of which no node was updated counts as stuck. Less than the hour after which the machine config operator itself
    /// gives up on a node.
    pub stuck_after: Duration,
    /// How long a pool must stay as it is until it counts as updated, if it had the content of a change already when that was made: it
    /// may not have seen the change yet.
    pub settle: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        let minutes = |minutes: u64| Duration::from_secs(minutes * 60);
        Intervals { recheck: minutes(5), prerequisites: minutes(2), stuck_after: minutes(45), settle: minutes(1) }
    }
}

/// One configuration, as it was last read.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    pub spec: &'a VirtPlatformConfigSpec,
    pub generation: i64,
    pub status: &'a VirtPlatformConfigStatus,
    pub profile: &'static dyn Profile,
    /// The version of this operator.
    pub version: &'a str,
    /// The number of this leader, if leaders are elected.
    pub epoch: Option<i64>,
    pub now: Timestamp,
    pub intervals: Intervals,
    /// What approves a plan where the spec does not say it.
    pub approval_mode: ApprovalMode,
}

/// The result of the last request.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    None,
    Facts(&'a Facts),
    Plan(Result<&'a Plan, &'a PlanFailure>),
    Write {
        item: &'a str,
        result: &'a Result<Written, NotWritten>,
        /// The plan that the item belongs to.
        plan: &'a Plan,
    },
}

/// Why there is no plan. Errors that may pass by themselves are not among these: then the plan is tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFailure {
    #[error(transparent)]
    InvalidOptions(#[from] InvalidOptions),
    /// Something that the plan needs is not installed; the text names it and says what to do.
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Impossible(String),
}

/// What became of a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Written {
    /// The object as the API server returned it: the baseline for drift.
    Applied(Box<Value>),
    /// An earlier write had succeeded although its answer was lost. Fields to remove may have been removed now.
    AlreadyApplied(Box<Value>),
    Gone,
}

/// Why a target was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    #[error("{target} has been modified since the plan was made")]
    Stale { target: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Failed(String),
    /// The plan has no record, so it must not be applied.
    #[error("{0}")]
    Unrecorded(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub status: VirtPlatformConfigStatus,
    pub step: Step,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Send(Request),
    /// Store the status, and decide again with the same input.
    DecideAgain,
    Done(Outcome),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Fetch the facts that the profile wants.
    FetchFacts,
    /// Make a new plan and preview it.
    MakePlan,
    /// Write one item of the plan that was just made.
    WriteItem { item: String },
}

/// Nothing is left to do until something changes, or until this much time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    pub requeue_after: Option<Duration>,
}

pub fn decide(observed: &Observed<'_>, input: &Input<'_>) -> Decision {
    let mut draft = StatusDraft::new(observed);
    if observed.spec.action == Action::Ignore {
        // Ignore answers a forced review: a person is in charge now.
        draft.acknowledge(FORCED_REVIEW);
        draft.transition(IgnoreRequested, "");
        return draft.await_change();
    }
    if draft.is_inconsistent() {
        let message = "The status was changed by somebody else: the plan is made again";
        if observed.spec.action == Action::Apply {
            draft.set_condition(FORCED_REVIEW, true, "StatusChanged", message);
        }
        draft.enter_phase(Phase::Pending, message);
        return draft.decide_again();
    }
    match draft.status.phase {
        None => {
            draft.enter_phase(Phase::Pending, "Configuration accepted, plan generation is about to start");
            draft.decide_again()
        }
        Some(Phase::Ignored) => {
            draft.transition(ManagementResumed, "Action changed from Ignore, regenerating plan");
            draft.decide_again()
        }
        Some(Phase::Pending) => {
            draft.transition(DraftingBegun, "");
            draft.decide_again()
        }
        Some(Phase::Failed) if draft.spec_is_new() => {
            draft.transition(SpecChanged, "Retrying after spec change");
            draft.decide_again()
        }
        Some(Phase::Failed) => drafting::failed(draft, input),
        Some(Phase::Drafting) => drafting::drafting(draft, input),
        Some(Phase::PrerequisiteFailed) => drafting::prerequisite_failed(draft, input),
        Some(Phase::ReviewRequired) => review::review_required(draft, input),
        Some(Phase::Scheduled) => review::scheduled(draft, input),
        Some(Phase::InProgress) => execution::in_progress(draft, input),
        Some(Phase::Completed | Phase::CompletedWithErrors | Phase::CompletedWithUpgrade | Phase::Drifted) => {
            applied::check(draft, input)
        }
    }
}
