//! Explores the operator's own code exhaustively, within bounds: sessions, writes and decisions, with an administrator who edits at
//! any moment, lost answers, stale reads and crashes. See `docs/dev/model-check.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod driver;
mod ending;
mod explorations;
mod facts;
mod hashed;
mod history;
mod memo;
mod mistakes;
mod mutation;
mod operator_model;
mod pool;
mod profile;
mod records;
mod requests;
mod rules;
mod scenario;
mod system;
mod target;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
