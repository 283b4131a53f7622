//! The metrics of the lab's nodes, for Prometheus: what node-exporter and kube-state-metrics would say if the pretended
//! guests were real, and the four signals as plain gauges.
//!
//! [`Index`] is a function of what it was told: nodes, pods and VMs, each with the time. The rest watches those three
//! kinds, tells the index, and answers scrapes from it. No scrape causes a request to the API server.

mod feed;
mod index;
mod meter;
mod render;
mod server;
mod sight;
#[cfg(test)]
mod tests;

pub use index::{Index, Row, Snapshot};
pub use meter::Counters;
pub use render::Renderer;
pub use server::{Exporter, Settings, run};
pub use sight::{NodeSeen, PodSeen, Stage, VmSeen};
