//! A stand-in for the descheduler operator. It runs the real descheduler.
//!
//! A KubeDescheduler becomes a policy and flags ([`Policy`]) by the operator's rules, and the real program runs with
//! them for as long as the object is there. [`Policy::of`] is a pure function. The rest watches, keeps one process alive,
//! and reports its state in the cluster.

mod guard;
mod http_client;
pub mod names;
mod operand;
mod operator;
mod policy;
mod policy_error;
mod process;
mod proxy;
mod settings;
mod sight;
mod spec;
mod stand_in;
mod status;
mod verdict;

pub use http_client::{HttpClient, HttpError};
pub use policy::{Policy, PolicyContext, Thresholds};
pub use policy_error::PolicyError;
pub use process::{Error, program};
pub use settings::{PolicySource, Settings};
pub use sight::{kube_descheduler_api, only_cluster_object};
pub use spec::{Customizations, EvictionLimits, Mode, Namespaces, Spec};
pub use stand_in::{StandIn, State, run};
