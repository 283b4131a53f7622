//! The commands as people run them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod commands;
mod demo;
mod dependencies;
mod dev;
mod docs;
mod image;
mod installation;
mod node;
mod old_kubernetes;
mod own_kubectl;
mod packages;
mod prerequisites;
mod rights;
mod swap;
mod tools;
mod upgrade;
