//! The VM controller: keeps a pod for every [`VirtualMachine`](api::VirtualMachine) that shall run, and moves it when asked.
//!
//! What to do about a VM is a function of the VM, its pods and how far its migration has come: [`decide()`]. The rest
//! watches VMs, pods and nodes, and makes one request at a time about each VM. All state but the progress of copying is in the
//! cluster, so a restarted controller goes on where the last one stopped. When nothing is to be done, it sends nothing.
//! Run one at a time.

mod controller;
mod copies;
mod decide;
mod handle;
mod pod;
mod request;
mod settings;
mod sight;
mod status;
#[cfg(test)]
mod tests;
mod world;

pub use decide::{Action, Decision, Scene, decide};
pub use handle::{State, VmController, run};
pub use settings::Settings;
pub use sight::{Launcher, Machine, Wanted};
pub use status::{Failure, Outcome};

/// How far the copying of a VM's memory has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    NotStarted,
    Copying,
    Copied,
    GivenUp,
    /// The target is gone, and with it what was copied.
    Lost,
}
