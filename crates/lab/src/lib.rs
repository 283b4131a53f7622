//! The lab: starts a cluster with simulated VMs to balance, loads it, and shows it. The crate `standins` replaces operators
//! of OpenShift.

use lab_parts::{exporter, launcher, prometheus, soft_tainter, vm, webhook};

mod error;
pub mod import;
pub mod kwok;
pub mod manifests;
pub mod play;
pub mod survey;
pub mod up;

pub use error::Error;

/// The component of requests that no part of the lab sends.
pub const COMPONENT: &str = "lab";
