//! What a lab is started with.

use advisor::kube_descheduler::Release;
use balance::{Algorithm, Mode, promql::Source};

use super::PartLogs;
use crate::{vm, webhook};

#[derive(Debug, Clone)]
pub struct Options {
    pub nodes: u32,
    pub cores: u32,
    pub memory_bytes: u64,
    pub descheduling: Descheduling,
    /// The release of the descheduler's operator that the stand-in follows.
    pub descheduler_release: Release,
    /// Whether the webhook plays the plugin KubevirtMigrationAware. A policy that is run as it is has no plugin unless it is on.
    pub migration_aware: webhook::Switch,
    /// Whether the soft-tainter runs, which taints busy nodes.
    pub soft_tainter: bool,
    pub signals: Source,
    pub migration: vm::VmControllerSettings,
    /// How many times faster than the clock the lab runs.
    pub time_scale: f64,
    pub ports: Ports,
    /// Whether to create what the advisor needs, except the KubeDescheduler.
    pub advisor: bool,
    /// The log files of our parts.
    pub logs: PartLogs,
}

/// Where the descheduler gets its policy from.
#[derive(Debug, Clone, PartialEq)]
pub enum Descheduling {
    /// From a KubeDescheduler that the lab creates.
    By { algorithm: Algorithm, mode: Mode },
    /// This text is the policy.
    Policy(String),
    /// From a KubeDescheduler that somebody else creates, such as the advisor.
    Awaited,
}

/// Preferred ports. A port that is taken or none is replaced by any free one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ports {
    pub prometheus: Option<u16>,
    pub exporter: Option<u16>,
    pub descheduler: Option<u16>,
}

impl Ports {
    /// The ports in the guide.
    pub const USUAL: Ports = Ports { prometheus: Some(9090), exporter: Some(8000), descheduler: Some(8443) };
}

impl Default for Options {
    fn default() -> Self {
        Options {
            nodes: 5,
            cores: 32,
            memory_bytes: 128 << 30,
            descheduling: Descheduling::By { algorithm: Algorithm::default(), mode: Mode::Low },
            descheduler_release: Release::NEWEST,
            migration_aware: webhook::Switch::default(),
            soft_tainter: true,
            signals: Source::default(),
            migration: vm::VmControllerSettings::default(),
            time_scale: 1.0,
            ports: Ports::default(),
            advisor: false,
            logs: PartLogs::default(),
        }
    }
}
