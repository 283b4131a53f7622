//! The exporter without an API server.

mod counting;
mod fixture;
mod histories;
mod page;
