//! The settings of the stand-in. All of them can be changed while it runs.

use std::{collections::BTreeMap, time::Duration};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVirtSettings {
    /// How long a migration takes, from leaving the queue on.
    pub migration: Duration,
    /// How long a guest needs to shut down.
    pub shutdown: Duration,
    /// Names of guests, and how many of their migrations fail before one succeeds.
    pub failing: BTreeMap<String, u32>,
    /// The pause after a migration that failed, and twice as much after each further one.
    pub backoff: Duration,
    /// A migration fails after this time if there is no node for its target pod.
    pub unschedulable: Duration,
}

impl Default for KubeVirtSettings {
    /// How long guests take depends on them; the rest is as in KubeVirt.
    fn default() -> Self {
        KubeVirtSettings {
            migration: Duration::from_secs(3),
            shutdown: Duration::from_secs(1),
            failing: BTreeMap::new(),
            backoff: Duration::from_secs(20),
            unschedulable: Duration::from_secs(5 * 60),
        }
    }
}
