//! What fits elsewhere while nodes are away, and what refuses when it does not.

use super::*;

/// A guest on w1 that asks for 32 GiB, with changes to its pod.
fn guest(change: &dyn Fn(&mut Value)) -> Observed {
    let mut pod = launcher("g", "w1", 32);
    change(&mut pod);
    Observed {
        nodes: read(&[node("w1", 64), node("w2", 64)], Node::of),
        pools: read(&[pool("worker", 1)], MachinePool::of),
        instances: read(&[instance("g", "w1", "LiveMigrate", true)], Instance::of),
        machines: read(&[machine("g", "Always")], VirtualMachine::of),
        pods: read(&[pod], Pod::of),
        ..empty()
    }
}

fn constraint(observed: &Observed) -> Option<String> {
    let radius = radius(&reboots(&["worker"]), observed);
    assert_eq!(
        radius.capacity.verdict == Verdict::Short,
        !radius.capacity.stranded.is_empty(),
        "{:?}",
        radius.capacity
    );
    radius.capacity.stranded.first().map(|stranded| stranded.constraint.clone())
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
    assert_eq!(constraint(&Observed { nodes: nodes(), ..guest(&|_| {}) }).as_deref(), Some(refused));
    let tolerates = |pod: &mut Value| pod["spec"]["tolerations"] = json!([{"key": "gpu", "operator": "Exists"}]);
    assert_eq!(constraint(&Observed { nodes: nodes(), ..guest(&tolerates) }), None);
}

#[test]
fn nodes_out_of_service_take_nobody() {
    let mut cordoned = node("w2", 64);
    cordoned["spec"]["unschedulable"] = true.into();
    let nodes = read(&[node("w1", 64), cordoned], Node::of);
    let observed = Observed { nodes, pools: read(&[pool("worker", 2)], MachinePool::of), ..guest(&|_| {}) };
    assert_eq!(constraint(&observed).as_deref(), Some("no other node is in service"));
}

/// Each of three nodes has 40 of 64 GiB in use.
fn busy(max_unavailable: u64, migratable: bool) -> Observed {
    let on = |number: usize| format!("w{}", number / 4 + 1);
    let instances: Vec<Value> =
        (0..12).map(|number| instance(&format!("g{number}"), &on(number), "LiveMigrate", migratable)).collect();
    let pods: Vec<Value> = (0..12).map(|number| launcher(&format!("g{number}"), &on(number), 10)).collect();
    Observed {
        nodes: read(&[node("w1", 64), node("w2", 64), node("w3", 64)], Node::of),
        pools: read(&[pool("worker", max_unavailable)], MachinePool::of),
        instances: read(&instances, Instance::of),
        pods: read(&pods, Pod::of),
        ..empty()
    }
}

#[test]
fn what_fits_while_one_node_is_away_may_not_fit_while_two_are() {
    let capacity = |observed: &Observed| radius(&reboots(&["worker"]), observed).capacity;
    let one = capacity(&busy(1, true));
    assert_eq!((one.verdict, one.nodes_away), (Verdict::Enough, 1));
    let two = capacity(&busy(2, true));
    assert_eq!(
        (two.verdict, two.nodes_away, two.stranded.len()),
        (Verdict::Short, 2, 6),
        "2 of 8 fit on the third node"
    );
    let blocked = capacity(&busy(2, false));
    assert_eq!(blocked.verdict, Verdict::NotNeeded, "what does not leave its node needs no other one");
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
        radius(&reboots(&["worker"]), &Observed { pods, ..guest(&|_| {}) }).capacity
    };
    assert_eq!(capacity("ReplicaSet").stranded_pods, 1);
    assert_eq!(capacity("DaemonSet").stranded_pods, 0);
}

#[test]
fn without_pods_nobody_knows_what_is_free() {
    let observed = Observed { pods: Reading::Unreadable("forbidden (403)".into()), ..guest(&|_| {}) };
    let capacity = radius(&reboots(&["worker"]), &observed).capacity;
    assert_eq!(capacity.verdict, Verdict::Unknown);
    assert!(capacity.why.unwrap().ends_with("forbidden (403)"));
}
