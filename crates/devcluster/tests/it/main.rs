//! The harness itself, on real processes. One binary, so that the tests which need no more than an API server share one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audit_log;
mod components;
mod disturbances;
mod identities;
mod processes;
mod tools;
