//! The settings of the stand-in. All of them can be changed while it runs.

use std::{collections::BTreeSet, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfigSettings {
    /// How long a node needs between its drain and its reboot, to write files and deploy the operating system.
    pub apply: Duration,
    /// How long a simulated reboot takes.
    pub reboot: Duration,
    /// Changes of MachineConfigs within this time are rendered together. (MCO: 5 s.)
    pub render_delay: Duration,
    pub drain: DrainSettings,
    /// Whether the progress of each node is also told by a MachineConfigNode. Its definition must be installed.
    pub machine_config_nodes: bool,
    /// Names of nodes on which applying a config fails for as long as they are listed.
    pub fail: BTreeSet<String>,
}

impl Default for MachineConfigSettings {
    fn default() -> Self {
        MachineConfigSettings {
            apply: Duration::ZERO,
            reboot: Duration::from_secs(3),
            render_delay: Duration::from_millis(100),
            drain: DrainSettings::default(),
            machine_config_nodes: false,
            fail: BTreeSet::new(),
        }
    }
}

/// How nodes are drained: in attempts, with pauses between them. The defaults are those of MCO. A drain that has begun keeps what was
/// set then, except for `timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainSettings {
    /// How long an attempt takes at most.
    pub attempt: Duration,
    /// The pause before an eviction that was refused is repeated in the same attempt.
    pub retry: Duration,
    /// How often it is checked in an attempt whether an evicted pod is gone.
    pub poll: Duration,
    /// The pause after an attempt, and after one that ends when the drain has taken longer than `long_pause_after`.
    pub pause: Duration,
    pub long_pause: Duration,
    pub long_pause_after: Duration,
    /// After this time a node that is still being drained becomes degraded. The drain continues.
    pub timeout: Duration,
}

impl Default for DrainSettings {
    fn default() -> Self {
        DrainSettings {
            attempt: Duration::from_secs(90),
            retry: Duration::from_secs(5),
            poll: Duration::from_secs(1),
            pause: Duration::from_secs(60),
            long_pause: Duration::from_secs(5 * 60),
            long_pause_after: Duration::from_secs(10 * 60),
            timeout: Duration::from_secs(60 * 60),
        }
    }
}

impl DrainSettings {
    /// The same, so many times as fast.
    pub fn faster(self, speed: f64) -> Self {
        DrainSettings {
            attempt: self.attempt.div_f64(speed),
            retry: self.retry.div_f64(speed),
            poll: self.poll.div_f64(speed),
            pause: self.pause.div_f64(speed),
            long_pause: self.long_pause.div_f64(speed),
            long_pause_after: self.long_pause_after.div_f64(speed),
            timeout: self.timeout.div_f64(speed),
        }
    }
}
