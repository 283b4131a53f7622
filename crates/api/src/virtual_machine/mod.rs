//! The lab's `VirtualMachine`: a pretended guest with a size and a load. It stands in for KubeVirt's
//! kind of the same name, from which it borrows the short names but not the API group.

mod amounts;
mod spec;
mod status;

pub use amounts::{Cpu, Memory, Ratio};
pub use spec::{Resources, Utilization, VirtualMachine, VirtualMachineSpec};
pub use status::{EndedMigration, Phase, VirtualMachineStatus};

#[cfg(test)]
mod tests;
