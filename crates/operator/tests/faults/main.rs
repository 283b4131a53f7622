//! Faults between the operator and the real API server: with every fault at every request, the end is the same, and nothing
//! is written without approval.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checks;
mod control_plane;
mod fault;
mod lifecycle;
mod malformed;
mod matrix;
mod network;
mod other_writers;
mod proxy;
mod record;
mod supervisor;
