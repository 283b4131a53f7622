//! Faults against the real API server: whatever breaks at whatever moment, the end is the same, and nothing is written that
//! nobody approved.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fault;
mod malformed;
mod matrix;
mod people;
mod proxy;
mod record;
mod script;
mod server;
mod supervisor;
mod verdict;
