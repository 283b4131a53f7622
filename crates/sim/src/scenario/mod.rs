//! The file format of scenarios: nodes and VMs, their load over time, the events of nodes, and how to rebalance.
//!
//! A [`ClusterModel`](crate::ClusterModel) is built from a scenario, with counts and names resolved.

mod amount;
pub mod generate;
pub(crate) mod parse;
mod rebalancing;
mod reference;
mod samples;
pub mod shipped;
mod stated;
mod tables;
mod tasks;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use amount::{Amount, Daily, Exponential, Load, Normal, Periodic, Ramp};
pub use parse::{ScenarioError, parse, text_of};
pub use rebalancing::{
    Guards, Limits, MigrationAware, MigrationModel, MigrationSettings, Placement, Rebalancing, Semantics,
};
pub use samples::{Packed, Samples};
pub use stated::{Loads, Measured, OwnLoad, Requests};
pub use tasks::{Condition, Day, Target, TaskGroup, Window};

use crate::units::{Bytes, ClockTime, Rate, Span};

/// The JSON schema of scenario files, as it is published.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Scenario);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// A cluster, its load over time, and how it is rebalanced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scenario {
    /// What the scenario is called.
    pub name: String,
    /// What it shows, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Fixes what is drawn when the cluster is built (the loads given as `between`). The seed of a run is another one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seed: u64,
    /// The length of a step.
    #[serde(default = "default_step")]
    pub step: Span,
    /// How long the simulated time lasts.
    #[serde(default = "default_duration")]
    pub duration: Span,
    /// The time of day at which it begins; day 0 is a Monday.
    #[serde(default, skip_serializing_if = "is_midnight")]
    pub start: ClockTime,
    /// The nodes, in groups of equals.
    pub nodes: Vec<NodeGroup>,
    /// The VMs, in groups of equals.
    pub vms: Vec<VmGroup>,
    /// Tasks that come at random and load a VM for a while.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskGroup>,
    /// What happens to nodes, and when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<NodeEventSpec>,
    /// How the cluster is rebalanced; the command line can change each part of it.
    #[serde(default)]
    pub rebalancing: Rebalancing,
}

/// One node, or `count` equal ones called `<name>-1`, `<name>-2` and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeGroup {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100_000))]
    pub count: Option<u32>,
    /// CPU cores.
    #[serde(default = "default_node_cores")]
    pub cores: f64,
    #[serde(default = "default_node_memory")]
    pub memory: Bytes,
    /// How many VMs may run on a node.
    #[serde(default = "default_max_vms")]
    pub max_vms: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Whether it is closed to new VMs from the beginning.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cordoned: bool,
    /// What the node itself uses, besides its VMs.
    #[serde(default, skip_serializing_if = "OwnLoad::is_none")]
    pub own_load: OwnLoad,
    /// What other pods than VMs request. VMs cannot have it.
    #[serde(default, skip_serializing_if = "Requests::is_none")]
    pub reserved: Requests,
    /// Signals that count in the first step, and on a node without VMs until one comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

/// Keeps VMs that do not tolerate it off a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    pub key: String,
    #[serde(default)]
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Effect {
    /// No new VM comes without tolerating it.
    #[default]
    NoSchedule,
    /// Other nodes are preferred.
    PreferNoSchedule,
}

/// One VM, or `count` equal ones called `<name>-1`, `<name>-2` and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VmGroup {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 2_000_000))]
    pub count: Option<u32>,
    /// Virtual CPU cores.
    #[serde(default = "default_vm_cores")]
    pub cores: f64,
    #[serde(default = "default_vm_memory")]
    pub memory: Bytes,
    /// How much of its cores it uses.
    #[serde(default = "default_cpu")]
    pub cpu: Load,
    /// How much of its memory it uses.
    #[serde(default = "default_memory_use")]
    pub memory_use: Load,
    /// Makes VMs of the group unlike: each one's CPU load is multiplied by a factor from 1 − vary to 1 + vary.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub vary: f64,
    /// Makes load unsteady: up to this much is added to or taken from the CPU load, anew in every step.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub noise: f64,
    /// How fast it writes to its memory; a migration has to be faster.
    #[serde(default = "default_dirty_rate")]
    pub dirty_rate: Rate,
    /// The real descheduler evicts low priorities first; VMs of a failed node are restarted in order of it.
    #[serde(default, skip_serializing_if = "is_zero_i32")]
    pub priority: i32,
    /// What it requests of a node, where that is neither its memory nor its cores divided by `cpuOvercommit`.
    #[serde(default, skip_serializing_if = "Requests::is_none")]
    pub requests: Requests,
    /// Whether it can be migrated while it runs.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub migratable: bool,
    /// Why it cannot be migrated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_migratable_because: Option<String>,
    #[serde(default, skip_serializing_if = "Affinity::is_none")]
    pub affinity: Affinity,
    /// The keys of the taints that it tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<String>,
    /// Where it runs at first: nodes, or groups of them, taken in turn. Without it, where a scheduler puts it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
}

/// Which nodes a VM may run on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Affinity {
    /// Just those with all of these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, String>,
    /// No two VMs that name the same word here share a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
}

impl Affinity {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Something that happens to a node; exactly one of the actions.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Event")]
pub struct NodeEventSpec {
    pub at: Span,
    /// The node is closed to new VMs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cordon: Option<String>,
    /// The node is open again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncordon: Option<String>,
    /// The node is closed and its VMs are migrated away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<String>,
    /// The node is gone at once; its VMs are restarted elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail: Option<String>,
    /// A failed node is back, empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recover: Option<String>,
    /// New nodes join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub add: Option<NodeGroup>,
}

fn default_step() -> Span {
    Span(60)
}
fn default_duration() -> Span {
    Span(6000)
}
fn default_node_cores() -> f64 {
    32.0
}
fn default_node_memory() -> Bytes {
    Bytes(128 << 30)
}
fn default_max_vms() -> u32 {
    250
}
fn default_vm_cores() -> f64 {
    2.0
}
fn default_vm_memory() -> Bytes {
    Bytes(4 << 30)
}
fn default_cpu() -> Load {
    Load::Constant(0.5)
}
fn default_memory_use() -> Load {
    Load::Constant(0.8)
}
fn default_dirty_rate() -> Rate {
    Rate(800_000_000)
}
fn yes() -> bool {
    true
}
fn is_true(value: &bool) -> bool {
    *value
}
fn is_false(value: &bool) -> bool {
    !*value
}
fn is_zero(value: &u64) -> bool {
    *value == 0
}
fn is_zero_i32(value: &i32) -> bool {
    *value == 0
}
fn is_none(value: &f64) -> bool {
    *value == 0.0
}
fn is_midnight(value: &ClockTime) -> bool {
    value.0 == 0
}

impl Scenario {
    /// A scenario with these nodes and VMs and defaults for the rest.
    pub fn new(name: &str, nodes: Vec<NodeGroup>, vms: Vec<VmGroup>) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            seed: 0,
            step: default_step(),
            duration: default_duration(),
            start: ClockTime(0),
            nodes,
            vms,
            tasks: Vec::new(),
            events: Vec::new(),
            rebalancing: Rebalancing::default(),
        }
    }

    /// The number of steps of the duration.
    pub fn steps(&self) -> u64 {
        self.duration.0 / self.step.0.max(1)
    }

    /// The scenario as a file. Parsing it gives the same scenario.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_default()
    }
}

impl NodeGroup {
    /// One node of the reference's size: 32 cores and 128 GiB.
    pub fn reference(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            count: None,
            cores: default_node_cores(),
            memory: default_node_memory(),
            max_vms: default_max_vms(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
            cordoned: false,
            own_load: OwnLoad::default(),
            reserved: Requests::default(),
            measured: None,
        }
    }
}

impl VmGroup {
    /// One VM with defaults.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            count: None,
            cores: default_vm_cores(),
            memory: default_vm_memory(),
            cpu: default_cpu(),
            memory_use: default_memory_use(),
            vary: 0.0,
            noise: 0.0,
            dirty_rate: default_dirty_rate(),
            priority: 0,
            requests: Requests::default(),
            migratable: true,
            not_migratable_because: None,
            affinity: Affinity::default(),
            tolerations: Vec::new(),
            on: Vec::new(),
        }
    }
}
