//! What can be set, before the stand-in runs and while it does.

use std::{collections::BTreeSet, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a "rebooting" node is away.
    pub reboot: Duration,
    /// Changes of MachineConfigs that come within this time of each other are rendered together. (MCO: 5 s.)
    pub render_delay: Duration,
    /// After how long a drain that is held up makes the node degraded. The drain goes on trying.
    pub drain_timeout: Duration,
    /// Names of nodes on which applying a config fails for as long as they are listed.
    pub fail: BTreeSet<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            reboot: Duration::from_secs(3),
            render_delay: Duration::from_millis(100),
            drain_timeout: Duration::from_secs(60 * 60),
            fail: BTreeSet::new(),
        }
    }
}
