//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod disturbances;
mod drains;
mod exporter;
mod film;
mod manifests;
#[path = "../common/orders.rs"]
mod orders;
mod platform;
mod pools;
#[path = "../common/replay.rs"]
mod replay;
mod rollouts;
mod sample;
mod seed_commands;
mod vms;
#[path = "../common/wait.rs"]
mod wait;
mod webhook;
