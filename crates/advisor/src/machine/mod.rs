//! The phases of a configuration: how one leads to another, what each says in the conditions, and what is done next.
//!
//! [`decide`] is the whole of it: a pure function that the operator, the fault tests and the model checker run alike.

pub mod conditions;
mod decide;
mod desk;
mod drafting;
mod drift_text;
mod execution;
mod happenings;
mod in_force;
mod inputs;
mod remediation;
mod review;
pub mod table;
#[cfg(test)]
mod tests;
mod upgrade;

pub use conditions::{Saying, conditions};
pub use decide::{Decision, News, Next, NoPlan, NotWritten, Observed, Rhythm, Written, decide};
pub use happenings::{Happening, happenings};
pub use table::{Event, TABLE, Transition, after};
