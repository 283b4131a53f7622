//! The soft-tainter: asks the scheduler to keep new pods away from busy nodes, by the same query and the same comparison as the
//! descheduler. Without it, what is moved from a busy node may land on another busy one. It differs from the original in one thing: it
//! removes its taints when they are not wanted any more, that is, when the KubeDescheduler is deleted or becomes Predictive.

mod controller;
mod handle;
mod low_node_utilization;
mod samples;
pub mod taints;
mod task;

pub use handle::{Findings, SoftTainter, SoftTainterSettings, run};
pub use low_node_utilization::{LowNodeUtilization, NodeUtilization, classify};
pub use samples::{InvalidSamples, percents};

/// The field manager of the soft-tainter.
pub const FIELD_MANAGER: &str = "soft-tainter";
