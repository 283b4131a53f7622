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
    /// The state of the nodes in which tasks come; any, without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Condition>,
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
    /// VMs on this many of the nodes with the least CPU use.
    ColdestNodes(u32),
    /// VMs on this many nodes, drawn anew each time.
    RandomNodes(u32),
}

/// What nodes use when tasks come. Each part that is stated holds if it is true of at least one node, and all of them must hold.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Condition {
    /// A node uses more than this share of its cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub node_cpu_above: Option<f64>,
    /// A node uses less than this share of its cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub node_cpu_below: Option<f64>,
    /// A node uses more than this share of its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub node_memory_above: Option<f64>,
    /// A node uses less than this share of its memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub node_memory_below: Option<f64>,
}

impl Condition {
    /// The stated parts, by the names of their fields.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("nodeCpuAbove", self.node_cpu_above),
            ("nodeCpuBelow", self.node_cpu_below),
            ("nodeMemoryAbove", self.node_memory_above),
            ("nodeMemoryBelow", self.node_memory_below),
        ]
        .into_iter()
        .filter_map(|(name, bound)| Some((name, bound?)))
    }

    /// Whether it holds, for the shares of cores and memory that nodes use.
    pub(crate) fn holds(&self, cpu: &[f64], memory: &[f64]) -> bool {
        let above = |uses: &[f64], bound: Option<f64>| bound.is_none_or(|bound| uses.iter().any(|used| *used > bound));
        let below = |uses: &[f64], bound: Option<f64>| bound.is_none_or(|bound| uses.iter().any(|used| *used < bound));
        above(cpu, self.node_cpu_above)
            && below(cpu, self.node_cpu_below)
            && above(memory, self.node_memory_above)
            && below(memory, self.node_memory_below)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_holds_if_each_part_is_true_of_some_node() {
        let (cpu, memory) = ([0.8, 0.2], [0.5, 0.5]);
        let holds = |text: &str| serde_json::from_str::<Condition>(text).unwrap().holds(&cpu, &memory);
        for (text, expected) in [
            ("{}", true),
            (r#"{"nodeCpuAbove": 0.7}"#, true),
            (r#"{"nodeCpuAbove": 0.8}"#, false),
            (r#"{"nodeCpuBelow": 0.3}"#, true),
            (r#"{"nodeCpuBelow": 0.2}"#, false),
            (r#"{"nodeCpuAbove": 0.7, "nodeCpuBelow": 0.3}"#, true),
            (r#"{"nodeMemoryAbove": 0.4}"#, true),
            (r#"{"nodeMemoryBelow": 0.5}"#, false),
            (r#"{"nodeCpuAbove": 0.7, "nodeMemoryAbove": 0.6}"#, false),
        ] {
            assert_eq!(holds(text), expected, "{text}");
        }
        let none = Condition { node_cpu_below: Some(1.0), ..Condition::default() };
        assert!(!none.holds(&[], &[]), "there is no node");
    }
}
