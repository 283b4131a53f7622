//! The page of a plan for nodes with long names, and for whoever may read one namespace.

use advisor::blast_radius::{
    Instance, MachinePool, Node, ObservedCluster, PlanContents, Platform, Pod, Reading, VirtualMachine, blast_radius,
};
use api::virt_platform_config::{ImpactDetail, Item, Phase, PoolImpact};
use serde_json::json;

use super::*;
use crate::{golden, impact::observe::Read};

const DOMAIN: &str = "prod-eu-1.virt.example-company.com";

fn node(name: &str) -> Node {
    let labels = json!({"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": "eu-central-1a"});
    Node::of(&json!({
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"providerID": "aws:///x"},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }))
    .unwrap()
}

fn instance(name: &str, node: &str, migratable: &str) -> Instance {
    let condition =
        json!({"type": "LiveMigratable", "status": migratable, "reason": "DisksNotLiveMigratable", "message": "PVC x"});
    Instance::of(&json!({
        "metadata": {
            "namespace": "shop", "name": name, "uid": name,
            "ownerReferences": [{"kind": "VirtualMachine", "name": name, "controller": true}],
        },
        "spec": {"evictionStrategy": "LiveMigrate", "domain": {"memory": {"guest": "4Gi"}}},
        "status": {"phase": "Running", "nodeName": node, "conditions": [condition]},
    }))
    .unwrap()
}

/// Two nodes, with a guest that moves and one that blocks the drain.
fn observed(nodes: [&str; 2]) -> ObservedCluster {
    let selector = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    let pool = json!({"metadata": {"name": "worker"}, "spec": {"nodeSelector": selector, "maxUnavailable": 1}});
    let machine =
        |name: &str| json!({"metadata": {"namespace": "shop", "name": name}, "spec": {"runStrategy": "Always"}});
    let virtual_machines = [machine("web-1"), machine("db-1")];
    ObservedCluster {
        namespace: None,
        topology: Reading::Read("HighlyAvailable".into()),
        nodes: Reading::Read(nodes.map(node).into()),
        pools: Reading::Read(MachinePool::of(&pool).into_iter().collect()),
        instances: Reading::Read(vec![instance("web-1", nodes[0], "True"), instance("db-1", nodes[1], "False")]),
        virtual_machines: Reading::Read(virtual_machines.iter().filter_map(VirtualMachine::of).collect()),
        platform: Reading::Read(Platform::of(&json!({}))),
        migrations: Reading::Read(Vec::new()),
        budgets: Reading::Read(Vec::new()),
        pods: Reading::Read(Vec::<Pod>::new()),
        reboots: Reading::Read(Vec::new()),
        operations: Reading::NotServed,
    }
}

fn shown(observed: &ObservedCluster, width: usize) -> String {
    shown_of(&["worker"], observed, width)
}

fn shown_of(pools: &[&str], observed: &ObservedCluster, width: usize) -> String {
    let pool = |name: &&str| PoolImpact { name: (*name).into(), nodes: Some(2), ..PoolImpact::default() };
    let detail = ImpactDetail { reboot: true, pools: pools.iter().map(pool).collect() };
    let items = [Item { name: "psi".into(), impact_detail: Some(detail), ..Item::default() }];
    let plan = Reviewed {
        profile: "load-aware-rebalancing",
        phase: Some(Phase::ReviewRequired),
        plan_digest: Some("3f2a9c01b7de"),
        impact: blast_radius(PlanContents { items: &items, risks: &[] }, observed),
        may_pause: Some(true),
        probe: None,
    };
    let report = ImpactReport { plans: vec![plan], read: Read { requests: 11, objects: 9, milliseconds: 3 } };
    render(&report, width, false)
}

#[test]
fn long_names_of_nodes_leave_room_for_what_happens() {
    let names = ["worker-1", "worker-2"].map(|name| format!("{name}.{DOMAIN}"));
    golden::assert("impact_domain", |width| shown(&observed([&names[0], &names[1]]), width));
    let other = format!("worker-2.lab.{DOMAIN}");
    golden::assert("impact_two_domains", |width| shown(&observed([&names[0], &other]), width));
}

#[test]
fn tables_are_not_wider_than_the_terminal() {
    let other = format!("worker-2.lab.{DOMAIN}");
    let text = anstream::adapter::strip_str(&shown(&observed(["worker-1.example.com", &other]), 80)).to_string();
    let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("Pool")).collect();
    assert!(table.iter().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn one_namespace_is_named_and_told_about() {
    let all = observed(["worker-1", "worker-2"]);
    let own = ObservedCluster { namespace: Some("shop".into()), ..all.clone() };
    let text = shown(&own, 200);
    assert!(text.contains("2 nodes reboot, with 2 virtual machines of namespace shop on them"), "{text}");
    assert!(text.contains("Only namespace shop is looked at"), "{text}");
    let refused = |namespace: Option<&str>| {
        let instances = Reading::Unreadable("forbidden (403)".into());
        shown(&ObservedCluster { namespace: namespace.map(str::to_owned), instances, ..all.clone() }, 200)
    };
    let hint = "With -n NAMESPACE only the virtual machines of one namespace are read";
    assert!(refused(None).contains(hint) && !refused(Some("shop")).contains(hint), "{}", refused(None));
    assert!(!shown(&all, 200).contains(hint));
}

#[test]
fn what_could_not_be_read_is_not_told_as_none() {
    let all = observed(["worker-1", "worker-2"]);
    let forbidden = || "forbidden (403)".to_owned();
    let unread = [
        ObservedCluster { instances: Reading::Unreadable(forbidden()), ..all.clone() },
        ObservedCluster { nodes: Reading::Unreadable(forbidden()), ..all.clone() },
        ObservedCluster { pools: Reading::Unreadable(forbidden()), ..all.clone() },
    ];
    let plain = |observed: &ObservedCluster, pools: &[&str]| {
        anstream::adapter::strip_str(&shown_of(pools, observed, 200)).to_string()
    };
    for observed in unread {
        let text = plain(&observed, &["worker"]);
        assert!(text.lines().next().unwrap().ends_with("; the virtual machines on them are not known"), "{text}");
        for class in ["blocks the drain          ?", "moves live                ?", "room on other nodes       ?"] {
            assert!(text.contains(&format!("   {class}\n")), "{class}: {text}");
        }
    }
    // The pool infra is not there.
    let text = plain(&all, &["infra", "worker"]);
    let head = "2 nodes and others that are not known reboot, with 2 virtual machines on those that are known";
    assert!(text.contains(head), "{text}");
    assert!(text.contains("   moves live                at least 1\n   takes"), "{text}");
    assert!(text.contains("   restarts                  ?\n"), "{text}");
    assert!(text.contains("   room on other nodes       ?\n"), "{text}");
}

#[test]
fn guests_of_every_class_are_told_narrow_and_wide() {
    let config = golden::guests::waiting();
    let status = config.status.as_ref().unwrap();
    let impact = golden::guests::radius(&config);
    let answer = |outcome: &GuestOutcome| Answer {
        namespace: outcome.namespace.clone(),
        name: outcome.name.clone(),
        effect: outcome.effect,
        result: ProbeResult::ShutDown,
        agrees: Some(outcome.effect != DrainEffect::MovesLive),
        message: None,
    };
    let guests = impact.pools.iter().flat_map(|pool| &pool.nodes).flat_map(|node| &node.guests);
    let plan = Reviewed {
        profile: config.spec.profile.as_str(),
        phase: status.phase,
        plan_digest: status.plan_digest.as_deref(),
        probe: Some(guests.map(answer).collect()),
        impact,
        may_pause: Some(false),
    };
    let report = ImpactReport { plans: vec![plan], read: Read { requests: 10, objects: 38, milliseconds: 12 } };
    golden::assert("impact", |width| render(&report, width, false));
}
