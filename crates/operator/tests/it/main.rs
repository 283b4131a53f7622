//! Plans on a real API server with the third parties' kinds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account;
mod bad_input;
mod cost;
mod ledger;
mod life;
mod outcomes;
mod platform;
mod pools;
mod real_operators;
mod repeat;
mod requests;
mod rights;
mod running;
mod seeds;
mod stage;
mod two_profiles;
mod versions;
mod webhook;
mod write;
