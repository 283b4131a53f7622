//! What the crate promises, by subject.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod algorithms;
mod buckets;
mod docs;
mod evictions;
mod pareto;
mod pressure;
mod prometheus;
mod rules;
mod world;
