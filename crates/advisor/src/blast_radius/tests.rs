//! The blast radius as a whole, on clusters that are described in a few words.

mod capacities;
mod properties;
mod rollouts;
mod warnings;

use std::collections::BTreeMap;

use api::virt_platform_config::{ImpactDetail, Item, PoolImpact, TakeOver};
use serde_json::{Value, json};

use super::*;

/// A plan that reboots pools.
pub(super) fn reboots(pools: &[&str]) -> Vec<Item> {
    let pools = pools.iter().map(|name| PoolImpact { name: (*name).into(), nodes: Some(3), ..PoolImpact::default() });
    let detail = ImpactDetail { reboot: true, pools: pools.collect() };
    vec![Item { name: "psi".into(), impact_detail: Some(detail), ..Item::default() }]
}

pub(super) fn radius(items: &[Item], observed: &ObservedCluster) -> BlastRadius {
    blast_radius(PlanContents { items, risks: &[] }, observed)
}

/// A worker with so many GiB of memory.
pub(super) fn node(name: &str, gib: u64) -> Value {
    json!({
        "metadata": {
            "name": name, "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/hostname": name},
        },
        "spec": {"providerID": "aws:///x"},
        "status": {
            "allocatable": {"cpu": "16", "memory": format!("{gib}Gi"), "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

pub(super) fn pool(name: &str, max_unavailable: u64) -> Value {
    let selector = json!({"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}});
    json!({"metadata": {"name": name}, "spec": {"nodeSelector": selector, "maxUnavailable": max_unavailable}})
}

/// A running guest of a VirtualMachine.
pub(super) fn instance(name: &str, node: &str, strategy: &str, migratable: bool) -> Value {
    let (status, reason) = if migratable { ("True", "") } else { ("False", "DisksNotLiveMigratable") };
    json!({
        "metadata": {
            "namespace": "n", "name": name, "uid": name,
            "ownerReferences": [{"kind": "VirtualMachine", "name": name, "controller": true}],
        },
        "spec": {"evictionStrategy": strategy, "domain": {"memory": {"guest": "4Gi"}}},
        "status": {
            "phase": "Running", "nodeName": node,
            "conditions": [{"type": "LiveMigratable", "status": status, "reason": reason, "message": "PVC x is not shared"}],
        },
    })
}

pub(super) fn machine(name: &str, run_strategy: &str) -> Value {
    json!({"metadata": {"namespace": "n", "name": name}, "spec": {"runStrategy": run_strategy}})
}

/// The pod of a guest.
pub(super) fn launcher(name: &str, node: &str, gib: u64) -> Value {
    json!({
        "metadata": {
            "namespace": "n", "name": format!("virt-launcher-{name}"),
            "labels": {"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": name},
        },
        "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": "1", "memory": format!("{gib}Gi")}}}]},
        "status": {"phase": "Running"},
    })
}

pub(super) fn read<T>(objects: &[Value], of: fn(&Value) -> Option<T>) -> Reading<Vec<T>> {
    Reading::Read(objects.iter().filter_map(of).collect())
}

/// A cluster on which everything can be read and nothing is there.
pub(super) fn empty() -> ObservedCluster {
    ObservedCluster {
        namespace: None,
        topology: Reading::NotServed,
        nodes: Reading::Read(Vec::new()),
        pools: Reading::Read(Vec::new()),
        instances: Reading::Read(Vec::new()),
        virtual_machines: Reading::Read(Vec::new()),
        platform: Reading::Read(Platform::of(&json!({}))),
        migrations: Reading::Read(Vec::new()),
        budgets: Reading::Read(Vec::new()),
        pods: Reading::Read(Vec::new()),
        reboots: Reading::Read(Vec::new()),
        operations: Reading::NotServed,
    }
}

/// Three workers of 64 GiB, and one guest of each class on the first.
pub(super) fn each_class() -> ObservedCluster {
    let guests = [
        ("moves", "LiveMigrate", true, "Always"),
        ("restarts", "None", true, "Always"),
        ("stays-down", "LiveMigrateIfPossible", false, "RerunOnFailure"),
        ("blocks", "LiveMigrate", false, "Always"),
        ("hosted", "External", true, "Always"),
    ];
    let instances = guests.map(|(name, strategy, migratable, _)| instance(name, "w1", strategy, migratable));
    let virtual_machines = guests.map(|(name, _, _, run_strategy)| machine(name, run_strategy));
    let pods = guests.map(|(name, ..)| launcher(name, "w1", 5));
    ObservedCluster {
        nodes: read(&[node("w1", 64), node("w2", 64), node("w3", 64)], Node::of),
        pools: read(&[pool("worker", 1)], MachinePool::of),
        instances: read(&instances, Instance::of),
        virtual_machines: read(&virtual_machines, VirtualMachine::of),
        pods: read(&pods, Pod::of),
        ..empty()
    }
}

fn effects(radius: &BlastRadius) -> BTreeMap<&str, DrainEffect> {
    let guests = radius.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests);
    guests.map(|outcome| (outcome.name.as_str(), outcome.effect)).collect()
}

#[test]
fn every_guest_is_in_its_class_with_a_cause_in_words() {
    let radius = radius(&reboots(&["worker"]), &each_class());
    let expected = [
        ("blocks", DrainEffect::BlocksDrain),
        ("hosted", DrainEffect::BlocksDrain),
        ("moves", DrainEffect::MovesLive),
        ("restarts", DrainEffect::Restarts),
        ("stays-down", DrainEffect::StaysDown),
    ];
    assert_eq!(effects(&radius), BTreeMap::from(expected));
    let Totals { nodes, guests, moves_live, restarts, stays_down, blocks_drain, unknown } = radius.totals;
    assert_eq!((nodes, guests), (3, 5));
    assert_eq!([moves_live, restarts, stays_down, blocks_drain, unknown], [1, 1, 1, 2, 0]);
    let causes: Vec<&str> = radius.pools[0].nodes[0].guests.iter().map(|outcome| outcome.cause.as_str()).collect();
    assert_eq!(
        causes,
        [
            "must be moved (LiveMigrate) and cannot be: a disk of it is not shared between nodes",
            "node of a hosted cluster (External): the drain waits until its own controller takes it away",
            "a disk of it is not shared between nodes; an orderly shutdown is no failure, so it stays off (RerunOnFailure)",
            "its eviction strategy is None; started again (Always)",
            "live migration",
        ]
    );
}

#[test]
fn a_plan_without_a_reboot_has_no_blast_radius() {
    let mut without = reboots(&["worker"]);
    without[0].impact_detail.as_mut().unwrap().reboot = false;
    without[0].takes_over = vec![TakeOver { manager: "argocd".into(), fields: vec!["spec.mode".into()] }];
    for items in [&without[..], &[]] {
        let radius = radius(items, &each_class());
        assert!(!radius.reboots && radius.pools.is_empty(), "{radius:?}");
        assert_eq!((radius.totals, radius.duration), (Totals::default(), Estimate::NONE));
        assert_eq!(radius.capacity.result, CapacityResult::NotNeeded);
        let names: Vec<_> = radius.risks.iter().map(|risk| risk.name.as_str()).collect();
        assert_eq!(names, if items.is_empty() { vec![] } else { vec!["TakesOverFields"] });
    }
}

#[test]
fn an_item_that_is_completed_has_its_reboots_behind_it() {
    let mut items = reboots(&["worker"]);
    items[0].state = api::virt_platform_config::ItemState::Completed;
    assert!(!radius(&items, &each_class()).reboots);
}

#[test]
fn guests_on_other_nodes_and_guests_that_do_not_run_are_not_concerned() {
    let mut elsewhere = instance("elsewhere", "other", "LiveMigrate", true);
    let mut ended = instance("ended", "w1", "LiveMigrate", true);
    ended["status"]["phase"] = "Succeeded".into();
    let mut deleted = instance("deleted", "w1", "LiveMigrate", true);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    elsewhere["metadata"]["labels"] = json!({"a": "b"});
    let observed = ObservedCluster { instances: read(&[elsewhere, ended, deleted], Instance::of), ..each_class() };
    assert_eq!(radius(&reboots(&["worker"]), &observed).totals.guests, 0);
}
