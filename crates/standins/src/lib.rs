//! Stand-ins for operators of OpenShift, for clusters that have none: the machine config operator, the descheduler operator
//! and KubeVirt. Everything that they write says that it is from a stand-in.

pub mod descheduler;
pub mod kubevirt;
pub mod machine_config;
mod objects;
mod time;

use std::time::Duration;

pub use time::{Simulation, Time};

/// The time limit of a request.
const DEADLINE: Duration = Duration::from_secs(10);

/// Label with the value `"true"` on objects that a stand-in creates.
pub const STAND_IN_LABEL: &str = "advisor.kubevirt.io/stand-in";
