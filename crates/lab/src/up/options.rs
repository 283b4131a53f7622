//! What can be set.

use advisor::kube_descheduler::Release;
use balance::{Algorithm, Mode, promql::Source};

use super::PartLogs;
use crate::vm;

#[derive(Debug, Clone)]
pub struct Options {
    pub nodes: u32,
    pub cores: u32,
    pub memory_bytes: u64,
    pub descheduling: Descheduling,
    /// The release of the descheduler's operator that is played, with its definition.
    pub descheduler_release: Release,
    /// Whether busy nodes are marked for the scheduler, as the descheduler's operator has it done.
    pub soft_tainter: bool,
    pub signals: Source,
    pub migration: vm::VmControllerSettings,
    /// How many times faster than the clock everything goes that follows the clock.
    pub time_scale: f64,
    pub ports: Ports,
    /// Whether there is all that the advisor works with, its KubeDescheduler excepted.
    pub advisor: bool,
    /// Where our parts' words go.
    pub logs: PartLogs,
}

/// Who says what the descheduler shall do.
#[derive(Debug, Clone, PartialEq)]
pub enum Descheduling {
    /// A KubeDescheduler that the lab creates.
    By { algorithm: Algorithm, mode: Mode },
    /// This policy, as it is.
    Policy(String),
    /// Whoever creates a KubeDescheduler, such as the advisor.
    Awaited,
}

/// Where to listen if that is free; else, and without a wish, anywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ports {
    pub prometheus: Option<u16>,
    pub exporter: Option<u16>,
    pub descheduler: Option<u16>,
}

impl Ports {
    /// Those that the guide names.
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
