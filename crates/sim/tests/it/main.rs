//! Tests of the public interface.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod determinism;
mod documents;
mod forecast;
mod fuzz;
mod golden;
mod import;
mod loop_properties;
mod migration_aware;
mod migrations;
mod optimum;
mod scenarios;
mod search;
mod stated;
mod support;
mod tasks;
