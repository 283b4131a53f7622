//! What the tests of several crates share: waiting for a condition, clusters that look like OpenShift Virtualization, the
//! operator under test, machine config rollouts, a pseudo-terminal, and an observer of pods and VMs.
//! Everything here panics when a request fails: it is for tests and benchmarks only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(missing_debug_implementations, reason = "a client cannot be printed")]

pub mod audit;
pub mod checklist;
pub mod configs;
mod eventually;
pub mod files;
pub mod kube_descheduler;
pub mod platform;
pub mod pty;
pub mod rbac;
pub mod replay;
pub mod rollout;
pub mod running_operator;
pub mod shared;
pub mod tcp_proxy;
pub mod webhook;

pub use eventually::{eventually, poll, poll_blocking, within};
