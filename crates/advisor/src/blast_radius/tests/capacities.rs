//! What fits elsewhere while nodes are away, and what refuses when it does not.

use super::*;
use api::virt_platform_config::{PoolRollout, RolloutState};

/// A guest on w1 that asks for 32 GiB, with changes to its pod.
fn guest(change: &dyn Fn(&mut Value)) -> ObservedCluster {
    let mut pod = launcher("g", "w1", 32);
    change(&mut pod);
    ObservedCluster {
        nodes: read(&[node("w1", 64), node("w2", 64)], Node::of),
        pools: read(&[pool("worker", 1)], MachinePool::of),
        instances: read(&[instance("g", "w1", "LiveMigrate", true)], Instance::of),
        virtual_machines: read(&[machine("g", "Always")], VirtualMachine::of),
        pods: read(&[pod], Pod::of),
        ..empty()
    }
}

fn constraint(observed: &ObservedCluster) -> Option<String> {
    let radius = radius(&reboots(&["worker"]), observed);
    assert_eq!(
        radius.capacity.result == CapacityResult::Short,
        !radius.capacity.unschedulable.is_empty(),
        "{:?}",
        radius.capacity
    );
    radius.capacity.unschedulable.first().map(|vm| vm.constraint.clone())
}

#[test]
fn a_guest_that_fits_nowhere_is_named_with_the_first_constraint_that_refuses() {
    let requests = |pod: &mut Value, name: &str, amount: &str| {
        pod["spec"]["containers"][0]["resources"]["requests"][name] = amount.into();
    };
    let required = |terms: Value| json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
    type Change<'a> = &'a dyn Fn(&mut Value);
    let cases: [(&str, Change<'_>, Option<&str>); 7] = [
        ("fits", &|_| {}, None),
        (
            "memory",
            &|pod| requests(pod, "memory", "65Gi"),
            Some("memory: it requests 65.0 GiB, and at most 64.0 GiB are free"),
        ),
        ("cpu", &|pod| requests(pod, "cpu", "16500m"), Some("CPU: it requests 16500m, and at most 16 are free")),
        (
            "a device",
            &|pod| requests(pod, "nvidia.com/gpu", "1"),
            Some("nvidia.com/gpu: it requests 1, and at most 0 are free"),
        ),
        (
            "a label, although there is no memory either",
            &|pod| {
                pod["spec"]["nodeSelector"] = json!({"disk": "fast"});
                requests(pod, "memory", "65Gi");
            },
            Some("node selector: no other node in service has disk=fast"),
        ),
        (
            "an affinity",
            &|pod| {
                let here = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": ["w1"]});
                pod["spec"]["affinity"] = required(json!([{"matchExpressions": [here]}]));
            },
            Some("node affinity: it allows no other node in service"),
        ),
        ("what is only preferred", &|pod| pod["spec"]["affinity"] = json!({"nodeAffinity": {}}), None),
    ];
    for (case, change, expected) in cases {
        assert_eq!(constraint(&guest(change)).as_deref(), expected, "{case}");
    }
}

#[test]
fn a_taint_keeps_guests_away_that_do_not_tolerate_it() {
    let mut tainted = node("w2", 64);
    tainted["spec"]["taints"] = json!([{"key": "gpu", "effect": "NoSchedule"}]);
    let nodes = || read(&[node("w1", 64), tainted.clone()], Node::of);
    let refused = "taint: all other nodes have one that it does not tolerate, for example gpu:NoSchedule";
    assert_eq!(constraint(&ObservedCluster { nodes: nodes(), ..guest(&|_| {}) }).as_deref(), Some(refused));
    let tolerates = |pod: &mut Value| pod["spec"]["tolerations"] = json!([{"key": "gpu", "operator": "Exists"}]);
    assert_eq!(constraint(&ObservedCluster { nodes: nodes(), ..guest(&tolerates) }), None);
}

#[test]
fn nodes_out_of_service_take_nobody() {
    let mut cordoned = node("w2", 64);
    cordoned["spec"]["unschedulable"] = true.into();
    let nodes = read(&[node("w1", 64), cordoned], Node::of);
    let observed = ObservedCluster { nodes, pools: read(&[pool("worker", 2)], MachinePool::of), ..guest(&|_| {}) };
    assert_eq!(constraint(&observed).as_deref(), Some("no other node is in service"));
}

#[test]
fn a_node_that_the_pool_itself_has_cordoned_takes_guests_again_after_its_reboot() {
    let taken = |name: &str| {
        let mut node = node(name, 64);
        let annotation = |name: &str| format!("machineconfiguration.openshift.io/{name}");
        node["metadata"]["annotations"] = json!({
            annotation("currentConfig"): "old", annotation("desiredConfig"): "new", annotation("state"): "Working",
        });
        node["spec"]["unschedulable"] = true.into();
        node["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
        node
    };
    let mut away = taken("w1");
    away["status"]["conditions"][0]["status"] = "Unknown".into();
    away["spec"]["taints"] = json!([
        {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"},
    ]);
    let mut pool = pool("worker", 1);
    pool["spec"]["configuration"] = json!({"name": "new"});
    let mut items = reboots(&["worker"]);
    items[0].rollout =
        vec![PoolRollout { pool: "worker".into(), state: RolloutState::Updating, ..PoolRollout::default() }];
    for (case, first) in [("being drained", taken("w1")), ("away", away)] {
        let observed = ObservedCluster {
            nodes: read(&[first, node("w2", 64)], Node::of),
            pools: read(&[pool.clone()], MachinePool::of),
            instances: read(&[instance("g", "w2", "LiveMigrate", true)], Instance::of),
            pods: read(&[launcher("g", "w2", 32)], Pod::of),
            ..guest(&|_| {})
        };
        let found = radius(&items, &observed).capacity;
        assert_eq!((found.result, found.unschedulable), (CapacityResult::Enough, vec![]), "{case}");
    }
}

/// Each of three nodes has 40 of 64 GiB in use.
fn busy(max_unavailable: u64, migratable: bool) -> ObservedCluster {
    let on = |number: usize| format!("w{}", number / 4 + 1);
    let instances: Vec<Value> =
        (0..12).map(|number| instance(&format!("g{number}"), &on(number), "LiveMigrate", migratable)).collect();
    let pods: Vec<Value> = (0..12).map(|number| launcher(&format!("g{number}"), &on(number), 10)).collect();
    ObservedCluster {
        nodes: read(&[node("w1", 64), node("w2", 64), node("w3", 64)], Node::of),
        pools: read(&[pool("worker", max_unavailable)], MachinePool::of),
        instances: read(&instances, Instance::of),
        pods: read(&pods, Pod::of),
        ..empty()
    }
}

#[test]
fn what_fits_while_one_node_is_away_may_not_fit_while_two_are() {
    let capacity = |observed: &ObservedCluster| radius(&reboots(&["worker"]), observed).capacity;
    let one = capacity(&busy(1, true));
    assert_eq!((one.result, one.nodes_away), (CapacityResult::Enough, 1));
    let two = capacity(&busy(2, true));
    assert_eq!(
        (two.result, two.nodes_away, two.unschedulable.len()),
        (CapacityResult::Short, 2, 6),
        "2 of 8 fit on the third node"
    );
    let blocked = capacity(&busy(2, false));
    assert_eq!(blocked.result, CapacityResult::NotNeeded, "what does not leave its node needs no other one");
}

#[test]
fn a_guest_without_room_is_named_with_the_node_that_it_is_on_now() {
    let observed = ObservedCluster {
        nodes: read(&[node("w1", 55), node("w2", 64)], Node::of),
        instances: read(
            &[instance("small", "w1", "LiveMigrate", true), instance("large", "w2", "LiveMigrate", true)],
            Instance::of,
        ),
        pods: read(&[launcher("small", "w1", 10), launcher("large", "w2", 50)], Pod::of),
        ..guest(&|_| {})
    };
    let found = radius(&reboots(&["worker"]), &observed);
    // It finds room on w2 first. When that is drained, the large one takes w1.
    let unschedulable: Vec<_> =
        found.capacity.unschedulable.iter().map(|vm| (vm.name.as_str(), vm.node.as_str())).collect();
    assert_eq!(unschedulable, [("small", "w1")]);
    let on_now = found.pools[0].nodes.iter().find(|node| node.guests.iter().any(|guest| guest.name == "small"));
    assert_eq!(on_now.map(|node| node.name.as_str()), Some("w1"));
}

#[test]
fn other_pods_need_room_too_and_daemons_do_not_move() {
    let pod = |name: &str, owner: &str| {
        json!({
            "metadata": {"namespace": "n", "name": name, "ownerReferences": [{"kind": owner, "name": "x"}]},
            "spec": {"nodeName": "w1", "containers": [{"resources": {"requests": {"memory": "60Gi"}}}]},
        })
    };
    let capacity = |owner: &str| {
        let pods = read(&[pod("a", owner), launcher("g", "w2", 32)], Pod::of);
        radius(&reboots(&["worker"]), &ObservedCluster { pods, ..guest(&|_| {}) }).capacity
    };
    assert_eq!(capacity("ReplicaSet").unschedulable_pods, 1);
    assert_eq!(capacity("DaemonSet").unschedulable_pods, 0);
}

#[test]
fn without_pods_nobody_knows_what_is_free() {
    let observed = ObservedCluster { pods: Reading::Unreadable("forbidden (403)".into()), ..guest(&|_| {}) };
    let capacity = radius(&reboots(&["worker"]), &observed).capacity;
    assert_eq!(capacity.result, CapacityResult::Unknown);
    assert!(capacity.why.unwrap().ends_with("forbidden (403)"));
}

#[test]
fn room_is_not_promised_for_what_could_not_be_read() {
    fn forbidden<T>() -> Reading<T> {
        Reading::Unreadable("forbidden (403)".into())
    }
    let all = || guest(&|_| {});
    let restarts = read(&[instance("g", "w1", "None", true)], Instance::of);
    let nodes = "which nodes reboot is not known";
    for (case, observed, why) in [
        (
            "guests",
            ObservedCluster { instances: forbidden(), ..all() },
            "which virtual machines have to move is not known: forbidden (403)",
        ),
        ("nodes", ObservedCluster { nodes: forbidden(), ..all() }, nodes),
        ("pools", ObservedCluster { pools: forbidden(), ..all() }, nodes),
        (
            "whether they are started again",
            ObservedCluster { instances: restarts, virtual_machines: forbidden(), ..all() },
            "whether 1 virtual machine has to move is not known",
        ),
    ] {
        let found = radius(&reboots(&["worker"]), &observed);
        assert_eq!(
            (found.capacity.result, found.capacity.why.as_deref()),
            (CapacityResult::Unknown, Some(why)),
            "{case}"
        );
        assert!(found.risks.iter().any(|risk| risk.name == "SpareCapacityUnknown"), "{case}: {:?}", found.risks);
    }
    let without_kubevirt = ObservedCluster { instances: Reading::NotServed, pods: read(&[], Pod::of), ..all() };
    let capacity = radius(&reboots(&["worker"]), &without_kubevirt).capacity;
    assert_eq!(capacity.result, CapacityResult::NotNeeded, "without KubeVirt there are no virtual machines");
    let large = guest(&|pod| pod["spec"]["containers"][0]["resources"]["requests"]["memory"] = "65Gi".into());
    let unknown = instance("h", "w1", "Other", true);
    let instances = read(&[instance("g", "w1", "LiveMigrate", true), unknown], Instance::of);
    let capacity = radius(&reboots(&["worker"]), &ObservedCluster { instances, ..large }).capacity;
    assert_eq!((capacity.result, capacity.unschedulable.len()), (CapacityResult::Short, 1), "what is known stays");
}
