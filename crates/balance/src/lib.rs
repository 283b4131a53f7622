//! Node load: pressure models, the 20 algorithms that score it, thresholds, buckets and the choice of evictions, and the same
//! algorithms as recording rules. All functions are pure, and the same input gives the same bits on any machine: sums have a fixed
//! shape, no operation is fused, and besides the four operations only the square root is used.

#![forbid(unsafe_code)]

mod algorithm;
mod classify;
mod cool_down;
pub mod descheduler;
mod error;
mod evaluate;
mod explain;
mod expression;
mod mode;
pub mod pareto;
mod pressure;
pub mod promql;
mod signals;
mod sum;

pub use algorithm::{Algorithm, Focus, Weights};
pub use classify::{Bucket, Buckets, Classifier, Semantics};
pub use cool_down::CoolDown;
pub use error::{ParameterError, Unknown};
pub use evaluate::{Means, Scores};
pub use explain::Term;
pub use expression::{Formula, TOLERANCE};
pub use mode::Mode;
pub use pressure::{Capacity, PressureModel};
pub use signals::{OutOfRange, Signal, Signals};
pub use sum::BlockSum;
