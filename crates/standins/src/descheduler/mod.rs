//! A stand-in for the descheduler operator. It runs the real descheduler. A KubeDescheduler becomes a policy and flags ([`Policy`]) by
//! the rules of the operator, and the real program runs with them for as long as the object exists. [`Policy::of`] is a pure function.
//! The rest watches, keeps one process running, and reports its state in the cluster.

mod controller;
mod decision;
mod metrics_proxy;
mod migration_aware;
pub mod names;
mod observed;
mod operand;
mod policy;
mod policy_error;
mod process;
mod prometheus_proxy;
mod settings;
mod spec;
mod stand_in;
mod status;

pub use observed::{kube_descheduler_api, only_cluster_object};
pub use policy::{Policy, PolicyContext, Thresholds};
pub use policy_error::PolicyError;
pub use process::{Error, program};
pub use prometheus_proxy::{PROMETHEUS_TIMEOUT, prometheus_timeout};
pub use settings::{DeschedulerSettings, PolicySource};
pub use spec::{Customizations, EvictionLimits, Mode, Namespaces, Spec};
pub use stand_in::{StandIn, StandInState, run};

/// The component of the stand-in, by which the API server's audit log knows its requests.
pub const COMPONENT: &str = "descheduler-stand-in";
