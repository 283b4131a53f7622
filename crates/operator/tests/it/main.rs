//! Plans on a real API server with the third parties' kinds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod cost;
mod life;
mod outcomes;
mod real_operators;
mod repeat;
mod requests;
mod rights;
mod seeds;
mod two_profiles;
mod versions;
mod webhook;
mod write;
