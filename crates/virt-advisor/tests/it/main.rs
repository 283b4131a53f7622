//! `virt-advisor` as people use it, on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod guide;
mod impact;
mod lease;
mod metrics;
mod monitoring;
mod preview;
mod replica;
mod stopped;
mod support;
