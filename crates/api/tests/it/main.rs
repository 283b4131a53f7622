//! Both kinds on a real API server: what it accepts, what it says about the rest, and what users see.
//!
//! The tables only send dry runs, so they also run on somebody's cluster (`USE_EXISTING_CLUSTER=true`). Nothing is
//! written there but the two definitions; whatever else is written is written to clusters of our own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod config_rules;
mod config_values;
mod crd_files;
mod exhibition;
mod fields;
mod golden;
mod kubectl;
mod machine;
mod malformed;
mod manifest;
mod samples;
mod server;
mod sizes;
mod status;
mod table;
mod updates;
