//! The exporter's behaviour, each weakness of the reference by name, and what holds for any history.

use std::{collections::BTreeMap, time::Duration};

use balance::{Algorithm, Capacity, PressureModel, Scores, Signals, promql::PARETO_GAUGE};
use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::launcher::{self, Load};

const GIB: f64 = 1_073_741_824.0;

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn node(name: &str, cpu_cores: f64, gib: f64) -> NodeSeen {
    NodeSeen { name: name.into(), capacity: Some(Capacity { cpu_cores, memory_bytes: gib * GIB }) }
}

fn pod(vm: &str, name: &str, node: &str, cores: f64) -> PodSeen {
    let load = Some(Load { cpu_cores: cores, memory_bytes: 0.0 });
    let node = Some(node.to_owned()).filter(|node| !node.is_empty());
    let stage = if node.is_some() { Stage::Running } else { Stage::Waiting };
    PodSeen { namespace: "default".into(), name: name.into(), vm: vm.into(), node, stage, load }
}

fn vm(name: &str, pod: &str) -> VmSeen {
    let pod = Some(pod.to_owned()).filter(|pod| !pod.is_empty());
    VmSeen { namespace: "default".into(), name: name.into(), pod }
}

/// Two nodes of 32 cores, VM `a` running as `a-1` on `n1` with 16 cores busy.
fn sample() -> Index {
    let mut index = Index::default();
    index.apply_node(&node("n1", 32.0, 128.0), at(0));
    index.apply_node(&node("n2", 32.0, 128.0), at(0));
    index.apply_pod(&pod("a", "a-1", "n1", 16.0), at(0));
    index.apply_vm(&vm("a", "a-1"), at(0));
    index
}

/// CPU use and VMs per node.
fn load(index: &Index) -> Vec<(String, f64, usize)> {
    let rows = index.snapshot(at(0)).rows;
    rows.into_iter().map(|row| (row.node.to_string(), row.signals[0], row.vms)).collect()
}

fn expect(index: &Index, expected: &[(&str, f64, usize)]) {
    let expected: Vec<_> = expected.iter().map(|(node, use_, vms)| ((*node).to_owned(), *use_, *vms)).collect();
    assert_eq!(load(index), expected);
}

#[test]
fn a_vm_counts_on_the_node_of_the_pod_that_its_status_names() {
    expect(&sample(), &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
}

#[test]
fn a_migration_never_counts_a_vm_twice() {
    let mut index = sample();
    index.apply_pod(&pod("a", "a-2", "n2", 16.0), at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
    index.apply_vm(&vm("a", "a-2"), at(2));
    expect(&index, &[("n1", 0.0, 0), ("n2", 0.5, 1)]);
    index.remove_pod("default", "a-1", at(3));
    expect(&index, &[("n1", 0.0, 0), ("n2", 0.5, 1)]);
}

#[test]
fn a_hand_over_that_is_seen_before_the_target_runs_leaves_the_vm_where_it_was() {
    let mut index = sample();
    index.apply_vm(&vm("a", "a-2"), at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
    let mut starting = pod("a", "a-2", "n2", 16.0);
    starting.stage = Stage::Waiting;
    index.apply_pod(&starting, at(2));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
    index.apply_pod(&pod("a", "a-2", "n2", 16.0), at(3));
    expect(&index, &[("n1", 0.0, 0), ("n2", 0.5, 1)]);
}

#[test]
fn a_source_whose_end_is_seen_before_the_hand_over_does_not_make_the_vm_vanish() {
    let mut index = sample();
    index.apply_pod(&pod("a", "a-2", "n2", 16.0), at(1));
    index.remove_pod("default", "a-1", at(2));
    expect(&index, &[("n1", 0.0, 0), ("n2", 0.5, 1)]);
    index.apply_vm(&vm("a", "a-2"), at(3));
    expect(&index, &[("n1", 0.0, 0), ("n2", 0.5, 1)]);
}

#[test]
fn a_pod_that_no_vm_names_does_not_count() {
    let mut index = sample();
    index.apply_pod(&pod("orphan", "orphan-1", "n2", 16.0), at(1));
    index.apply_vm(&vm("unnamed", ""), at(1));
    index.apply_pod(&pod("unnamed", "unnamed-1", "n2", 16.0), at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
}

#[test]
fn pods_of_the_same_name_in_other_namespaces_are_others() {
    let mut index = sample();
    let mut other = pod("a", "a-1", "n2", 8.0);
    other.namespace = "elsewhere".into();
    index.apply_pod(&other, at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.0, 0)]);
    index.apply_vm(&VmSeen { namespace: "elsewhere".into(), ..vm("a", "a-1") }, at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.25, 1)]);
    assert_eq!(index.node_of("elsewhere", "a"), Some("n2"));
}

#[test]
fn a_stopped_a_finished_and_a_deleted_vm_put_no_load_on_a_node() {
    let mut stopped = sample();
    stopped.apply_vm(&vm("a", ""), at(1));
    expect(&stopped, &[("n1", 0.0, 0), ("n2", 0.0, 0)]);
    let mut finished = sample();
    finished.apply_pod(&PodSeen { stage: Stage::Finished, ..pod("a", "a-1", "n1", 16.0) }, at(1));
    expect(&finished, &[("n1", 0.0, 0), ("n2", 0.0, 0)]);
    let mut deleted = sample();
    deleted.remove_vm("default", "a", at(1));
    expect(&deleted, &[("n1", 0.0, 0), ("n2", 0.0, 0)]);
    deleted.remove_pod("default", "a-1", at(1));
    assert_eq!(deleted.counted(), 0);
}

#[test]
fn use_is_a_share_of_what_the_node_says_it_has() {
    let mut index = sample();
    index.apply_node(&node("n1", 64.0, 256.0), at(1));
    expect(&index, &[("n1", 0.25, 1), ("n2", 0.0, 0)]);
    let read = |node: serde_json::Value| NodeSeen::of(&serde_json::from_value::<Node>(node).unwrap()).capacity;
    let status = json!({"capacity": {"cpu": "8", "memory": "16Gi"}, "allocatable": {"cpu": "7500m", "memory": "15Gi"}});
    let of = |cpu_cores, gib: f64| Some(Capacity { cpu_cores, memory_bytes: gib * GIB });
    assert_eq!(read(json!({"metadata": {"name": "a"}, "status": status})), of(7.5, 15.0));
    let status = json!({"capacity": {"cpu": "8", "memory": "16Gi"}});
    assert_eq!(read(json!({"metadata": {"name": "a"}, "status": status})), of(8.0, 16.0));
    assert_eq!(read(json!({"metadata": {"name": "a"}})), None);
}

#[test]
fn a_node_without_a_size_is_not_shown_until_it_has_one() {
    let mut index = Index::default();
    index.apply_pod(&pod("a", "a-1", "n1", 16.0), at(0));
    index.apply_vm(&vm("a", "a-1"), at(0));
    expect(&index, &[]);
    index.apply_node(&NodeSeen { name: "n1".into(), capacity: None }, at(0));
    expect(&index, &[]);
    index.apply_node(&node("n1", 32.0, 128.0), at(1));
    expect(&index, &[("n1", 0.5, 1)]);
    index.remove_node("n1", at(2));
    expect(&index, &[]);
}

#[test]
fn a_pod_whose_annotations_cannot_be_read_counts_as_an_idle_vm_and_harms_no_other() {
    let object = json!({
        "metadata": {
            "name": "b-1", "namespace": "default", "labels": {launcher::DOMAIN: "b"},
            "annotations": {launcher::CPU_CORES: "many"},
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running"},
    });
    let seen = PodSeen::of(&serde_json::from_value::<Pod>(object).unwrap()).unwrap();
    assert_eq!((seen.load, seen.stage), (None, Stage::Running));
    let mut index = sample();
    index.apply_pod(&seen, at(1));
    index.apply_vm(&vm("b", "b-1"), at(1));
    expect(&index, &[("n1", 0.5, 2), ("n2", 0.0, 0)]);
}

#[test]
fn pressure_is_that_of_the_reference() {
    let mut index = sample();
    index.apply_pod(&pod("a", "a-1", "n1", 0.95 * 32.0), at(1));
    let [usage, pressure, ..] = index.snapshot(at(1)).rows[0].signals;
    assert!((usage - 0.95).abs() < 1e-12 && (pressure - 0.35).abs() < 1e-12);
    index.apply_pod(&pod("a", "a-1", "n1", 1.2 * 32.0), at(1));
    let [usage, pressure, ..] = index.snapshot(at(1)).rows[0].signals;
    assert!(usage == 1.0 && (pressure - 0.9).abs() < 1e-12);
}

#[test]
fn counters_go_on_when_a_vm_restarts() {
    let mut index = sample();
    let counters = |index: &Index, seconds| index.snapshot(at(seconds)).rows[0].counters;
    assert_eq!(counters(&index, 10).busy, 5.0);
    index.apply_vm(&vm("a", ""), at(10));
    index.remove_pod("default", "a-1", at(10));
    assert_eq!(counters(&index, 20).busy, 5.0);
    index.apply_pod(&pod("a", "a-9", "n1", 16.0), at(20));
    index.apply_vm(&vm("a", "a-9"), at(20));
    let last = counters(&index, 30);
    assert_eq!((last.busy, last.idle), (10.0, 20.0));
}

#[test]
fn counters_are_there_at_the_first_scrape() {
    let text = Renderer::default().render(&sample().snapshot(at(0)));
    assert!(text.contains("node_cpu_seconds_total{instance=\"n1\",mode=\"idle\"} 0\n"), "{text}");
}

/// Holds L13.
#[test]
fn the_text_has_every_metric_of_both_families_with_the_node_as_instance() {
    let mut index = sample();
    index.apply_pod(
        &PodSeen { load: Some(Load { cpu_cores: 8.0, memory_bytes: 32.0 * GIB }), ..pod("a", "a-1", "n1", 0.0) },
        at(0),
    );
    let text = Renderer::default().render(&index.snapshot(at(100)));
    let both = r#"node="n1",instance="n1""#;
    for line in [
        format!("node_cpu_usage_ratio{{{both}}} 0.25"),
        format!("node_cpu_pressure_psi{{{both}}} 0.0175"),
        format!("node_memory_usage_ratio{{{both}}} 0.25"),
        format!("node_memory_pressure_psi{{{both}}} 0.0175"),
        format!("node_vm_count{{{both}}} 1"),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"idle\"} 75".to_owned(),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"user\"} 15".to_owned(),
        "node_cpu_seconds_total{instance=\"n1\",mode=\"system\"} 10".to_owned(),
        "node_memory_MemAvailable_bytes{instance=\"n1\"} 103079215104".to_owned(),
        format!("kube_node_role{{{both},role=\"worker\"}} 1"),
        format!("kube_node_status_allocatable{{{both},resource=\"memory\",unit=\"byte\"}} 137438953472"),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is missing in\n{text}");
    }
    for (name, seconds) in [("cpu", 1.75), ("memory", 1.75)] {
        let prefix = format!("node_pressure_{name}_waiting_seconds_total{{instance=\"n1\"}} ");
        let value = text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
        assert!((value.parse::<f64>().unwrap() - seconds).abs() < 1e-9, "{value}");
    }
    for metric in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = metric.split_once(' ').unwrap();
        assert_eq!(kind == "counter", name.ends_with("_total"), "{metric}");
    }
}

#[test]
fn the_pareto_gauge_is_what_balance_computes() {
    let mut index = Index::default();
    let mut signals = Signals::new();
    for number in 0..20_u32 {
        let name = format!("n{number:02}");
        index.apply_node(&node(&name, 32.0, 128.0), at(0));
        let load = Load { cpu_cores: f64::from(number * 7 % 20), memory_bytes: f64::from(number * 3 % 20) * GIB };
        let (vm_name, pod_name) = (format!("v{number}"), format!("p{number}"));
        index.apply_pod(&PodSeen { load: Some(load), ..pod(&vm_name, &pod_name, &name, 0.0) }, at(0));
        index.apply_vm(&vm(&vm_name, &pod_name), at(0));
        signals.push(PressureModel::Reference.signals(load.cpu_cores / 32.0, load.memory_bytes / (128.0 * GIB)));
    }
    let mut scores = Scores::new();
    Algorithm::ParetoFront.score(&signals, &mut scores);
    let text = Renderer::default().render(&index.snapshot(at(0)));
    for (number, score) in scores.values().iter().enumerate() {
        let line = format!("{PARETO_GAUGE}{{node=\"n{number:02}\",instance=\"n{number:02}\"}} {score}");
        assert!(text.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn an_empty_cluster_is_a_valid_page() {
    let text = Renderer::default().render(&Snapshot::default());
    assert!(text.lines().all(|line| line.starts_with('#')));
}

/// Something that a watch may bring.
#[derive(Debug, Clone)]
enum Happening {
    Node(u8, Option<u8>),
    Pod { vm: u8, pod: u8, node: u8, stage: u8, load: u8 },
    PodGone(u8),
    Vm(u8, Option<u8>),
    VmGone(u8),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..4_u8, proptest::option::of(1..4_u8)).prop_map(|(node, size)| Happening::Node(node, size)),
        (0..3_u8, 0..6_u8, 0..4_u8, 0..3_u8, 0..9_u8).prop_map(|(vm, pod, node, stage, load)| Happening::Pod {
            vm,
            pod,
            node,
            stage,
            load
        }),
        (0..6_u8).prop_map(Happening::PodGone),
        (0..3_u8, proptest::option::of(0..6_u8)).prop_map(|(vm, pod)| Happening::Vm(vm, pod)),
        (0..3_u8).prop_map(Happening::VmGone),
    ]
}

/// The objects that are there, to compare the index with.
#[derive(Debug, Default)]
struct Objects {
    nodes: BTreeMap<u8, u8>,
    pods: BTreeMap<u8, PodSeen>,
    vms: BTreeMap<u8, Option<u8>>,
}

fn tell(index: &mut Index, objects: &mut Objects, what: &Happening, now: Duration) {
    match *what {
        Happening::Node(number, Some(size)) => {
            objects.nodes.insert(number, size);
            index.apply_node(&node(&format!("n{number}"), f64::from(size) * 8.0, 64.0), now);
        }
        Happening::Node(number, None) => {
            objects.nodes.remove(&number);
            index.remove_node(&format!("n{number}"), now);
        }
        Happening::Pod { vm, pod: number, node, stage, load } => {
            let stage = [Stage::Waiting, Stage::Running, Stage::Finished][usize::from(stage)];
            let seen =
                PodSeen { stage, ..pod(&format!("v{vm}"), &format!("p{number}"), &format!("n{node}"), load.into()) };
            index.apply_pod(&seen, now);
            objects.pods.insert(number, seen);
        }
        Happening::PodGone(number) => {
            objects.pods.remove(&number);
            index.remove_pod("default", &format!("p{number}"), now);
        }
        Happening::Vm(number, pod) => {
            objects.vms.insert(number, pod);
            index.apply_vm(&vm(&format!("v{number}"), &pod.map(|pod| format!("p{pod}")).unwrap_or_default()), now);
        }
        Happening::VmGone(number) => {
            objects.vms.remove(&number);
            index.remove_vm("default", &format!("v{number}"), now);
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_every_vm_counts_at_most_once_and_sums_fit(history in proptest::collection::vec(happening(), 0..60)) {
        let (mut index, mut objects) = (Index::default(), Objects::default());
        let mut last: BTreeMap<String, Counters> = BTreeMap::new();
        for (step, what) in history.iter().enumerate() {
            let now = at(step as u64);
            tell(&mut index, &mut objects, what, now);
            let rows = index.snapshot(now).rows;
            prop_assert_eq!(rows.len(), objects.nodes.len());
            let mut vms_per_node: BTreeMap<String, (usize, f64)> = BTreeMap::new();
            for number in 0..3 {
                let counted = index.node_of("default", &format!("v{number}"));
                let named = objects.vms.get(&number).copied().flatten().and_then(|pod| objects.pods.get(&pod));
                if let Some(named) = named.filter(|pod| pod.vm == format!("v{number}") && pod.stage == Stage::Running) {
                    prop_assert_eq!(counted, named.node.as_deref(), "a named pod that runs counts");
                }
                if let Some(node) = counted {
                    let pods = objects.pods.values();
                    let mut running = pods.filter(|pod| pod.vm == format!("v{number}") && pod.stage == Stage::Running);
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
    fn what_is_shown_depends_on_what_is_there_and_not_on_how_it_came(history in proptest::collection::vec(happening(), 0..60)) {
        let (mut index, mut objects) = (Index::default(), Objects::default());
        for what in &history {
            tell(&mut index, &mut objects, what, at(0));
        }
        // The same objects told once, pods of VMs that name none of them aside: those depend on what counted before.
        let is_settled = objects.vms.values().all(|pod| pod.is_none_or(|pod| {
            objects.pods.get(&pod).is_some_and(|pod| pod.stage != Stage::Waiting)
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
        let plays_its_vm = objects.vms.iter().all(|(vm, pod)| {
            pod.is_none_or(|pod| objects.pods.get(&pod).is_some_and(|pod| pod.vm == format!("v{vm}")))
        });
        prop_assume!(plays_its_vm);
        prop_assert_eq!(load(&fresh), load(&index));
    }
}
