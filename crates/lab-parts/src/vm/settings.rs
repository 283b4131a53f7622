//! How the VM controller starts and migrates VMs, and how many at the same time.

use std::time::Duration;

use sim::{
    scenario::{MigrationModel, MigrationSettings},
    units::Rate,
};

/// The scheduler and KWOK need their time whatever the time scale is.
const SHORTEST_START_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub struct VmControllerSettings {
    /// How long migrations take, and how many may run. The simulator has the same.
    pub migration: MigrationSettings,
    /// The rate at which VMs write to their memory, unless a VM has its own.
    pub dirty_rate: Rate,
    /// A migration fails if its target has not started after this time.
    pub start_timeout: Duration,
    /// How many times faster than the clock migrations run.
    pub time_scale: f64,
}

impl Default for VmControllerSettings {
    fn default() -> Self {
        VmControllerSettings {
            migration: MigrationSettings { model: MigrationModel::PreCopy, ..MigrationSettings::default() },
            dirty_rate: Rate(800_000_000),
            start_timeout: Duration::from_secs(30),
            time_scale: 1.0,
        }
    }
}

impl VmControllerSettings {
    /// By the clock.
    pub(super) fn start_timeout(&self) -> Duration {
        self.start_timeout.div_f64(self.time_scale).max(SHORTEST_START_TIMEOUT)
    }
}
