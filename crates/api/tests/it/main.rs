//! All kinds on a real API server: what it accepts, its messages for the rest, and what users see.
//! The tables only send dry runs, so they also run on an existing cluster (`USE_EXISTING_CLUSTER=true`), where only the definitions
//! are written. Other tests start their own clusters.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod config_rules;
mod config_values;
mod crd_files;
mod example_cluster;
mod fields;
mod golden;
mod kubectl;
mod machine;
mod malformed;
mod manifest;
mod records;
mod samples;
mod server;
mod sizes;
mod status;
mod table;
mod updates;
