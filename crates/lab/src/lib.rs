//! The lab: a platform to run the advisor on, and a cluster of pretended guests to balance. Third parties that need
//! OpenShift are played by stand-ins, which say so in everything they write.

pub mod exporter;
pub mod launcher;
mod listing;
pub mod mco;
mod watch;
