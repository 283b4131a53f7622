//! The lab: a platform to run the advisor on, and a cluster of pretended guests to balance. Operators of OpenShift are
//! replaced by the stand-ins of the crate `standins`.

pub use lab_parts::connect;
use lab_parts::{exporter, launcher, listing, prometheus, vm, watch, webhook};

pub mod kwok;
pub mod manifests;
pub mod play;
pub mod soft_tainter;
pub mod survey;
pub mod up;
