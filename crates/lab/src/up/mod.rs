//! The whole lab in one process: a control plane with KWOK's nodes, Prometheus, the real descheduler, and our parts as tasks.
//!
//! [`Lab::start`] brings it up part by part and tells of each when it is ready. Whatever it made goes when it is dropped.

mod advisor;
mod error;
mod follow;
pub(crate) mod journal;
mod lab;
mod logs;
mod options;
mod part;
mod platform;
mod population;
mod psi;
mod sample;

pub use error::Error;
pub(crate) use follow::by_number;
pub use follow::{Follower, Room, edit, matches, rooms};
pub use journal::Migration;
pub use lab::{Lab, PARTS, Ready};
pub use logs::PartLogs;
pub use options::{Descheduling, Options, Ports};
pub use part::{Check, Part};
pub use population::{Doors, Guest, Placement};
