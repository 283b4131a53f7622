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

/// Parts of the harness of the other integration tests.
#[path = "../it/account.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod account;
#[path = "../it/ledger.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod ledger;
#[path = "../it/platform.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod platform;
#[path = "../it/pools.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod pools;
#[path = "../it/running.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod running;
#[path = "../it/stage.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod stage;
