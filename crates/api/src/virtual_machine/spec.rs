//! The `spec` of a VirtualMachine: how large the guest is and how busy it pretends to be.

#![allow(clippy::duplicated_attributes, reason = "columns repeat their type")]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Cpu, Memory, Ratio, VirtualMachineStatus};

/// The guest that is wanted.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "simulation.node-classifier.io",
    version = "v1alpha1",
    kind = "VirtualMachine",
    plural = "virtualmachines",
    namespaced,
    shortname = "vm",
    shortname = "vms",
    category = "all",
    status = "VirtualMachineStatus",
    derive = "PartialEq",
    doc = "A VirtualMachine of the rebalancing lab: a simulated guest of a given size and load. \
           The lab runs a pod for it on a simulated node, counts its load towards that node and migrates it when it is evicted.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "CPU", type_ = "string", json_path = ".spec.resources.cpu"),
    printcolumn(name = "Memory", type_ = "string", json_path = ".spec.resources.memory"),
    printcolumn(name = "CPU-Util", type_ = "string", json_path = ".status.cpuUtilization"),
    printcolumn(name = "Mem-Util", type_ = "string", json_path = ".status.memoryUtilization"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Pod",
        type_ = "string",
        json_path = ".status.podName",
        description = "Pod that currently counts as the virtual machine",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// The size of the guest. Its pod requests this much, so it decides where the guest fits.
    pub resources: Resources,

    /// How busy the guest is, as a share of its resources. This is the load that the node shows; it can be
    /// changed at any time. Default: cpu 0.5 and memory 0.8.
    #[serde(default)]
    #[schemars(extend("default" = {}))]
    pub utilization: Utilization,

    /// Whether the guest runs. Default: true. False stops it: its pod is removed and it no longer counts as
    /// load on any node. True starts it again, possibly on another node.
    #[serde(default = "running")]
    pub running: bool,
}

/// The size of a guest.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resources {
    /// The cores of the guest, as a Kubernetes quantity: 2, "1.5" or 500m. Must be positive. Fractions need
    /// quotes.
    pub cpu: Cpu,

    /// The memory of the guest, as a Kubernetes quantity: 4Gi, 512Mi, 1Ti or plain bytes. Must be positive.
    pub memory: Memory,
}

/// The load of a guest.
#[derive(JsonSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Utilization {
    /// The share of spec.resources.cpu in use, from 0 (idle) to 1 (all cores busy). Fractions need quotes:
    /// "0.25". Default: "0.5".
    #[serde(default = "cpu_utilization")]
    pub cpu: Ratio,

    /// The share of spec.resources.memory in use, from 0 to 1. Fractions need quotes: "0.25". Default: "0.8".
    #[serde(default = "memory_utilization")]
    pub memory: Ratio,
}

impl Default for Utilization {
    fn default() -> Self {
        Self { cpu: cpu_utilization(), memory: memory_utilization() }
    }
}

fn cpu_utilization() -> Ratio {
    "0.5".into()
}

fn memory_utilization() -> Ratio {
    "0.8".into()
}

fn running() -> bool {
    true
}
