//! The stand-ins on a real API server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod descheduler;
mod machine_config;
mod one_reboot;
