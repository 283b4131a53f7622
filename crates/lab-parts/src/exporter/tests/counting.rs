//! Which VM counts on which node.

use balance::Capacity;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::json;

use super::fixture::{GIB, at, expect, node, pod, sample, vm};
use crate::{
    exporter::{Index, ObservedNode, ObservedPod, ObservedVm, PodPhase},
    launcher,
};

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
    starting.phase = PodPhase::Pending;
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
    index.apply_vm(&ObservedVm { namespace: "elsewhere".into(), ..vm("a", "a-1") }, at(1));
    expect(&index, &[("n1", 0.5, 1), ("n2", 0.25, 1)]);
    assert_eq!(index.node_of("elsewhere", "a"), Some("n2"));
}

#[test]
fn a_stopped_a_finished_and_a_deleted_vm_put_no_load_on_a_node() {
    let mut stopped = sample();
    stopped.apply_vm(&vm("a", ""), at(1));
    expect(&stopped, &[("n1", 0.0, 0), ("n2", 0.0, 0)]);
    let mut finished = sample();
    finished.apply_pod(&ObservedPod { phase: PodPhase::Finished, ..pod("a", "a-1", "n1", 16.0) }, at(1));
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
    let read = |node: serde_json::Value| ObservedNode::of(&serde_json::from_value::<Node>(node).unwrap()).capacity;
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
    index.apply_node(&ObservedNode { name: "n1".into(), capacity: None }, at(0));
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
    let observed = ObservedPod::of(&serde_json::from_value::<Pod>(object).unwrap()).unwrap();
    assert_eq!((observed.load, observed.phase), (None, PodPhase::Running));
    let mut index = sample();
    index.apply_pod(&observed, at(1));
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
