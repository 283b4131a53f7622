//! The whole lab in one process: a control plane with KWOK's nodes, Prometheus, the real descheduler, and our parts as tasks.
//!
//! [`Lab::start`] starts it part by part and reports each part that is ready. Dropping the lab removes everything.

mod advisor;
pub(crate) mod journal;
mod lab;
mod logs;
mod options;
mod part;
mod platform;
mod psi;

pub use journal::JournalEntry;
pub use lab::{Lab, PARTS, Ready};
pub use logs::PartLogs;
pub use options::{Descheduling, Options, Ports};
pub use part::{Check, Part};
