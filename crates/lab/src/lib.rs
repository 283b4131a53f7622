//! The lab: starts a cluster with simulated VMs to balance, loads it, and shows it. The crate `standins` replaces operators
//! of OpenShift.

pub use lab_parts::connect;
use lab_parts::{exporter, launcher, listing, prometheus, vm, watch, webhook};

mod error;
pub mod kwok;
pub mod manifests;
pub mod play;
pub mod soft_tainter;
pub mod survey;
pub mod up;

pub use error::Error;
