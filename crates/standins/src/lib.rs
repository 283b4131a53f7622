//! Stand-ins for operators of OpenShift, for clusters that have none: the machine config operator and the descheduler
//! operator. Everything that they write says that it is from a stand-in.

pub mod descheduler;
mod http_client;
pub mod machine_config;
mod request;

pub use http_client::{HttpClient, HttpError};

/// Label with the value `"true"` on objects that a stand-in creates.
pub const STAND_IN_LABEL: &str = "advisor.kubevirt.io/stand-in";
