//! A stand-in for KubeVirt: guests that move, restart, stay down or block a drain, without a hypervisor. Guests run in virt-launcher
//! pods that nothing executes; the scheduler places them. Pure functions decide: `decide` and `answer`. All state is in the cluster.
//! Only one may run at a time.

mod answer;
mod cluster;
mod controller;
mod decide;
mod instance_view;
mod launcher;
mod migrations;
mod owners;
mod request;
mod settings;
mod stand_in;
#[cfg(test)]
mod tests;
mod webhook;

use answer::{Answer, answer};
use cluster::Cluster;
use decide::{Actions, decide};
use request::{Request, Write};
pub use settings::KubeVirtSettings;
pub use stand_in::{KubeVirt, StartError};

/// Field manager of everything the stand-in writes, and the target of its log.
pub const FIELD_MANAGER: &str = "kubevirt-stand-in";
