//! Nodes, pods and VMs, and an index of them.

use std::time::Duration;

use balance::Capacity;

use crate::{
    exporter::{Index, ObservedNode, ObservedPod, ObservedVm, PodPhase},
    launcher::Load,
};

pub(super) const GIB: f64 = 1_073_741_824.0;

pub(super) fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn node(name: &str, cpu_cores: f64, gib: f64) -> ObservedNode {
    ObservedNode { name: name.into(), capacity: Some(Capacity { cpu_cores, memory_bytes: gib * GIB }) }
}

pub(super) fn pod(vm: &str, name: &str, node: &str, cores: f64) -> ObservedPod {
    let load = Some(Load { cpu_cores: cores, memory_bytes: 0.0 });
    let node = Some(node.to_owned()).filter(|node| !node.is_empty());
    let phase = if node.is_some() { PodPhase::Running } else { PodPhase::Pending };
    ObservedPod { namespace: "default".into(), name: name.into(), vm: vm.into(), node, phase, load }
}

pub(super) fn vm(name: &str, pod: &str) -> ObservedVm {
    let pod = Some(pod.to_owned()).filter(|pod| !pod.is_empty());
    ObservedVm { namespace: "default".into(), name: name.into(), pod }
}

/// Two nodes of 32 cores. VM `a` runs as `a-1` on `n1` and uses 16 cores.
pub(super) fn sample() -> Index {
    let mut index = Index::default();
    index.apply_node(&node("n1", 32.0, 128.0), at(0));
    index.apply_node(&node("n2", 32.0, 128.0), at(0));
    index.apply_pod(&pod("a", "a-1", "n1", 16.0), at(0));
    index.apply_vm(&vm("a", "a-1"), at(0));
    index
}

/// CPU use and VMs per node.
pub(super) fn load(index: &Index) -> Vec<(String, f64, usize)> {
    let rows = index.snapshot(at(0)).rows;
    rows.into_iter().map(|row| (row.node.to_string(), row.signals[0], row.vms)).collect()
}

pub(super) fn expect(index: &Index, expected: &[(&str, f64, usize)]) {
    let expected: Vec<_> = expected.iter().map(|(node, use_, vms)| ((*node).to_owned(), *use_, *vms)).collect();
    assert_eq!(load(index), expected);
}
