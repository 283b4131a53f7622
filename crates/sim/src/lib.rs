//! Simulator of VM rebalancing: scenarios, the loop, comparison over seeds, reports. It does not depend on Kubernetes. The same seed
//! gives the same bytes on any machine, with any number of threads, in debug and release builds: all arithmetic is plain IEEE 754
//! without fused operations, sums have a fixed shape, and other functions than square roots come from `libm`.
#![forbid(unsafe_code)]

pub mod compare;
mod engine;
pub mod forecast;
mod history;
pub mod import;
mod load;
mod measure;
mod model;
pub mod optimum;
pub mod precopy;
pub mod report;
mod result;
mod rng;
pub mod scenario;
pub mod search;
mod settings;
pub mod stats;
pub mod units;
mod variant;

pub use engine::{Blocked, Run, Totals};
pub use history::{Cause, History, Move};
pub use load::LoadTimeline;
pub use measure::{Sample, Spread, UNDER_PRESSURE};
pub use model::{ClusterModel, MOST_STEPS, NodeEvent, Vm};
pub use result::{MigrationCounts, RunResult, simulate};
pub use rng::Rng;
pub use scenario::{Scenario, ScenarioError};
pub use settings::RunSettings;
pub use variant::Variant;
