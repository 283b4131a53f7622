//! Tasks of a scenario: load that comes at random and lasts for a while.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Amount;
use crate::units::{ClockTime, Span};

/// Tasks: every so often some VMs get more to do for a while.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskGroup {
    pub name: String,
    /// How often tasks come.
    pub every: Span,
    /// How many come each time.
    #[serde(default = "one")]
    pub count: Amount,
    /// Whom they load.
    #[serde(default)]
    pub target: Target,
    /// How much of a VM's cores a task uses.
    #[serde(default = "zero")]
    pub cpu: Amount,
    /// How much of a VM's memory a task uses.
    #[serde(default = "zero")]
    pub memory: Amount,
    /// How many seconds a task takes.
    pub seconds: Amount,
    /// When tasks come; always, without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// Which VMs get a task.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// Any VM.
    #[default]
    Any,
    /// VMs of this group.
    Vms(String),
    /// VMs on this many of the nodes with the most CPU use.
    HottestNodes(u32),
    /// VMs on this many nodes, drawn anew each time.
    RandomNodes(u32),
}

/// Days and times of day. A window that ends before it begins lasts over midnight and belongs to the day it began on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Window {
    /// All days, when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Day>,
    #[serde(default)]
    pub from: ClockTime,
    /// The end of the day, when it equals `from`.
    #[serde(default)]
    pub to: ClockTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

fn one() -> Amount {
    Amount::Fixed(1.0)
}
fn zero() -> Amount {
    Amount::Fixed(0.0)
}
