//! `rebalance-lab` as people use it: its parts and the whole lab as processes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod faults;
mod manifests;
mod parts;
mod sim;
mod up;
mod webhook;
