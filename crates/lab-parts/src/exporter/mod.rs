//! The metrics of the lab's nodes, for Prometheus: what node-exporter and kube-state-metrics would report if the simulated
//! VMs were real, and the four signals as gauges.
//!
//! [`Index`] is a pure data structure: its content depends only on the nodes, pods and VMs that were applied, and when. The
//! rest watches these three kinds, applies them, and serves scrapes. No scrape causes a request to the API server.

mod feed;
mod index;
mod meter;
mod observed;
mod render;
mod server;
#[cfg(test)]
mod tests;

pub use index::{Index, Row, Snapshot};
pub use meter::Counters;
pub use observed::{ObservedNode, ObservedPod, ObservedVm, PodPhase};
pub use render::Renderer;
pub use server::{Exporter, ExporterSettings, run};
