//! What to do next, given what is known: one function from values to values, with an answer to everything.
//!
//! Whoever performs the answer records the status first, if it changed, and only then does what is asked for next. So the
//! process may die between any two lines and the one after it goes on from what was recorded.

use std::time::Duration;

use api::virt_platform_config::{Action, Phase, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{
    Event::{DraftingBegun, IgnoreRequested, ManagementResumed, SpecChanged},
    desk::{Desk, FORCED_REVIEW},
    drafting, execution, in_force, review,
};
use crate::{Facts, InvalidOptions, Plan, Profile, Refusal};

/// How long to wait when nothing is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rhythm {
    /// Until a plan is compared with the cluster again.
    pub recheck: Duration,
    /// Until it is checked whether something missing has appeared.
    pub prerequisites: Duration,
}

impl Default for Rhythm {
    fn default() -> Self {
        Rhythm { recheck: Duration::from_secs(5 * 60), prerequisites: Duration::from_secs(2 * 60) }
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
    /// Which leader this is, if leaders are elected.
    pub epoch: Option<i64>,
    pub now: Timestamp,
    pub rhythm: Rhythm,
}

/// What came of what was asked for last.
#[derive(Debug, Clone, Copy)]
pub enum News<'a> {
    Nothing,
    Saw(&'a Facts),
    Drew(Result<&'a Plan, &'a NoPlan>),
    Wrote {
        item: &'a str,
        result: &'a Result<Written, NotWritten>,
        /// The plan that the item belongs to.
        plan: &'a Plan,
    },
}

/// Why there is no plan. What may pass by itself is not among it: that is tried again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoPlan {
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
    /// As the API server answered to our write: the baseline for drift.
    Applied(Box<Value>),
    /// It was so already, up to fields that had to be taken out: an earlier write of ours went through unheard.
    Found(Box<Value>),
    Gone,
}

/// Why a target was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    #[error("{target} has been modified since the plan was drawn up")]
    Stale { target: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Failed(String),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub status: VirtPlatformConfigStatus,
    pub next: Next,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Record, and decide again.
    Continue,
    /// Fetch what the profile wants to know.
    Look,
    /// Derive the plan anew and have it previewed.
    DrawUp,
    /// Carry out one item of the plan that was just drawn up.
    Write { item: String },
    /// Wait for an event, and no longer than this.
    Rest(Option<Duration>),
}

pub fn decide(observed: &Observed<'_>, news: &News<'_>) -> Decision {
    let mut desk = Desk::new(observed);
    if observed.spec.action == Action::Ignore {
        // Whatever was waiting for a person is in the hands of one now.
        desk.acknowledge(FORCED_REVIEW);
        desk.on(IgnoreRequested, "");
        return desk.next(Next::Rest(None));
    }
    if desk.contradicts_itself() {
        let message = "The status was changed by somebody else: the plan is drawn up again";
        if observed.spec.action == Action::Apply {
            desk.mark(FORCED_REVIEW, true, "StatusChanged", message);
        }
        desk.say(Phase::Pending, message);
        return desk.next(Next::Continue);
    }
    match desk.recorded_phase() {
        None => {
            desk.say(Phase::Pending, "Configuration accepted, plan generation is about to start");
            desk.next(Next::Continue)
        }
        Some(Phase::Ignored) => {
            desk.on(ManagementResumed, "Action changed from Ignore, regenerating plan");
            desk.next(Next::Continue)
        }
        Some(Phase::Pending) => {
            desk.on(DraftingBegun, "");
            desk.next(Next::Continue)
        }
        Some(Phase::Failed) if desk.spec_is_new() => {
            desk.on(SpecChanged, "Retrying after spec change");
            desk.next(Next::Continue)
        }
        Some(Phase::Failed) => drafting::refused(desk, news),
        Some(Phase::Drafting) => drafting::drafting(desk, news),
        Some(Phase::PrerequisiteFailed) => drafting::waiting(desk, news),
        Some(Phase::ReviewRequired) => review::review(desk, news),
        Some(Phase::InProgress) => execution::execution(desk, news),
        Some(Phase::Completed | Phase::CompletedWithErrors | Phase::CompletedWithUpgrade | Phase::Drifted) => {
            in_force::in_force(desk, news)
        }
    }
}
