//! A stand-in for the machine config operator (MCO).
//!
//! It renders the MachineConfigs that a pool selects, takes the pool's nodes through cordon, drain, a pretended reboot and
//! uncordon, and reports counts and conditions as the real operator does. It reboots nothing and needs only Node objects.
//!
//! Whatever decides is a function of values: [`render()`], [`step()`] and what they are made of. The rest watches three
//! kinds, keeps what it saw, and performs one action after the other. All state is in the cluster, so a restarted
//! stand-in goes on where the last one stopped. Run one at a time.

mod action;
mod controller;
mod daemon;
mod drain;
mod error;
mod ignition;
mod kinds;
mod machine;
mod membership;
pub mod names;
mod patience;
mod plan;
mod reject;
mod render;
mod renders;
mod retire;
mod settings;
mod stand_in;
mod status;
mod step;
#[cfg(test)]
mod test_objects;
mod world;
mod write;

pub use action::Action;
pub use error::Error;
pub(crate) use kinds::machine_config_resource;
pub use kinds::{
    Condition, Configuration, MachineConfig, MachineConfigPool, MachineConfigPoolSpec, PoolStatus, Source,
};
pub use machine::{Machine, State};
pub use membership::{Membership, TooManyPools, max_unavailable};
pub use reject::RenderError;
pub use render::{Rendered, render};
pub use settings::Settings;
pub use stand_in::StandIn;
pub use step::{PoolView, step};
