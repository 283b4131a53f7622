//! The parts of the lab on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disturbances;
mod drains;
mod film;
mod platform;
mod pools;
mod rollouts;
mod sample;
