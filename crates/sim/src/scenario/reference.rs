//! The reference's scenario files: an object of names, each with a list of nodes. A node has its use, its pressure and optional VMs,
//! in the old form (shares of a node) or the new form (cores and bytes). What the file states about a node counts in the first step;
//! after it the signals follow from the VMs. A node without VMs keeps what is stated.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{Load, Measured, NodeGroup, OwnLoad, Scenario, ScenarioError, VmGroup, parse::values};
use crate::units::{Bytes, Rate};

type Result<T> = std::result::Result<T, ScenarioError>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReferenceNode {
    name: String,
    cpu_usage: f64,
    cpu_pressure: f64,
    memory_usage: f64,
    memory_pressure: f64,
    #[serde(default)]
    vms: Vec<ReferenceVm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReferenceVm {
    id: String,
    cpu_consumption: Option<f64>,
    memory_consumption: Option<f64>,
    cpu_cores: Option<f64>,
    memory_bytes: Option<f64>,
    cpu_utilization: Option<f64>,
    memory_utilization: Option<f64>,
    dirty_rate_mbps: Option<f64>,
    #[serde(rename = "pod_name")]
    _pod_name: Option<String>,
    #[serde(rename = "scheduled_node")]
    _scheduled_node: Option<String>,
}

/// A node whose signals a file states.
pub(super) struct StatedNode {
    pub(super) name: String,
    /// Where the file has the name.
    pub(super) name_field: String,
    pub(super) signals: [f64; 4],
    pub(super) vms: Vec<VmGroup>,
}

/// Whether this is a file of the reference: its entries are lists of nodes with their CPU use. A list may be empty.
pub(super) fn is(text: &str, json: bool) -> bool {
    // Reading values takes memory, so a text without the word or an empty list is not read.
    if !text.contains("cpu_usage") && !text.contains("[]") {
        return false;
    }
    let Some(serde_json::Value::Object(entries)) = values(text, json) else { return false };
    let states_use = |node: &serde_json::Value| node.get("cpu_usage").is_some();
    let nodes = |value: &serde_json::Value| value.as_array().is_some_and(|nodes| nodes.iter().any(states_use));
    let is_empty_list = |value: &serde_json::Value| value.as_array().is_some_and(Vec::is_empty);
    !["name", "nodes", "vms"].iter().any(|ours| entries.contains_key(*ours))
        && !entries.is_empty()
        && (entries.values().any(nodes) || entries.values().all(is_empty_list))
}

pub(super) fn scenarios(file: &BTreeMap<String, Vec<ReferenceNode>>) -> Result<Vec<Scenario>> {
    file.iter().map(|(name, nodes)| reference_scenario(name, nodes)).collect()
}

fn reference_scenario(name: &str, nodes: &[ReferenceNode]) -> Result<Scenario> {
    if nodes.is_empty() {
        return Err(ScenarioError::new(name, "the list of nodes is empty: at least one node was expected"));
    }
    let mut ids: BTreeMap<&str, &str> = BTreeMap::new();
    let mut stated = Vec::new();
    for (position, node) in nodes.iter().enumerate() {
        let field = |field: &str| format!("{name}[{position}].{field}");
        let ReferenceNode { cpu_usage, cpu_pressure, memory_usage, memory_pressure, .. } = *node;
        for (key, value) in [
            ("cpu_usage", cpu_usage),
            ("cpu_pressure", cpu_pressure),
            ("memory_usage", memory_usage),
            ("memory_pressure", memory_pressure),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ScenarioError::new(field(key), format!("{value} is not a number from 0 to 1")));
            }
        }
        let mut vms = Vec::new();
        for (at, vm) in node.vms.iter().enumerate() {
            let field = field(&format!("vms[{at}]"));
            if let Some(other) = ids.insert(&vm.id, &node.name) {
                let message = format!("there is already a VM {} on node {other}: each VM needs its own id", vm.id);
                return Err(ScenarioError::new(format!("{field}.id"), message));
            }
            vms.push(vm_group(vm, &node.name, &field)?);
        }
        stated.push(StatedNode {
            name: node.name.clone(),
            name_field: field("name"),
            signals: [cpu_usage, cpu_pressure, memory_usage, memory_pressure],
            vms,
        });
    }
    scenario(name, "From a file in the reference's format.", stated)
}

/// A scenario of nodes of the reference's size, with what is stated about them. A name may occur once.
pub(super) fn scenario(name: &str, description: &str, stated: Vec<StatedNode>) -> Result<Scenario> {
    let (mut nodes, mut vms, mut names) = (Vec::new(), Vec::new(), BTreeSet::new());
    for node in stated {
        if node.name.is_empty() {
            return Err(ScenarioError::new(node.name_field, "it is empty: a node needs a name"));
        }
        if !names.insert(node.name.clone()) {
            let message = format!("there is already a node {}: each node needs its own name", node.name);
            return Err(ScenarioError::new(node.name_field, message));
        }
        let [cpu, cpu_pressure, memory, memory_pressure] = node.signals;
        let own_load = if node.vms.is_empty() { OwnLoad::constant(cpu, memory) } else { OwnLoad::default() };
        let measured = Some(Measured { cpu, cpu_pressure, memory, memory_pressure });
        nodes.push(NodeGroup { own_load, measured, ..NodeGroup::reference(&node.name) });
        vms.extend(node.vms);
    }
    Ok(Scenario { description: description.to_owned(), ..Scenario::new(name, nodes, vms) })
}

fn vm_group(vm: &ReferenceVm, node: &str, field: &str) -> Result<VmGroup> {
    let old = [("cpu_consumption", vm.cpu_consumption), ("memory_consumption", vm.memory_consumption)];
    let new = [
        ("cpu_cores", vm.cpu_cores),
        ("memory_bytes", vm.memory_bytes),
        ("cpu_utilization", vm.cpu_utilization),
        ("memory_utilization", vm.memory_utilization),
    ];
    let others = [("dirty_rate_mbps", vm.dirty_rate_mbps)];
    let most = [2.0, 1.0, 100_000.0, 2_f64.powi(53), 32.0, 32.0, 1e9];
    for ((key, value), most) in old.iter().chain(&new).chain(&others).zip(most) {
        if let Some(value) = value.filter(|value| !(0.0..=most).contains(value)) {
            let message = format!("{value} is not a number from 0 to {most}");
            return Err(ScenarioError::new(format!("{field}.{key}"), message));
        }
    }
    let first = |fields: &[(&'static str, Option<f64>)], is_given: bool| {
        fields.iter().find(|(_, value)| value.is_some() == is_given).map(|(key, _)| *key)
    };
    if vm.id.is_empty() {
        return Err(ScenarioError::new(format!("{field}.id"), "it is empty: a VM needs an id"));
    }
    let mut group = VmGroup { on: vec![node.to_owned()], ..VmGroup::new(&vm.id) };
    if let Some(rate) = vm.dirty_rate_mbps {
        group.dirty_rate = Rate((rate * 1e6) as u64);
    }
    match (first(&old, true), first(&new, true)) {
        (Some(old), Some(new)) => Err(ScenarioError::new(
            format!("{field}.{new}"),
            format!("{old} is there too: state either the two consumptions or cores, bytes and utilizations"),
        )),
        (Some(given), None) => match first(&old, false) {
            Some(missing) => Err(ScenarioError::new(field, format!("{missing} is missing: {given} needs it"))),
            // Shares of a node become shares of 2 cores and 4 GiB, which may exceed 1.
            None => Ok(VmGroup {
                cpu: Load::Constant(vm.cpu_consumption.unwrap_or_default() * 16.0),
                memory_use: Load::Constant(vm.memory_consumption.unwrap_or_default() * 32.0),
                ..group
            }),
        },
        (None, _) => Ok(VmGroup {
            cores: vm.cpu_cores.unwrap_or(1.0),
            memory: whole_bytes(vm.memory_bytes.unwrap_or(f64::from(1 << 30)), field)?,
            cpu: Load::Constant(vm.cpu_utilization.unwrap_or(0.5)),
            memory_use: Load::Constant(vm.memory_utilization.unwrap_or(0.8)),
            ..group
        }),
    }
}

/// Other programs write whole numbers as `4294967296.0` or `4.294967296e9`.
fn whole_bytes(value: f64, field: &str) -> Result<Bytes> {
    if value < 1.0 || value.fract() != 0.0 {
        let message = format!("{value} is not a whole number of bytes above 0");
        return Err(ScenarioError::new(format!("{field}.memory_bytes"), message));
    }
    Ok(Bytes(value as u64))
}
