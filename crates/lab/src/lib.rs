//! The lab: a platform to run the advisor on. Third parties that need OpenShift are played by stand-ins, which say so in
//! everything they write.

pub mod mco;
