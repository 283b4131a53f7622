//! The metrics of the lab's nodes, for Prometheus: what node-exporter and kube-state-metrics would report if the VMs were real, and
//! the four signals as gauges. [`Index`] is a pure data structure of what was applied, and when; the rest watches nodes, pods and VMs,
//! and serves scrapes. No scrape causes a request to the API server.

mod feed;
mod index;
mod meter;
mod observed;
mod render;
mod server;
#[cfg(test)]
mod tests;

pub use index::{Index, Row, Snapshot, VmRow};
pub use meter::Counters;
pub use observed::{ObservedNode, ObservedPod, ObservedVm, PodPhase};
pub use render::{Renderer, vm_page};
pub use server::{Exporter, ExporterSettings, VM_METRICS, run};
