//! `virt-advisor` as people use it, on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod blast_radius;
mod cli_page;
mod decide;
#[cfg(feature = "forecast")]
mod forecast;
mod guide;
mod impact;
mod lease;
mod metrics;
mod monitoring;
mod preview;
mod published;
mod replica;
mod status;
mod stopped;
mod support;
mod terminal;
mod view;
