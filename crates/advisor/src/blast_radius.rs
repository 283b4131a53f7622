//! The blast radius of a plan: which nodes reboot and in which order, what happens to each virtual machine on them, for how long, and
//! what may go wrong.
//!
//! A pure function of the plan and of what the caller may read. The operator never computes it: it has no rights on virtual machines,
//! and needs none. What could not be read is said, and nothing is assumed in its place.
//!
//! The cost is that of sorting: n log n in nodes, virtual machines and pods, as long as virtual machines fit somewhere. One that fits
//! nowhere, or almost nowhere, costs one look at every node.

mod budgets;
mod capacity;
mod cluster;
mod demand;
mod duration;
mod fate;
mod instance;
mod node;
mod order;
mod pod;
mod radius;
mod risks;
mod selector;
#[cfg(test)]
mod tests;
mod unread;

pub use budgets::BudgetAtLimit;
pub use capacity::{Capacity, Stranded, Verdict};
pub use cluster::{Migration, Observed, Operation, Platform, Reading, Reboot, reboots};
pub use duration::Estimate;
pub use fate::{Fate, Outcome};
pub use instance::{Instance, VirtualMachine};
pub use node::{MachinePool, Node};
pub use pod::{Budget, Pod};
pub use radius::{BlastRadius, NodeRadius, PlanView, PoolRadius, Totals, blast_radius};
pub use risks::NamedRisk;
pub use unread::Unread;
