//! The reference's scenario files: an object of names, each with a list of nodes. A node has its use, its pressure and
//! optional VMs, in the old form (shares of a node) or the new form (cores and bytes).
//!
//! All nodes have the reference's size. The use of a node with VMs follows from its VMs, as in the reference after a
//! step. A node without VMs gets one VM with the use of the file, which cannot migrate.

use std::collections::BTreeMap;

use balance::Capacity;
use serde::Deserialize;

use super::{Load, NodeGroup, Scenario, ScenarioError, VmGroup, parse::values};
use crate::units::Bytes;

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
    memory_bytes: Option<u64>,
    cpu_utilization: Option<f64>,
    memory_utilization: Option<f64>,
    #[serde(rename = "pod_name")]
    _pod_name: Option<String>,
    #[serde(rename = "scheduled_node")]
    _scheduled_node: Option<String>,
}

/// Whether this is a file of the reference: its entries are lists of nodes with their CPU use.
pub(super) fn is(text: &str, json: bool) -> bool {
    if !text.contains("cpu_usage") {
        return false;
    }
    let Some(serde_json::Value::Object(entries)) = values(text, json) else { return false };
    let nodes = |value: &serde_json::Value| value.as_array().is_some_and(|nodes| nodes.iter().any(states_use));
    fn states_use(node: &serde_json::Value) -> bool {
        node.get("cpu_usage").is_some()
    }
    !entries.is_empty() && !entries.contains_key("vms") && entries.values().any(nodes)
}

pub(super) fn scenarios(file: &BTreeMap<String, Vec<ReferenceNode>>) -> Result<Vec<Scenario>, ScenarioError> {
    file.iter().map(|(name, nodes)| scenario(name, nodes)).collect()
}

fn scenario(name: &str, nodes: &[ReferenceNode]) -> Result<Scenario, ScenarioError> {
    let mut vms = Vec::new();
    for (position, node) in nodes.iter().enumerate() {
        let field = |field: &str| format!("{name}[{position}].{field}");
        for (key, value) in [
            ("cpu_usage", node.cpu_usage),
            ("cpu_pressure", node.cpu_pressure),
            ("memory_usage", node.memory_usage),
            ("memory_pressure", node.memory_pressure),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(ScenarioError::new(field(key), format!("{value} is not a number from 0 to 1")));
            }
        }
        for vm in &node.vms {
            vms.push(vm_group(vm, &node.name));
        }
        if node.vms.is_empty() {
            vms.push(VmGroup {
                cores: Capacity::REFERENCE.cpu_cores,
                memory: Bytes(Capacity::REFERENCE.memory_bytes as u64),
                cpu: Load::Constant(node.cpu_usage),
                memory_use: Load::Constant(node.memory_usage),
                migratable: false,
                ..plain_vm(format!("{}-load", node.name), &node.name)
            });
        }
    }
    let nodes = nodes.iter().map(|node| NodeGroup::reference(&node.name)).collect();
    Ok(Scenario { description: "From a file in the reference's format.".to_owned(), ..Scenario::new(name, nodes, vms) })
}

fn vm_group(vm: &ReferenceVm, node: &str) -> VmGroup {
    let group = plain_vm(vm.id.clone(), node);
    if vm.cpu_consumption.is_some() || vm.memory_consumption.is_some() {
        // Shares of a node become shares of 2 cores and 4 GiB, which may exceed 1.
        return VmGroup {
            cpu: Load::Constant(vm.cpu_consumption.unwrap_or(0.0) * 16.0),
            memory_use: Load::Constant(vm.memory_consumption.unwrap_or(0.0) * 32.0),
            ..group
        };
    }
    VmGroup {
        cores: vm.cpu_cores.unwrap_or(1.0),
        memory: Bytes(vm.memory_bytes.unwrap_or(1 << 30)),
        cpu: Load::Constant(vm.cpu_utilization.unwrap_or(0.5)),
        memory_use: Load::Constant(vm.memory_utilization.unwrap_or(0.8)),
        ..group
    }
}

fn plain_vm(name: String, node: &str) -> VmGroup {
    VmGroup { on: vec![node.to_owned()], ..VmGroup::new(&name) }
}
