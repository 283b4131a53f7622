//! Nodes, pods and VMs as the exporter observes them, reduced to what it needs.

use api::virtual_machine::{Cpu, Memory};
use balance::Capacity;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{ResourceExt, core::DynamicObject};

use crate::launcher::{self, Load};

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedNode {
    pub name: String,
    /// What pods may use of the node. None if the node has no valid size.
    pub capacity: Option<Capacity>,
}

impl ObservedNode {
    pub fn of(node: &Node) -> ObservedNode {
        let status = node.status.as_ref();
        let amount = |resource: &str| -> Option<&Quantity> {
            let allocatable = status.and_then(|status| status.allocatable.as_ref()?.get(resource));
            allocatable.or_else(|| status.and_then(|status| status.capacity.as_ref()?.get(resource)))
        };
        let cpu_cores = amount("cpu").and_then(|cpu| Cpu::from(&*cpu.0).cores().ok());
        let memory_bytes = amount("memory").and_then(|memory| Memory::from(&*memory.0).bytes().ok());
        let capacity =
            cpu_cores.zip(memory_bytes).map(|(cpu_cores, bytes)| Capacity { cpu_cores, memory_bytes: bytes as f64 });
        ObservedNode { name: node.name_any(), capacity }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodPhase {
    Pending,
    Running,
    Finished,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ObservedPod {
    pub namespace: String,
    pub name: String,
    /// The VM that the pod runs.
    pub vm: String,
    pub node: Option<String>,
    pub phase: PodPhase,
    /// None if its annotations cannot be read.
    pub load: Option<Load>,
}

impl ObservedPod {
    /// None if the pod runs no VM.
    pub fn of(pod: &Pod) -> Option<ObservedPod> {
        let vm = pod.labels().get(launcher::DOMAIN)?.clone();
        let phase = match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("Running") => PodPhase::Running,
            Some("Succeeded" | "Failed") => PodPhase::Finished,
            _ => PodPhase::Pending,
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty());
        let load = Load::of(pod.annotations());
        Some(ObservedPod {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            vm,
            node,
            phase,
            load,
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedVm {
    pub namespace: String,
    pub name: String,
    /// The pod that counts as the VM: `status.podName`.
    pub pod: Option<String>,
}

impl ObservedVm {
    /// Reads only `status.podName`, so that a VM with an invalid spec counts, too.
    pub fn of(vm: &DynamicObject) -> ObservedVm {
        let pod = vm.data["status"]["podName"].as_str().filter(|pod| !pod.is_empty()).map(str::to_owned);
        ObservedVm { namespace: vm.namespace().unwrap_or_default(), name: vm.name_any(), pod }
    }
}
