//! A stand-in for the descheduler operator, with the real descheduler and the soft-tainter that go with it.
//!
//! A KubeDescheduler becomes a policy and flags ([`Policy`]) by the operator's rules, and the real program runs with
//! them for as long as the object is there. What decides is a function of values: [`Policy::of`], [`Gauge`],
//! [`soft_taint`]. The rest watches, keeps one process alive, and tells in the cluster how that goes.

mod gauge;
mod guard;
pub mod names;
mod operand;
mod operator;
mod policy;
mod process;
mod proxy;
mod refusal;
mod sample;
mod settings;
mod sight;
pub mod soft_taint;
mod soft_tainter;
mod spec;
mod stand_in;
mod status;
mod verdict;
mod web;

pub use gauge::{Gauge, Reading};
pub use policy::{Policy, Surroundings, Thresholds};
pub use process::{Error, program};
pub use refusal::Refusal;
#[cfg(test)]
use sample::percent;
pub use sample::{Unusable, percents};
pub use settings::{Orders, Settings};
pub use soft_tainter::{Findings, SoftTainter, SoftTainterSettings, run as run_soft_tainter};
pub use spec::{Customizations, EvictionLimits, Mode, Namespaces, Spec};
pub use stand_in::{StandIn, State, run};
pub use web::Unanswered;
pub(crate) use web::Web;
