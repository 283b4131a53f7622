//! What monitoring sees of the operator: the metrics by name. The operator serves exactly these, alerts and the dashboard use no others,
//! and `docs/metrics.md` is generated from here.

pub mod metrics;

pub use metrics::{METRICS, Metric, MetricType};
