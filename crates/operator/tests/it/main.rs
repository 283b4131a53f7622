//! Plans on a real API server with the third parties' kinds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cost;
mod outcomes;
mod platform;
mod repeat;
mod requests;
mod seeds;
mod versions;
mod webhook;
mod write;
