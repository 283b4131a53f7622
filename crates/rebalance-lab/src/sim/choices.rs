//! Choices on the command line, with the names and descriptions of `--help`. Each stands for a value of the simulator.

use clap::ValueEnum;
use sim::{compare, scenario};

/// Whose rules.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Semantics {
    /// The reference simulator's: exact scores, random VMs
    Reference,
    /// LowNodeUtilization's: whole percent, clamped bounds, VMs by priority, evictions in flight counted
    Descheduler,
}

impl From<Semantics> for scenario::Semantics {
    fn from(semantics: Semantics) -> Self {
        match semantics {
            Semantics::Reference => Self::Reference,
            Semantics::Descheduler => Self::Descheduler,
        }
    }
}

/// Who chooses the node that a VM goes to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Placement {
    /// An under-utilized node at random whose memory suffices, as the reference does
    Random,
    /// Like a scheduler: requests, taints and affinity, then least allocated, balanced, and few taints
    Scheduler,
}

impl From<Placement> for scenario::Placement {
    fn from(placement: Placement) -> Self {
        match placement {
            Placement::Random => Self::Random,
            Placement::Scheduler => Self::Scheduler,
        }
    }
}

/// Where the first signals come from, if the file states measured ones.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum Loads {
    /// As the file states them, until the first step is done; a node without VMs keeps them
    Stated,
    /// They follow from the VMs, and from the own load of nodes
    Vms,
}

impl From<Loads> for scenario::Loads {
    fn from(loads: Loads) -> Self {
        match loads {
            Loads::Stated => Self::Stated,
            Loads::Vms => Self::Vms,
        }
    }
}

/// How long a migration takes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum MigrationModel {
    /// It takes no time, as in the reference
    Instant,
    /// Memory is copied while the VM keeps writing to it; the bandwidth is shared
    PreCopy,
}

impl From<MigrationModel> for scenario::MigrationModel {
    fn from(model: MigrationModel) -> Self {
        match model {
            MigrationModel::Instant => Self::Instant,
            MigrationModel::PreCopy => Self::PreCopy,
        }
    }
}

/// What algorithms are ranked by.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(super) enum Criterion {
    /// The mean over time of the standard deviation of CPU use
    #[default]
    Spread,
    /// The standard deviation of CPU use at the end
    EndSpread,
    /// Steps until the cluster was balanced; all steps and one more if it never was
    Steps,
    /// Steps until no node was over-utilized; all steps and one more if there always was one
    NoneOver,
    /// Migrations
    Migrations,
    /// Bytes moved
    Bytes,
    /// Migrations that brought a VM back to where it had just been
    PingPong,
    /// VM-seconds under pressure
    Pressure,
}

impl From<Criterion> for compare::Criterion {
    fn from(criterion: Criterion) -> Self {
        match criterion {
            Criterion::Spread => Self::Spread,
            Criterion::EndSpread => Self::EndSpread,
            Criterion::Steps => Self::Steps,
            Criterion::NoneOver => Self::NoneOver,
            Criterion::Migrations => Self::Migrations,
            Criterion::Bytes => Self::Bytes,
            Criterion::PingPong => Self::PingPong,
            Criterion::Pressure => Self::Pressure,
        }
    }
}
