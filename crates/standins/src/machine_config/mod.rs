//! A stand-in for the machine config operator: it renders MachineConfigs, takes nodes through cordon, drain, a simulated reboot and
//! uncordon, and reports as the real operator does. Pure functions decide: [`render()`], [`pool_actions()`] and their parts. All state
//! is in the cluster, so a restarted one continues where the last one stopped. Only one may run at a time.

mod actions;
mod cache;
mod cluster_actions;
mod controller;
mod drain;
mod garbage;
mod heartbeat;
mod ignition;
mod kinds;
mod machine;
mod machine_config_node;
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
pub use heartbeat::keep_alive;
pub use kinds::{
    Condition, Configuration, MachineConfig, MachineConfigPool, MachineConfigPoolSpec, PoolStatus, Source,
    machine_config_resource,
};
pub use machine::{DaemonState, Machine};
pub use membership::{Membership, TooManyPools, max_unavailable};
pub use pool_actions::{PoolView, pool_actions};
pub use render::{Rendered, render};
pub use request::Request;
pub use settings::{DrainSettings, MachineConfigSettings};
pub use stand_in::{StandIn, UnexpectedEnd};
pub use validation::RenderError;

/// The component of the stand-in, by which the API server's audit log knows its requests.
pub const COMPONENT: &str = "machine-config-stand-in";
