//! Properties of every history of nodes, pods and VMs.

use std::{collections::BTreeMap, time::Duration};

use proptest::prelude::*;

use super::fixture::{at, load, node, pod, vm};
use crate::exporter::{Counters, Index, ObservedPod, PodPhase};

#[derive(Debug, Clone)]
enum WatchInput {
    Node(u8, Option<u8>),
    Pod { vm: u8, pod: u8, node: u8, phase: u8, load: u8 },
    PodGone(u8),
    Vm(u8, Option<u8>),
    VmGone(u8),
}

fn watch_input() -> impl Strategy<Value = WatchInput> {
    prop_oneof![
        (0..4_u8, proptest::option::of(1..4_u8)).prop_map(|(node, size)| WatchInput::Node(node, size)),
        (0..3_u8, 0..6_u8, 0..4_u8, 0..3_u8, 0..9_u8).prop_map(|(vm, pod, node, phase, load)| WatchInput::Pod {
            vm,
            pod,
            node,
            phase,
            load
        }),
        (0..6_u8).prop_map(WatchInput::PodGone),
        (0..3_u8, proptest::option::of(0..6_u8)).prop_map(|(vm, pod)| WatchInput::Vm(vm, pod)),
        (0..3_u8).prop_map(WatchInput::VmGone),
    ]
}

/// The objects that exist. The index is compared with them.
#[derive(Debug, Default)]
struct Objects {
    nodes: BTreeMap<u8, u8>,
    pods: BTreeMap<u8, ObservedPod>,
    vms: BTreeMap<u8, Option<u8>>,
}

fn apply(index: &mut Index, objects: &mut Objects, what: &WatchInput, now: Duration) {
    match *what {
        WatchInput::Node(number, Some(size)) => {
            objects.nodes.insert(number, size);
            index.apply_node(&node(&format!("n{number}"), f64::from(size) * 8.0, 64.0), now);
        }
        WatchInput::Node(number, None) => {
            objects.nodes.remove(&number);
            index.remove_node(&format!("n{number}"), now);
        }
        WatchInput::Pod { vm, pod: number, node, phase, load } => {
            let phase = [PodPhase::Pending, PodPhase::Running, PodPhase::Finished][usize::from(phase)];
            let observed = ObservedPod {
                phase,
                ..pod(&format!("v{vm}"), &format!("p{number}"), &format!("n{node}"), load.into())
            };
            index.apply_pod(&observed, now);
            objects.pods.insert(number, observed);
        }
        WatchInput::PodGone(number) => {
            objects.pods.remove(&number);
            index.remove_pod("default", &format!("p{number}"), now);
        }
        WatchInput::Vm(number, pod) => {
            objects.vms.insert(number, pod);
            index.apply_vm(&vm(&format!("v{number}"), &pod.map(|pod| format!("p{pod}")).unwrap_or_default()), now);
        }
        WatchInput::VmGone(number) => {
            objects.vms.remove(&number);
            index.remove_vm("default", &format!("v{number}"), now);
        }
    }
}

proptest! {
    #[test]
    fn every_vm_counts_at_most_once_and_sums_fit_whatever_the_history(history in proptest::collection::vec(watch_input(), 0..60)) {
        let (mut index, mut objects) = (Index::default(), Objects::default());
        let mut last: BTreeMap<String, Counters> = BTreeMap::new();
        for (step, what) in history.iter().enumerate() {
            let now = at(step as u64);
            apply(&mut index, &mut objects, what, now);
            let rows = index.snapshot(now).rows;
            prop_assert_eq!(rows.len(), objects.nodes.len());
            let mut vms_per_node: BTreeMap<String, (usize, f64)> = BTreeMap::new();
            for number in 0..3 {
                let counted = index.node_of("default", &format!("v{number}"));
                let named = objects.vms.get(&number).copied().flatten().and_then(|pod| objects.pods.get(&pod));
                if let Some(named) = named.filter(|pod| pod.vm == format!("v{number}") && pod.phase == PodPhase::Running) {
                    prop_assert_eq!(counted, named.node.as_deref(), "a named pod that runs counts");
                }
                if let Some(node) = counted {
                    let pods = objects.pods.values();
                    let mut running = pods.filter(|pod| pod.vm == format!("v{number}") && pod.phase == PodPhase::Running);
                    prop_assert!(running.any(|pod| pod.node.as_deref() == Some(node)), "what counts runs there");
                    prop_assert!(objects.vms.get(&number).is_some_and(Option::is_some), "and is a VM that has a pod");
                    vms_per_node.entry(node.to_owned()).or_default().0 += 1;
                }
            }
            let there: BTreeMap<_, _> = rows.iter().map(|row| (row.node.to_string(), row.counters)).collect();
            for row in &rows {
                prop_assert_eq!(row.vms, vms_per_node.get(&*row.node).map_or(0, |(vms, _)| *vms));
                prop_assert!(row.signals.iter().all(|signal| (0.0..=1.0).contains(signal)), "{:?}", row);
                if let Some(before) = last.get(&*row.node) {
                    let Counters { busy, idle, cpu_waiting, memory_waiting } = row.counters;
                    prop_assert!(busy >= before.busy && idle >= before.idle);
                    prop_assert!(cpu_waiting >= before.cpu_waiting && memory_waiting >= before.memory_waiting);
                }
            }
            last = there;
        }
    }

    #[test]
    fn the_snapshot_depends_on_the_objects_and_not_on_their_history(history in proptest::collection::vec(watch_input(), 0..60)) {
        let (mut index, mut objects) = (Index::default(), Objects::default());
        for what in &history {
            apply(&mut index, &mut objects, what, at(0));
        }
        // If a VM names a pod that does not run, the pod that counted before still counts, so the history matters.
        let is_settled = objects.vms.values().all(|pod| pod.is_none_or(|pod| {
            objects.pods.get(&pod).is_some_and(|pod| pod.phase != PodPhase::Pending)
        }));
        prop_assume!(is_settled);
        let mut fresh = Index::default();
        for (number, pod) in objects.vms.iter().rev() {
            let pod = pod.map(|pod| format!("p{pod}")).unwrap_or_default();
            fresh.apply_vm(&vm(&format!("v{number}"), &pod), at(0));
        }
        objects.pods.values().rev().for_each(|pod| fresh.apply_pod(pod, at(0)));
        for (number, size) in objects.nodes.iter().rev() {
            fresh.apply_node(&node(&format!("n{number}"), f64::from(*size) * 8.0, 64.0), at(0));
        }
        let runs_its_vm = objects.vms.iter().all(|(vm, pod)| {
            pod.is_none_or(|pod| objects.pods.get(&pod).is_some_and(|pod| pod.vm == format!("v{vm}")))
        });
        prop_assume!(runs_its_vm);
        prop_assert_eq!(load(&fresh), load(&index));
    }
}
