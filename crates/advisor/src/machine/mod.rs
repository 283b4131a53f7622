//! The phases of a configuration: which phase follows, what the conditions say, and what is done next.
//!
//! [`decide`] is a pure function. The operator, the fault tests and the model checker all run it.

mod applied;
mod approval;
pub mod conditions;
mod decide;
mod drafting;
mod drift_text;
mod event_notes;
mod execution;
mod health;
mod late_pools;
mod plan_inputs;
mod pool_wait;
mod progress;
mod remediation;
mod review;
mod status_draft;
pub mod table;
#[cfg(test)]
mod tests;
mod upgrade;

pub use approval::{APPROVAL_REQUIRED, EXPIRED, MISMATCH, NOT_ACCEPTED, REJECTED, RISKS_NOT_ACCEPTED, WINDOW_INVALID};
pub use conditions::{DRIFT_DETECTED, Explanation, conditions};
pub use decide::{
    Decision, Input, Intervals, NotWritten, Observed, Outcome, PlanFailure, Request, Step, Written, decide,
};
pub use drafting::RESTORED;
pub use event_notes::{EventNote, event_notes};
pub use health::{NO_PROGRESS, RECONCILING, STALLED};
pub use late_pools::rollout_queries;
pub use remediation::PLAN_DIFFERS;
pub use remediation::STALLED as REMEDIATION_STALLED_REASON;
pub use review::PLAN_STALE;
pub use status_draft::FORCED_REVIEW;
pub use table::{TABLE, Transition, Trigger, after};
