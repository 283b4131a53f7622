//! The blast radius of a plan: which nodes reboot and in which order, what happens to each virtual machine on them, for how long, and
//! what may go wrong. A pure function of the plan and of what the caller may read; what could not be read is said. The cost is that of
//! sorting nodes, virtual machines, pods and budgets, as long as virtual machines fit somewhere.

mod attempts;
mod budgets;
mod capacity;
mod cluster;
mod daemon;
mod drain_effect;
mod duration;
mod estimate;
mod instance;
mod node;
mod notes;
mod order;
mod pod;
mod radius;
mod risks;
#[cfg(test)]
mod tests;
mod unread;
mod words;

pub use budgets::BudgetAtLimit;
pub use capacity::{Capacity, CapacityResult, UnschedulableGuest};
pub use cluster::{ObservedCluster, ObservedMigration, Operation, Platform, Reading, Reboot, reboots};
pub(crate) use drain_effect::DrainContext;
pub use drain_effect::{DrainEffect, GuestOutcome};
pub use estimate::Estimate;
pub use instance::{Instance, VirtualMachine};
pub use node::{MachinePool, Node};
pub(crate) use node::{members, timestamp};
pub use pod::{Budget, Pod};
pub use radius::{BlastRadius, NodeRadius, PlanContents, PoolRadius, Totals, blast_radius};
pub use risks::NamedRisk;
pub use unread::Unread;
use words::counted;
