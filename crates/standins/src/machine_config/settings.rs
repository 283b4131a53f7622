//! The settings of the stand-in. All of them can be changed while it runs.

use std::{collections::BTreeSet, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfigSettings {
    /// How long a simulated reboot takes.
    pub reboot: Duration,
    /// Changes of MachineConfigs within this time are rendered together. (MCO: 5 s.)
    pub render_delay: Duration,
    /// After this time a node that is still being drained becomes degraded. The drain continues.
    pub drain_timeout: Duration,
    /// Names of nodes on which applying a config fails for as long as they are listed.
    pub fail: BTreeSet<String>,
}

impl Default for MachineConfigSettings {
    fn default() -> Self {
        MachineConfigSettings {
            reboot: Duration::from_secs(3),
            render_delay: Duration::from_millis(100),
            drain_timeout: Duration::from_secs(60 * 60),
            fail: BTreeSet::new(),
        }
    }
}
