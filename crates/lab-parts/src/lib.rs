//! The parts of the lab that take part in the loop of measuring, scoring, evicting and migrating: the VM controller, the
//! eviction webhook, the metrics exporter, the soft-tainter, and the configuration of Prometheus. `lab` starts them together.

pub mod exporter;
pub mod launcher;
pub mod prometheus;
pub mod soft_tainter;
pub mod vm;
pub mod webhook;
