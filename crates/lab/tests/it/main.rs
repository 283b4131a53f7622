//! The stand-ins and the lab as a whole on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod guides;
mod manifests;
mod platform;
mod reference_commands;
