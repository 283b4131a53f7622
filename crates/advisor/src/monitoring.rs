//! What monitoring sees of the operator: the metrics by name, their values, the alerts and the dashboard. The operator serves exactly
//! these metrics, alerts and dashboard use no others, and `config/monitoring`, `docs/metrics.md` and `docs/alerts.md` are generated
//! from here.

pub mod alerts;
mod alerts_page;
pub mod dashboard;
mod manifests;
pub mod metrics;
pub mod outcomes;
mod page;
#[cfg(test)]
mod promql_names;
pub mod series;

pub use alerts::{ALERTS, Alert, AlertSettings, RunbookUrl};
pub use alerts_page::after;
pub use manifests::{SERVICE, files, prometheus_rule};
pub use metrics::{METRICS, Metric, MetricType};
pub use outcomes::ApprovalResult;
pub use page::page;
pub use series::{Sample, series};
