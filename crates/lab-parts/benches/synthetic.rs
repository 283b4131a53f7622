//! An exporter's index of any size, without a cluster.

use std::time::Duration;

use balance::{Capacity, PressureModel};
use lab_parts::{
    exporter::{Index, ObservedNode, ObservedPod, ObservedVm, PodPhase},
    launcher::Load,
};

pub(crate) const VMS_PER_NODE: u32 = 50;

pub(crate) fn index(nodes: u32) -> Index {
    let mut index = Index::new(PressureModel::Reference);
    for node in 0..nodes {
        let name = format!("kwok-node-{node}");
        let observed = ObservedNode { name: name.clone(), capacity: Some(Capacity::REFERENCE) };
        index.apply_node(&observed, Duration::ZERO);
        for number in 0..VMS_PER_NODE {
            let vm = format!("vm-{node}-{number}");
            let pod = format!("virt-launcher-{vm}-abcde");
            let share = f64::from((node * 7919 + number * 104_729) % 1000) / 1000.0;
            let load = Some(Load { cpu_cores: share, memory_bytes: 4e9 * (1.0 - share) });
            let (namespace, phase) = ("default".to_owned(), PodPhase::Running);
            let observed = ObservedVm { namespace: namespace.clone(), name: vm.clone(), pod: Some(pod.clone()) };
            index.apply_vm(&observed, Duration::ZERO);
            let observed = ObservedPod { namespace, name: pod, vm, node: Some(name.clone()), phase, load };
            index.apply_pod(&observed, Duration::ZERO);
        }
    }
    index
}
