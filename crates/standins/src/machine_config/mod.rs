//! A stand-in for the machine config operator (MCO).
//!
//! It renders the MachineConfigs that a pool selects, takes the pool's nodes through cordon, drain, a simulated reboot and
//! uncordon, and reports counts and conditions as the real operator does. It reboots nothing and needs only Node objects.
//!
//! Pure functions make the decisions: [`render()`], [`pool_actions()`] and their parts. The rest watches three kinds, keeps
//! them in a cache, and sends one request after the other. All state is in the cluster, so a restarted stand-in
//! continues where the last one stopped. Only one may run at a time.

mod actions;
mod cache;
mod cluster_actions;
mod controller;
mod drain;
mod garbage;
mod ignition;
mod kinds;
mod machine;
mod membership;
pub mod names;
mod node_actions;
mod pool_actions;
mod render;
mod render_cache;
mod request;
mod retries;
mod settings;
mod stand_in;
mod status;
#[cfg(test)]
mod test_objects;
mod validation;
mod writer;

pub use actions::{Actions, Drain};
pub use kinds::{
    Condition, Configuration, MachineConfig, MachineConfigPool, MachineConfigPoolSpec, PoolStatus, Source,
    machine_config_resource,
};
pub use machine::{DaemonState, Machine};
pub use membership::{Membership, TooManyPools, max_unavailable};
pub use pool_actions::{PoolView, pool_actions};
pub use render::{Rendered, render};
pub use request::Request;
pub use settings::MachineConfigSettings;
pub use stand_in::{StandIn, UnexpectedEnd};
pub use validation::RenderError;

/// The component of the stand-in, by which the API server's audit log knows its requests.
pub const COMPONENT: &str = "machine-config-stand-in";
