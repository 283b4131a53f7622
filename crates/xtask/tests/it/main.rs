//! The commands as people run them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod demo;
mod tools;
