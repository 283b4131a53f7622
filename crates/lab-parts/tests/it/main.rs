//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exporter;
mod platform;
mod vms;
mod webhook;
