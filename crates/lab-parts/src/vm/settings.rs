//! What can be set.

use std::time::Duration;

use sim::{
    scenario::{Migration, MigrationModel},
    units::Rate,
};

/// The scheduler and KWOK take their time, however fast everything else goes.
const LEAST_START_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// How long migrations take, and how many may run. The same as the simulator's.
    pub migration: Migration,
    /// At what rate guests write to their memory.
    pub dirty_rate: Rate,
    /// A migration whose target has not started after this time is given up.
    pub start_timeout: Duration,
    /// How many times faster than the clock all this goes.
    pub time_scale: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            migration: Migration { model: MigrationModel::PreCopy, ..Migration::default() },
            dirty_rate: Rate(800_000_000),
            start_timeout: Duration::from_secs(30),
            time_scale: 1.0,
        }
    }
}

impl Settings {
    /// By the clock.
    pub(super) fn start_timeout(&self) -> Duration {
        self.start_timeout.div_f64(self.time_scale).max(LEAST_START_TIMEOUT)
    }
}
