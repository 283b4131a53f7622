//! The VM controller: keeps a pod for every [`VirtualMachine`](api::VirtualMachine) that is to run, and migrates a VM when an eviction
//! is requested on it. [`decide()`] is a pure function of a VM, its pods and the progress of its migration. All state except the
//! progress of a copy is in the cluster. Only one controller may run at a time.

mod cache;
mod controller;
mod copies;
mod decide;
mod handle;
mod observed;
mod pod;
mod request;
mod settings;
mod status;
#[cfg(test)]
mod tests;

pub use copies::CopyProgress;
pub use decide::{Input, MigrationSource, Outcome, Request, Step, decide};
pub use handle::{State, VmController, run};
pub use observed::{LauncherPod, Vm, VmSpec};
pub use settings::VmControllerSettings;
pub use status::{MigrationFailure, MigrationOutcome};
