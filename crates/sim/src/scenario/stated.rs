//! What a scenario states about the load of a node itself, apart from its VMs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Load;
use crate::units::Bytes;

/// What a node uses besides its VMs, as shares of its size from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct OwnLoad {
    pub cpu: Load,
    pub memory: Load,
}

impl Default for OwnLoad {
    fn default() -> Self {
        Self::constant(0.0, 0.0)
    }
}

impl OwnLoad {
    /// The same at all times.
    pub fn constant(cpu: f64, memory: f64) -> Self {
        Self { cpu: Load::Constant(cpu), memory: Load::Constant(memory) }
    }

    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// CPU in cores and memory that the scheduler reserves.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Requests {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub cpu: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Bytes>,
}

impl Requests {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Signals that were measured on a node.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Measured {
    #[schemars(range(min = 0, max = 1))]
    pub cpu: f64,
    #[schemars(range(min = 0, max = 1))]
    pub cpu_pressure: f64,
    #[schemars(range(min = 0, max = 1))]
    pub memory: f64,
    #[schemars(range(min = 0, max = 1))]
    pub memory_pressure: f64,
}

impl Measured {
    /// In the order of [`balance::Signal::ALL`].
    pub(crate) fn signals(&self) -> [f64; 4] {
        [self.cpu, self.cpu_pressure, self.memory, self.memory_pressure]
    }
}

/// Where the signals of the first step come from, if the scenario states measured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Loads {
    /// The measured signals count in the first step, and on a node without VMs until one comes.
    #[default]
    Stated,
    /// They always follow from the VMs.
    Vms,
}

impl Loads {
    pub const fn slug(self) -> &'static str {
        match self {
            Self::Stated => "stated",
            Self::Vms => "vms",
        }
    }

    pub const fn describe(self) -> &'static str {
        match self {
            Self::Stated => "first loads as stated",
            Self::Vms => "loads from VMs",
        }
    }
}
