//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod algorithms;
mod exporter;
mod platform;
mod rule_names;
mod vms;
mod webhook;
