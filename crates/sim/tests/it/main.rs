//! Tests of the public interface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod determinism;
mod documents;
mod fuzz;
mod golden;
mod loop_properties;
mod migrations;
mod scenarios;
mod support;
