//! Plans and the whole operator on a real API server with the definitions of third parties.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approval_policy;
mod autopilot;
mod bad_input;
mod cost;
mod gitops;
mod lifecycle;
mod outcomes;
mod permissions;
mod real_operators;
mod records;
mod repeat;
mod requests;
mod restore;
mod restore_any;
mod two_profiles;
mod versions;
mod workflow_guide;
mod write;

use testkit::webhook;
