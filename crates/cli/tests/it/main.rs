//! The command line as people use it, on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod guide;
mod lab_descheduler;
mod lab_parts;
mod lab_webhook;
mod lab_sim;
mod lease;
mod preview;
