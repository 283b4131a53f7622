//! Tests of the public interface, by subject.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod algorithms;
mod buckets;
mod clusters;
mod evictions;
mod pareto;
mod pressure;
mod prometheus;
mod rules;
