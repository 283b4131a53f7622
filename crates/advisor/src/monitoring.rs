//! What monitoring sees of the operator: the metrics by name, and their values. The operator serves exactly these, alerts and the
//! dashboard use no others, and `docs/metrics.md` is generated from here.

pub mod metrics;
pub mod outcomes;
mod page;
pub mod series;

pub use metrics::{METRICS, Metric, MetricType};
pub use outcomes::ApprovalResult;
pub use page::page;
pub use series::{Sample, series};
