//! All nodes of a run as of its last step or observation, for programs.

use serde::Serialize;

use crate::{engine::Run, model::ClusterModel};

/// A node with what is known about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow<'m> {
    pub node: &'m str,
    pub cpu_usage: f64,
    pub cpu_pressure: f64,
    pub memory_usage: f64,
    pub memory_pressure: f64,
    pub score: f64,
    pub bucket: String,
    pub vms: usize,
    /// Whether the node takes VMs.
    pub open: bool,
}

/// All nodes that are up, in the order of the scenario.
pub fn nodes<'m>(model: &'m ClusterModel, run: &Run<'_>) -> Vec<NodeRow<'m>> {
    let row = |(slot, node): (usize, &u32)| {
        let [cpu_usage, cpu_pressure, memory_usage, memory_pressure] = run.signals().node(slot);
        NodeRow {
            node: model.node_name(*node),
            cpu_usage,
            cpu_pressure,
            memory_usage,
            memory_pressure,
            score: run.scores().values()[slot],
            bucket: run.buckets().of()[slot].to_string(),
            vms: run.vms(*node).len(),
            open: run.is_open(*node),
        }
    };
    run.nodes().iter().enumerate().map(row).collect()
}
