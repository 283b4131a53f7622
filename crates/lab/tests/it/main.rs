//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod disturbances;
mod drains;
mod exporter;
mod film;
mod manifests;
mod platform;
mod pools;
mod rollouts;
mod sample;
mod seed_commands;
mod vms;
mod webhook;
