//! Whole plans, from outside: as the workflow guide shows them, and whatever a cluster looks like.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod golden;
mod kernel_arguments;
mod properties;
