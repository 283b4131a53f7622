//! Nodes in their order, what holds them back, and how long it takes.

use super::*;
use api::virt_platform_config::{PoolRollout, RolloutState};

fn zoned(name: &str, zone: &str) -> Value {
    let mut node = node(name, 64);
    node["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
    node
}

fn names(radius: &BlastRadius) -> Vec<(&str, Option<usize>)> {
    radius.pools[0].nodes.iter().map(|node| (node.name.as_str(), node.wave)).collect()
}

#[test]
fn nodes_are_named_in_the_order_in_which_the_pool_takes_them() {
    let mut cordoned = zoned("w0", "a");
    cordoned["spec"]["unschedulable"] = true.into();
    let nodes = [node("w9", 64), zoned("w2", "b"), zoned("w3", "a"), cordoned, zoned("w4", "a")];
    let observed = ObservedCluster {
        nodes: read(&nodes, Node::of),
        pools: read(&[pool("worker", 3)], MachinePool::of),
        ..empty()
    };
    let radius = radius(&reboots(&["worker"]), &observed);
    let expected = [("w3", Some(1)), ("w4", Some(1)), ("w2", Some(2)), ("w9", Some(2)), ("w0", None)];
    assert_eq!(names(&radius), expected);
    assert_eq!(radius.pools[0].nodes[4].held_back, Some("cordoned"));
    assert_eq!((radius.pools[0].max_unavailable, radius.pools[0].at_a_time), (Some(3), 2));
}

#[test]
fn a_rollout_under_way_names_only_what_is_left() {
    let mut done = node("w1", 64);
    done["metadata"]["annotations"] = json!({
        "machineconfiguration.openshift.io/currentConfig": "new",
        "machineconfiguration.openshift.io/desiredConfig": "new",
        "machineconfiguration.openshift.io/state": "Done",
    });
    let mut pool = pool("worker", 1);
    pool["spec"]["configuration"] = json!({"name": "new"});
    let observed = ObservedCluster {
        nodes: read(&[done, node("w2", 64)], Node::of),
        pools: read(&[pool], MachinePool::of),
        ..empty()
    };
    let mut items = reboots(&["worker"]);
    items[0].rollout =
        vec![PoolRollout { pool: "worker".into(), state: RolloutState::Updating, ..PoolRollout::default() }];
    let found = radius(&items, &observed);
    assert_eq!((names(&found), found.pools[0].done), (vec![("w2", Some(1))], 1));
    items[0].rollout[0].state = RolloutState::Pending;
    assert_eq!(
        radius(&items, &observed).totals.nodes,
        2,
        "the pool has not begun: what it runs is older than the plan"
    );
}

#[test]
fn the_control_plane_node_with_the_machine_config_operator_comes_last() {
    let master = |name: &str| {
        let mut node = node(name, 64);
        node["metadata"]["labels"] = json!({"node-role.kubernetes.io/master": ""});
        node
    };
    let operator = json!({
        "metadata": {"namespace": "openshift-machine-config-operator", "name": "o", "labels": {"k8s-app": "machine-config-operator"}},
        "spec": {"nodeName": "m1"},
    });
    let observed = ObservedCluster {
        nodes: read(&[master("m1"), master("m2"), master("m3")], Node::of),
        pools: read(&[pool("master", 1)], MachinePool::of),
        pods: read(&[operator], Pod::of),
        ..empty()
    };
    let radius = radius(&reboots(&["master"]), &observed);
    assert_eq!(names(&radius), [("m2", Some(1)), ("m3", Some(2)), ("m1", Some(3))]);
    assert!(radius.risks.iter().any(|risk| risk.name == "RebootsControlPlane"));
}

/// Migrations of 60 s, reboots of 300 s.
fn timed(guests: usize, max_unavailable: u64) -> ObservedCluster {
    let transition = |phase: &str, time: &str| json!({"phase": phase, "phaseTransitionTimestamp": time});
    let migration = json!({"status": {"phase": "Succeeded", "phaseTransitionTimestamps": [
        transition("Running", "2026-01-01T10:00:00Z"), transition("Succeeded", "2026-01-01T10:01:00Z"),
    ]}});
    let names: Vec<String> = (0..guests).map(|number| format!("g{number}")).collect();
    let instances: Vec<Value> = names.iter().map(|name| instance(name, "w1", "LiveMigrate", true)).collect();
    let pods: Vec<Value> = names.iter().map(|name| launcher(name, "w1", 1)).collect();
    ObservedCluster {
        nodes: read(&[node("w1", 640), node("w2", 640), node("w3", 640)], Node::of),
        pools: read(&[pool("worker", max_unavailable)], MachinePool::of),
        instances: read(&instances, Instance::of),
        pods: read(&pods, Pod::of),
        migrations: Reading::Read(vec![ObservedMigration::of(&migration)]),
        reboots: Reading::Read(vec![Reboot { node: "w1".into(), seconds: 300 }]),
        ..empty()
    }
}

#[test]
fn times_add_up_over_waves_and_a_drain_is_rounded_up_to_the_next_attempt() {
    let plan = reboots(&["worker"]);
    let range = |estimate: Estimate| (estimate.min_seconds, estimate.max_seconds);
    let one_by_one = radius(&plan, &timed(10, 1));
    let first = &one_by_one.pools[0].nodes[0];
    assert_eq!(range(first.drain), (300, Some(300)), "10 guests, 2 at a time, 60 s each");
    assert_eq!(range(first.total), (300 + 60 + 300, Some(300 + 120 + 300)));
    // The guests go to two nodes that have their reboots before them, and leave them in six turns.
    assert_eq!(range(one_by_one.duration), (660 + 2 * 360, Some(720 + 2 * 420 + 6 * 60)));
    let eleven = radius(&plan, &timed(11, 1));
    assert_eq!(range(eleven.pools[0].nodes[0].drain), (330, Some(360)));
    let together = radius(&plan, &timed(10, 3));
    assert_eq!(together.pools[0].nodes[0].wave, Some(1));
    assert!(together.duration.max_seconds < one_by_one.duration.max_seconds);
}

/// The machine config operator works on five nodes at a time, whatever `maxUnavailable` says.
#[test]
fn nodes_that_drain_at_the_same_time_wait_for_each_other_if_there_are_more_than_five() {
    let plan = reboots(&["worker"]);
    let of = |count: u64| {
        let nodes: Vec<Value> = (1..=count).map(|number| node(&format!("w{number}"), 640)).collect();
        radius(&plan, &ObservedCluster { nodes: read(&nodes, Node::of), ..timed(0, count) })
    };
    for (count, wait) in [(5, 0), (6, 90), (10, 90), (11, 180)] {
        let radius = of(count);
        let drains: Vec<_> = radius.pools[0].nodes.iter().map(|node| node.drain).collect();
        assert!(drains.iter().all(|drain| (drain.min_seconds, drain.max_seconds) == (0, Some(wait))), "{drains:?}");
        assert_eq!(radius.duration.max_seconds, Some(wait + 420), "{count}");
        let told = format!("{count} nodes drain at the same time");
        assert_eq!(radius.basis.iter().any(|line| line.starts_with(&told)), wait > 0, "{:?}", radius.basis);
    }
}

/// People who never want a guest to be killed write the largest number there is.
#[test]
fn times_without_bounds_are_long_and_no_error() {
    let forever = |name: &str, strategy: &str| {
        let mut guest = instance(name, "w1", strategy, true);
        guest["spec"]["terminationGracePeriodSeconds"] = i64::MAX.into();
        guest["spec"]["domain"]["memory"]["guest"] = "8Ei".into();
        guest
    };
    let guests =
        [("a", "None"), ("b", "None"), ("c", "None"), ("d", "LiveMigrate"), ("e", "LiveMigrate"), ("f", "LiveMigrate")];
    let instances: Vec<Value> = guests.iter().map(|(name, strategy)| forever(name, strategy)).collect();
    let machines: Vec<Value> = guests.iter().map(|(name, _)| machine(name, "Always")).collect();
    let migrations = json!({"completionTimeoutPerGiB": i64::MAX, "bandwidthPerMigration": "1"});
    let platform = Platform::of(&json!({"spec": {"configuration": {"migrations": migrations}}}));
    let observed = ObservedCluster {
        instances: read(&instances, Instance::of),
        virtual_machines: read(&machines, VirtualMachine::of),
        platform: Reading::Read(platform),
        migrations: Reading::Read(Vec::new()),
        nodes: read(&["w1", "w2", "w3", "w4"].map(|name| node(name, 64)), Node::of),
        ..timed(0, 1)
    };
    let found = radius(&reboots(&["worker"]), &observed);
    assert_eq!(found.duration.max_seconds, Some(u64::MAX));
    assert!(found.risks.iter().any(|risk| risk.name == "DrainExceedsOneHour"), "{:?}", found.risks);
}

#[test]
fn nobody_knows_when_a_drain_ends_that_is_blocked() {
    let radius = radius(&reboots(&["worker"]), &each_class());
    assert_eq!(radius.pools[0].nodes[0].drain.max_seconds, None);
    assert_eq!(radius.duration.max_seconds, None);
    assert!(radius.pools[0].nodes[1].drain.max_seconds.is_some());
}

#[test]
fn the_only_node_is_not_drained() {
    let observed = ObservedCluster { nodes: read(&[node("w1", 64)], Node::of), ..each_class() };
    let radius = radius(&reboots(&["worker"]), &observed);
    assert!(!radius.drained && radius.notes[0].starts_with("The cluster has one node"), "{:?}", radius.notes);
    assert_eq!((radius.totals.blocks_drain, radius.totals.moves_live), (0, 0));
    assert_eq!(radius.capacity.result, CapacityResult::NotNeeded);
}

#[test]
fn the_topology_decides_whether_nodes_are_drained_and_their_number_only_without_it() {
    let one = || read(&[node("w1", 64)], Node::of);
    let three = || each_class().nodes;
    let topology = |name: &str| Reading::Read(name.to_owned());
    for (nodes, topology, drained, note) in [
        (three(), topology("SingleReplica"), false, "The control plane is one node (SingleReplica), so nodes are not"),
        (one(), topology("SingleReplica"), false, "The control plane is one node (SingleReplica), so nodes are not"),
        (one(), topology("HighlyAvailable"), true, "What can be moved live still needs a target"),
        (one(), Reading::NotServed, false, "The cluster has one node, which is not drained; its topology could not be"),
        (three(), Reading::Unreadable("forbidden (403)".into()), true, "What can be moved live still needs a target"),
    ] {
        let unread = topology.is_unreadable();
        let radius = radius(&reboots(&["worker"]), &ObservedCluster { nodes, topology, ..each_class() });
        assert_eq!(radius.drained, drained, "{note}");
        assert!(radius.notes[0].starts_with(note), "{:?}", radius.notes);
        assert_eq!(radius.unread.iter().any(|unread| unread.what == "Infrastructure"), unread);
    }
}
