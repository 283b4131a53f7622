//! What holds for every cluster.

use std::collections::BTreeSet;

use proptest::{prelude::*, sample::select};

use super::*;
use crate::test_cluster::arbitrary;

fn any_instance(number: usize) -> impl Strategy<Value = Value> {
    let strategy = select(vec!["", "None", "LiveMigrate", "LiveMigrateIfPossible", "External", "Other"]);
    let phase = select(vec!["Running", "Scheduled", "Unknown", "Pending", "Succeeded"]);
    let owner = select(vec!["", "VirtualMachine", "VirtualMachinePool", "Other"]);
    (strategy, phase, owner, any::<bool>(), 0..12_usize).prop_map(move |(strategy, phase, owner, migratable, node)| {
        let mut object = instance(&format!("g{number}"), &format!("w{node}"), strategy, migratable);
        object["status"]["phase"] = phase.into();
        object["metadata"]["ownerReferences"][0]["kind"] = owner.into();
        object["metadata"]["ownerReferences"][0]["controller"] = (!owner.is_empty()).into();
        object
    })
}

fn any_node(number: usize) -> impl Strategy<Value = Value> {
    let role = select(vec!["worker", "master", "infra", "none"]);
    (role, any::<bool>(), any::<bool>(), select(vec!["", "a", "b"]), 1..200_u64).prop_map(
        move |(role, cordoned, ready, zone, gib)| {
            let mut object = node(&format!("w{number}"), gib);
            object["metadata"]["labels"] = json!({format!("node-role.kubernetes.io/{role}"): ""});
            if !zone.is_empty() {
                object["metadata"]["labels"]["topology.kubernetes.io/zone"] = zone.into();
            }
            object["spec"]["unschedulable"] = cordoned.into();
            object["status"]["conditions"][0]["status"] = if ready { "True" } else { "False" }.into();
            object
        },
    )
}

fn maybe<T: std::fmt::Debug + Clone + 'static>(value: T) -> impl Strategy<Value = Reading<T>> {
    prop_oneof![8 => Just(Reading::Read(value)), 1 => Just(Reading::NotServed), 1 => Just(Reading::Unreadable("no".into()))]
}

prop_compose! {
    fn any_objects()(
        nodes in (0..10_usize).prop_flat_map(|count| (0..count).map(any_node).collect::<Vec<_>>()),
        instances in (0..40_usize).prop_flat_map(|count| (0..count).map(any_instance).collect::<Vec<_>>()),
        at_a_time in 0..4_u64,
        strategies in prop::collection::vec(select(vec!["Always", "RerunOnFailure", "Manual", ""]), 40),
    ) -> (Vec<Value>, Vec<Value>, u64, Vec<&'static str>) {
        (nodes, instances, at_a_time, strategies)
    }
}

fn any_cluster() -> impl Strategy<Value = ObservedCluster> {
    any_objects().prop_flat_map(|(nodes, instances, at_a_time, strategies)| {
        let virtual_machines: Vec<Value> =
            strategies.iter().enumerate().map(|(number, strategy)| machine(&format!("g{number}"), strategy)).collect();
        let pods: Vec<Value> = instances
            .iter()
            .map(|object| {
                launcher(
                    object["metadata"]["name"].as_str().unwrap(),
                    object["status"]["nodeName"].as_str().unwrap(),
                    8,
                )
            })
            .collect();
        let parsed = |objects: &[Value]| objects.iter().filter_map(Instance::of).collect::<Vec<_>>();
        let pools = ["worker", "master", "infra"].map(|name| MachinePool::of(&pool(name, at_a_time)).unwrap()).to_vec();
        let base = ObservedCluster { nodes: read(&nodes, Node::of), pools: Reading::Read(pools), ..empty() };
        (
            maybe(parsed(&instances)),
            maybe(virtual_machines.iter().filter_map(VirtualMachine::of).collect::<Vec<_>>()),
            maybe(pods.iter().filter_map(Pod::of).collect::<Vec<_>>()),
            maybe(Platform::of(&json!({"spec": {"configuration": {"evictionStrategy": "LiveMigrate"}}}))),
        )
            .prop_map(move |(instances, virtual_machines, pods, platform)| ObservedCluster {
                instances,
                virtual_machines,
                pods,
                platform,
                ..base.clone()
            })
    })
}

proptest! {
    #![proptest_config(arbitrary::cases(300))]

    #[test]
    fn every_guest_on_the_pools_nodes_is_in_exactly_one_class(observed in any_cluster(), pools in select(vec![vec!["worker"], vec!["worker", "master"], vec!["infra"], vec![]])) {
        let found = radius(&reboots(&pools), &observed);
        let nodes: BTreeSet<&str> = found.pools.iter().flat_map(|pool| &pool.nodes).map(|node| node.name.as_str()).collect();
        prop_assert_eq!(nodes.len(), found.totals.nodes, "no node twice");
        let there = observed.instances.items().iter().filter(|known| nodes.contains(known.node.as_str()));
        let expected: BTreeSet<&str> = there.map(|known| known.name.as_str()).collect();
        let classified: Vec<&str> =
            found.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests).map(|known| known.name.as_str()).collect();
        prop_assert_eq!(classified.len(), expected.len(), "each once");
        prop_assert_eq!(classified.iter().copied().collect::<BTreeSet<_>>(), expected);
        let sum: usize = DrainEffect::ALL.iter().map(|effect| found.totals.count(*effect)).sum();
        prop_assert_eq!(sum, found.totals.guests, "the classes add up");
        prop_assert_eq!(sum, classified.len());
    }

    #[test]
    fn ranges_are_ranges_and_only_what_leaves_a_node_is_without_room(observed in any_cluster()) {
        let found = radius(&reboots(&["worker", "master"]), &observed);
        for node in found.pools.iter().flat_map(|pool| &pool.nodes) {
            for range in [node.drain, node.total] {
                prop_assert!(range.max_seconds.is_none_or(|max| range.min_seconds <= max), "{:?}", range);
            }
            prop_assert!(node.total.min_seconds >= node.drain.min_seconds);
        }
        let leaves: BTreeSet<&str> = found.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests)
            .filter(|known| matches!(known.effect, DrainEffect::MovesLive | DrainEffect::Restarts)).map(|known| known.name.as_str()).collect();
        let unschedulable: Vec<&str> = found.capacity.unschedulable.iter().map(|known| known.name.as_str()).collect();
        prop_assert!(unschedulable.iter().all(|name| leaves.contains(name)), "{unschedulable:?} of {leaves:?}");
        prop_assert_eq!(unschedulable.iter().collect::<BTreeSet<_>>().len(), unschedulable.len(), "each once");
        prop_assert!(unschedulable.is_empty() || found.capacity.result == CapacityResult::Short);
    }

    #[test]
    fn a_plan_without_a_reboot_reaches_nobody(observed in any_cluster()) {
        let mut items = reboots(&["worker", "master"]);
        items[0].impact_detail.as_mut().unwrap().reboot = false;
        let found = radius(&items, &observed);
        prop_assert_eq!(&found.totals, &Totals::default());
        prop_assert!(found.pools.is_empty() && found.budgets.is_empty() && found.risks.is_empty() && found.unread.is_empty());
    }

    #[test]
    fn more_room_never_leaves_more_without_room_when_one_node_is_away(observed in any_cluster()) {
        let short = radius(&reboots(&["worker"]), &observed).capacity.result == CapacityResult::Short;
        let mut nodes = observed.nodes.items().to_vec();
        for number in 0..50 {
            nodes.push(Node::of(&node(&format!("extra-{number}"), 4000)).unwrap());
        }
        // The new nodes are in no pool that reboots.
        nodes.iter_mut().filter(|node| node.name.starts_with("extra")).for_each(|node| node.labels.clear());
        let roomy = ObservedCluster { nodes: Reading::Read(nodes), ..observed };
        let result = radius(&reboots(&["worker"]), &roomy).capacity.result;
        prop_assert!(result != CapacityResult::Short, "was {short}, and with 50 empty nodes it is {result:?}");
    }
}
