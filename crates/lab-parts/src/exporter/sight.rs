//! What the exporter reads of nodes, pods and VMs. Everything else is forgotten at once.

use api::virtual_machine::{Cpu, Memory};
use balance::Capacity;
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::api::resource::Quantity,
};
use kube::{ResourceExt, core::DynamicObject};

use crate::launcher::{self, Load};

#[derive(Debug, Clone, PartialEq)]
pub struct NodeSeen {
    pub name: String,
    /// What pods may use of the node; none if the node does not say, or says nothing sensible.
    pub capacity: Option<Capacity>,
}

impl NodeSeen {
    pub fn of(node: &Node) -> NodeSeen {
        let status = node.status.as_ref();
        let amount = |resource: &str| -> Option<&Quantity> {
            let allocatable = status.and_then(|status| status.allocatable.as_ref()?.get(resource));
            allocatable.or_else(|| status.and_then(|status| status.capacity.as_ref()?.get(resource)))
        };
        let cpu_cores = amount("cpu").and_then(|cpu| Cpu::from(&*cpu.0).cores().ok());
        let memory_bytes = amount("memory").and_then(|memory| Memory::from(&*memory.0).bytes().ok());
        let capacity =
            cpu_cores.zip(memory_bytes).map(|(cpu_cores, bytes)| Capacity { cpu_cores, memory_bytes: bytes as f64 });
        NodeSeen { name: node.name_any(), capacity }
    }
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Running,
    Finished,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PodSeen {
    pub namespace: String,
    pub name: String,
    /// The VM that it plays.
    pub vm: String,
    pub node: Option<String>,
    pub stage: Stage,
    /// None if its annotations cannot be read.
    pub load: Option<Load>,
}

impl PodSeen {
    /// None if the pod does not play a VM.
    pub fn of(pod: &Pod) -> Option<PodSeen> {
        let vm = pod.labels().get(launcher::DOMAIN)?.clone();
        let stage = match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("Running") => Stage::Running,
            Some("Succeeded" | "Failed") => Stage::Finished,
            _ => Stage::Waiting,
        };
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty());
        let load = Load::of(pod.annotations());
        Some(PodSeen { namespace: pod.namespace().unwrap_or_default(), name: pod.name_any(), vm, node, stage, load })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmSeen {
    pub namespace: String,
    pub name: String,
    /// The pod that counts as the VM: `status.podName`.
    pub pod: Option<String>,
}

impl VmSeen {
    /// Reads no more than it needs, so that a VM whose spec makes no sense still counts.
    pub fn of(vm: &DynamicObject) -> VmSeen {
        let pod = vm.data["status"]["podName"].as_str().filter(|pod| !pod.is_empty()).map(str::to_owned);
        VmSeen { namespace: vm.namespace().unwrap_or_default(), name: vm.name_any(), pod }
    }
}
