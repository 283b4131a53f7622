//! Explores the shipping code exhaustively, within bounds: sessions, writes and decisions as the operator runs them, with an
//! administrator who edits at any moment, lost answers, stale reads and crashes. `docs/dev/model-check.md` tells more.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod ending;
mod hashed;
mod history;
mod memory;
mod mistakes;
mod mutation;
mod operator;
mod profile;
mod rules;
mod scenarios;
mod world;
