//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exporter;
mod manifests;
mod platform;
mod seed_commands;
mod vms;
mod webhook;
