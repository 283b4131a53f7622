//! The lab: a platform to run the advisor on, and a cluster of pretended guests to balance. Third parties that need
//! OpenShift are played by stand-ins, which say so in everything they write.

pub mod connect;
pub mod descheduler;
pub mod exporter;
pub mod kwok;
pub mod launcher;
mod listing;
pub mod manifests;
pub mod mco;
pub mod play;
pub mod prometheus;
pub mod soft_tainter;
pub mod survey;
pub mod up;
pub mod vm;
mod watch;
pub mod webhook;
