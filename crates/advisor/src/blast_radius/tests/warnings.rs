//! Risks have names and evidence, and what could not be read is said.

use std::collections::BTreeSet;

use super::*;
use crate::plan_risks::{REBOOTS_CONTROL_PLANE, TAKES_OVER_FIELDS};
use api::virt_platform_config::Risk;

fn named<'a>(radius: &'a BlastRadius, name: &str) -> Option<&'a NamedRisk> {
    radius.risks.iter().find(|risk| risk.name == name)
}

/// The first piece of evidence of a risk.
fn evidence(observed: &ObservedCluster, name: &str) -> Option<String> {
    let radius = radius(&reboots(&["worker"]), observed);
    named(&radius, name).and_then(|risk| risk.evidence.first().cloned())
}

#[test]
fn risks_name_what_they_are_seen_from() {
    let cases = [
        (
            "VMBlocksDrain",
            "n/blocks on w1: must be moved (LiveMigrate) and cannot be: a disk of it is not shared between nodes",
        ),
        ("VMRestarts", "n/restarts on w1: its eviction strategy is None; started again (Always)"),
    ];
    for (name, expected) in cases {
        assert_eq!(evidence(&each_class(), name).as_deref(), Some(expected));
    }
    assert!(evidence(&each_class(), "VMStaysDown").unwrap().starts_with("n/stays-down on w1: "));
    for name in ["NoSpareCapacity", "DrainExceedsOneHour", "PoolStandsStill", "NotEverythingRead", "VMOutcomeUnknown"] {
        assert_eq!(evidence(&each_class(), name), None, "{name}");
    }
}

#[test]
fn what_a_live_migration_needs_beyond_what_is_looked_at_is_said_where_something_moves() {
    let notes = |observed: &ObservedCluster| radius(&reboots(&["worker"]), observed).notes.join("\n");
    assert!(notes(&each_class()).contains("a ResourceQuota has room for a second pod"), "{}", notes(&each_class()));
    assert_eq!(notes(&ObservedCluster { instances: read(&[], Instance::of), ..each_class() }), "");
}

#[test]
fn in_one_namespace_what_the_others_hold_is_not_known() {
    let observed = ObservedCluster { namespace: Some("n".into()), ..each_class() };
    let radius = radius(&reboots(&["worker"]), &observed);
    assert!(radius.notes[0].starts_with("Only namespace n is looked at"), "{:?}", radius.notes);
    assert_eq!((radius.totals.guests, radius.capacity.result), (5, CapacityResult::Unknown));
    assert!(radius.capacity.why.unwrap().ends_with("only those of n were read"));
    let ends: Vec<_> = radius.pools[0].nodes.iter().map(|node| node.drain.max_seconds).collect();
    assert_eq!(ends, [None; 3], "guests and budgets of others may hold any node");
}

#[test]
fn a_pool_that_is_paused_or_has_no_node_to_spare_is_named() {
    let mut cordoned = node("w1", 64);
    cordoned["spec"]["unschedulable"] = true.into();
    let nodes = || read(&[cordoned.clone(), node("w2", 64), node("w3", 64)], Node::of);
    let stands_still = ObservedCluster { nodes: nodes(), ..each_class() };
    let expected = "MachineConfigPool worker: 1 may be unavailable; w1 is cordoned";
    assert_eq!(evidence(&stands_still, "PoolStandsStill").as_deref(), Some(expected));
    let two = ObservedCluster { nodes: nodes(), pools: read(&[pool("worker", 2)], MachinePool::of), ..each_class() };
    assert_eq!(evidence(&two, "PoolStandsStill"), None);
    assert_eq!(evidence(&two, "NodesHeldBack").as_deref(), Some("w1: cordoned"));
    let mut paused = pool("worker", 1);
    paused["spec"]["paused"] = true.into();
    let paused = ObservedCluster { pools: read(&[paused], MachinePool::of), ..each_class() };
    assert_eq!(evidence(&paused, "PoolPaused").as_deref(), Some("MachineConfigPool worker"));
}

#[test]
fn a_pool_that_stands_still_because_of_failures_names_them() {
    let mut failed = node("w1", 64);
    let annotation = |name: &str| format!("machineconfiguration.openshift.io/{name}");
    failed["metadata"]["annotations"] = json!({
        annotation("currentConfig"): "old", annotation("desiredConfig"): "new", annotation("state"): "Degraded",
    });
    let observed = ObservedCluster { nodes: read(&[failed, node("w2", 64)], Node::of), ..each_class() };
    let expected = "MachineConfigPool worker: 1 may be unavailable; w1 is failing";
    assert_eq!(evidence(&observed, "PoolStandsStill").as_deref(), Some(expected));
}

#[test]
fn a_control_plane_is_told_with_how_many_of_its_nodes_reboot_at_a_time() {
    let master = |name: &str| {
        let mut master = node(name, 64);
        master["metadata"]["labels"] = json!({"node-role.kubernetes.io/master": ""});
        master
    };
    let nodes = read(&[master("m1"), master("m2"), master("m3")], Node::of);
    let observed = ObservedCluster { nodes, pools: read(&[pool("master", 2)], MachinePool::of), ..empty() };
    let found = radius(&reboots(&["master"]), &observed);
    let risk = named(&found, "RebootsControlPlane").unwrap();
    assert_eq!(risk.message, "Nodes of the control plane reboot");
    assert_eq!(risk.evidence, ["MachineConfigPool master: at most 2 at a time"]);
}

#[test]
fn the_page_explains_every_risk_and_no_other() {
    let page = include_str!("../../../../../docs/impact.md");
    let table = page.split("## Risks").nth(1).unwrap().split("\n\n").nth(1).unwrap();
    let explained: BTreeSet<&str> =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    let source = include_str!("../risks.rs");
    let calls = source.split("risk(").skip(1);
    let literal = calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split('"').next());
    let named: BTreeSet<&str> = literal.chain([TAKES_OVER_FIELDS, REBOOTS_CONTROL_PLANE]).collect();
    assert!(named.len() > 10, "{named:?}");
    assert_eq!(explained, named);
}

#[test]
fn a_drain_that_takes_an_hour_is_named_before_its_node_becomes_degraded() {
    let guests = |count: usize| {
        let instances: Vec<Value> =
            (0..count).map(|number| instance(&format!("g{number}"), "w1", "LiveMigrate", true)).collect();
        let transition = |phase: &str, time: &str| json!({"phase": phase, "phaseTransitionTimestamp": time});
        let migration = json!({"status": {"phaseTransitionTimestamps": [
            transition("Running", "2026-01-01T10:00:00Z"), transition("Succeeded", "2026-01-01T10:02:00Z"),
        ]}});
        let platform = json!({"spec": {"configuration": {"migrations": {"parallelOutboundMigrationsPerNode": 1}}}});
        ObservedCluster {
            instances: read(&instances, Instance::of),
            migrations: Reading::Read(vec![ObservedMigration::of(&migration)]),
            platform: Reading::Read(Platform::of(&platform)),
            pods: Reading::Read(Vec::new()),
            ..each_class()
        }
    };
    assert_eq!(evidence(&guests(30), "DrainExceedsOneHour").as_deref(), Some("w1: 1h02m"), "30 guests, 2 minutes each");
    assert_eq!(evidence(&guests(25), "DrainExceedsOneHour"), None);
}

#[test]
fn budgets_at_their_limit_are_named_if_they_cover_pods_on_these_nodes() {
    let budget = |name: &str, allowed: u64, app: &str| {
        json!({
            "metadata": {"namespace": "n", "name": name}, "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed},
        })
    };
    let pod = |name: &str, node: &str, app: &str| json!({"metadata": {"namespace": "n", "name": name, "labels": {"app": app}}, "spec": {"nodeName": node}});
    let budgets = [
        budget("at-limit", 0, "db"),
        budget("elsewhere", 0, "other"),
        budget("roomy", 1, "db"),
        budget("kubevirt-disruption-budget-x", 0, "db"),
    ];
    let pods = [pod("a", "w2", "db"), pod("b", "w1", "db"), pod("c", "master", "other")];
    let observed = ObservedCluster { budgets: read(&budgets, Budget::of), pods: read(&pods, Pod::of), ..each_class() };
    let expected = "PodDisruptionBudget n/at-limit with 2 pods on w1, w2";
    let found = radius(&reboots(&["worker"]), &observed);
    assert_eq!(named(&found, "PDBAllowsNoDisruption").unwrap().evidence, [expected]);
    assert_eq!(found.pools[0].nodes[1].drain.max_seconds, None, "nobody knows when the budget allows it");
    let unknown = ObservedCluster { pods: Reading::Unreadable("forbidden".into()), ..observed };
    assert_eq!(radius(&reboots(&["worker"]), &unknown).budgets.len(), 2, "then both may cover pods here");
}

#[test]
fn a_budget_covers_pods_of_its_namespace_by_whatever_its_selector_asks_for() {
    let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "app", "operator": operator, "values": values}]});
    for (selector, pods) in [
        (json!({}), 3),
        (json!({"matchLabels": {"app": "db"}}), 1),
        (json!({"matchLabels": {"app": "db", "tier": "back"}}), 0),
        (expression("In", json!(["db", "web"])), 2),
        (expression("In", json!(["db", "db"])), 1),
        (expression("NotIn", json!(["db"])), 2),
        (expression("Exists", json!([])), 2),
        (Value::Null, 0),
    ] {
        let budget = json!({
            "metadata": {"namespace": "n", "name": "b"}, "spec": {"selector": selector}, "status": {"disruptionsAllowed": 0},
        });
        let pod = |namespace: &str, name: &str, labels: Value| json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}, "spec": {"nodeName": "w1"}});
        let there = [
            pod("n", "a", json!({"app": "db"})),
            pod("n", "b", json!({"app": "web"})),
            pod("n", "c", json!({})),
            pod("elsewhere", "d", json!({"app": "db"})),
        ];
        let observed =
            ObservedCluster { budgets: read(&[budget], Budget::of), pods: read(&there, Pod::of), ..each_class() };
        let found = radius(&reboots(&["worker"]), &observed).budgets;
        assert_eq!(found.first().map_or(0, |budget| budget.pods), pods, "{selector}");
    }
}

#[test]
fn what_else_goes_on_is_told() {
    let operation = |phase: &str| {
        let subject = json!({"kind": "VirtualMachine", "namespace": "n", "name": "a"});
        json!({"spec": {"operation": "Restore", "subject": subject}, "status": {"phase": phase}})
    };
    let operations = read(&[operation("Active"), operation("Completed")], Operation::of);
    let observed = ObservedCluster {
        operations,
        migrations: Reading::Read(vec![ObservedMigration::of(&json!({"status": {"phase": "Running"}}))]),
        ..each_class()
    };
    let found = radius(&reboots(&["worker"]), &observed);
    let evidence = &named(&found, "OperationsRunning").unwrap().evidence;
    assert_eq!(evidence, &["1 migration", "Restore: VirtualMachine n/a"]);
}

#[test]
fn what_could_not_be_read_is_said_and_not_guessed() {
    let forbidden = || "forbidden (403)".to_owned();
    let nothing = ObservedCluster::default();
    let found = radius(&reboots(&["worker"]), &nothing);
    assert_eq!(found.unread.len(), 11);
    assert_eq!(found.pools[0].expected_nodes, Some(3), "what the plan itself says");
    assert_eq!((found.totals.nodes, found.duration), (0, Estimate::UNKNOWN));
    let missing = ObservedCluster { instances: Reading::Unreadable(forbidden()), ..each_class() };
    let found = radius(&reboots(&["worker"]), &missing);
    let unread: Vec<_> = found.unread.iter().map(|unread| (unread.what, unread.why.as_str())).collect();
    assert_eq!(unread, [("VirtualMachineInstances", "forbidden (403)")]);
    assert_eq!(found.pools[0].nodes[0].drain.max_seconds, None, "what is on the node is not known");
    let absent = ObservedCluster { instances: Reading::NotServed, ..each_class() };
    let found = radius(&reboots(&["worker"]), &absent);
    assert_eq!((found.unread.len(), found.totals.guests), (0, 0), "without KubeVirt there are no virtual machines");
}

#[test]
fn risks_of_the_plan_itself_are_kept() {
    let risks = [Risk { name: "AutopilotManages".into(), message: "it has the label".into() }];
    let items = reboots(&["worker"]);
    let found = blast_radius(PlanContents { items: &items, risks: &risks }, &each_class());
    assert_eq!(named(&found, "AutopilotManages").unwrap().message, "it has the label");
}
