//! The lab: a platform to run the advisor on, and a cluster of pretended guests to balance. Operators of OpenShift are
//! replaced by the stand-ins of the crate `standins`.

pub mod connect;
pub mod exporter;
pub mod kwok;
pub mod launcher;
mod listing;
pub mod manifests;
pub mod play;
pub mod prometheus;
pub mod soft_tainter;
pub mod survey;
pub mod up;
pub mod vm;
mod watch;
pub mod webhook;
