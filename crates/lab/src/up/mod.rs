//! The whole lab in one process: a control plane with KWOK's nodes, Prometheus, the real descheduler, and our parts as tasks.
//!
//! [`Lab::start`] brings it up part by part and tells of each when it is ready. Whatever it made goes when it is dropped.

mod error;
mod lab;
mod options;
mod platform;
mod population;

pub use error::Error;
pub use lab::{Lab, PARTS, Ready};
pub use options::{Descheduling, Options, Ports};
pub use population::{Guest, Placement};
