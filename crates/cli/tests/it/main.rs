//! The command line as people use it, on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod guide;
mod lab_descheduler;
mod lab_faults;
mod lab_manifests;
mod lab_parts;
mod lab_sim;
mod lab_up;
mod lab_webhook;
mod lease;
mod preview;
