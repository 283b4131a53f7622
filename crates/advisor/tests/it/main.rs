//! Whole plans: those of the workflow guide, and those of arbitrary clusters.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod golden;
mod kernel_arguments;
mod properties;
mod records;
