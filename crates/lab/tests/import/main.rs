//! Objects of a cluster as an import reads them. No server is asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use kube::{Client, client::Body};
use lab::import::{
    Loads, Objects, Origin, Report, Request, import,
    objects::{Collector, FoundVm, Kind},
};
use serde_json::{Value, json};
use sim::{
    ClusterModel,
    import::Order,
    scenario::{Effect, Load, Scenario, parse},
    units::{Bytes, Span},
};

fn node(name: &str, labels: Value, taints: Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110"},
            "allocatable": {"cpu": "15500m", "memory": "60Gi", "pods": "110"},
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn instance(name: &str, node: &str, more: Value) -> Value {
    let mut object = json!({
        "metadata": {"namespace": "shop", "name": name, "uid": format!("uid-{name}"), "labels": {"app": "db"}},
        "spec": {"domain": {"cpu": {"cores": 2, "sockets": 2}, "memory": {"guest": "8Gi"}}},
        "status": {
            "phase": "Running", "nodeName": node,
            "conditions": [{"type": "LiveMigratable", "status": "True"}],
        },
    });
    for (path, value) in more.as_object().unwrap() {
        let (parent, key) = path.rsplit_once('/').unwrap();
        object.pointer_mut(parent).unwrap()[key] = value.clone();
    }
    object
}

fn launcher(vm: &str, node: &str) -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": format!("virt-launcher-{vm}-x"), "labels": {"kubevirt.io/created-by": format!("uid-{vm}")}},
        "spec": {
            "nodeName": node, "priority": 7,
            "containers": [{"name": "compute", "resources": {"requests": {"cpu": "400m", "memory": "8500Mi"}}}],
        },
        "status": {"phase": "Running"},
    })
}

fn found<'a>(objects: &'a Objects, name: &str) -> &'a FoundVm {
    objects.vms.iter().find(|vm| vm.name == name).unwrap()
}

/// The nodes that the simulator lets a VM run on.
fn allowed(objects: &Objects, vm: &str) -> Vec<String> {
    let group = found(objects, vm).vm.group.clone();
    let nodes: Vec<_> = objects.nodes.iter().map(|node| node.group.clone()).collect();
    let fits = |name: &str| {
        let only = nodes.iter().filter(|node| node.name == name).cloned().collect();
        let model = ClusterModel::new(&Scenario::new("t", only, vec![group.clone()])).unwrap();
        model.vm(0).node.is_some()
    };
    nodes.iter().map(|node| node.name.clone()).filter(|name| fits(name)).collect()
}

#[test]
fn nodes_have_all_their_cores_their_allocatable_memory_and_the_taints_that_last() {
    let mut collector = Collector::new(Kind::Instance);
    let taints = json!([
        {"key": "gpu", "value": "a", "effect": "NoSchedule"},
        {"key": "slow", "effect": "PreferNoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"},
        {"key": "nodeutilization.descheduler.openshift.io/overutilized", "effect": "PreferNoSchedule"},
    ]);
    let mut worker = node("worker", json!({"zone": "a"}), taints);
    worker["spec"]["unschedulable"] = json!(true);
    collector.node(&worker, false);
    let control = json!({"node-role.kubernetes.io/control-plane": ""});
    collector.node(
        &node("master", control, json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}])),
        false,
    );
    collector.node(&json!({"metadata": {"name": "new"}}), false);
    let objects = collector.finish();
    let [worker] = &objects.nodes[..] else { panic!("{:?}", objects.nodes) };
    assert_eq!((worker.group.cores, worker.group.memory, worker.group.max_vms), (16.0, Bytes(60 << 30), 110));
    assert!(worker.group.cordoned && worker.addresses == ["10.0.0.1"]);
    let taints: Vec<_> = worker.group.taints.iter().map(|taint| (taint.key.as_str(), taint.effect)).collect();
    assert_eq!(taints, [("gpu", Effect::NoSchedule), ("slow", Effect::PreferNoSchedule)]);
    assert_eq!(
        objects.notes,
        ["1 nodes of the control plane are left out", "1 nodes that do not say how large they are are left out",]
    );
}

#[test]
fn vms_have_size_requests_and_the_cause_that_keeps_them_from_migrating() {
    let mut collector = Collector::new(Kind::Instance);
    collector.node(&node("n1", json!({}), json!([])), false);
    collector.node(&node("n2", json!({}), json!([])), false);
    let disks = json!([{"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable"}]);
    collector.instance(&instance("db", "n1", json!({})));
    collector.instance(&instance("pinned", "n1", json!({"/status/conditions": disks})));
    collector.instance(&instance("new", "", json!({"/status/conditions": []})));
    collector.instance(&instance("over", "n1", json!({"/status/phase": "Succeeded"})));
    collector.pod(&launcher("db", "n1"), false);
    // The target of a migration, and a pod that is no VM.
    collector.pod(&launcher("pinned", "n2"), false);
    let mut other = launcher("nobody", "n2");
    other["metadata"]["labels"] = json!({});
    collector.pod(&other, false);
    let objects = collector.finish();
    let db = found(&objects, "db");
    assert_eq!((db.vm.group.cores, db.vm.group.memory, db.vm.node), (4.0, Bytes(8 << 30), Some(0)));
    assert_eq!((db.vm.group.requests.cpu, db.vm.group.requests.memory), (Some(0.4), Some(Bytes(8500 << 20))));
    assert_eq!(
        (db.vm.group.priority, db.vm.group.migratable, db.pod.as_deref()),
        (7, true, Some("virt-launcher-db-x"))
    );
    let cause = |name: &str| found(&objects, name).vm.group.not_migratable_because.clone();
    assert_eq!(cause("pinned").as_deref(), Some("DisksNotLiveMigratable"));
    assert_eq!(cause("new").as_deref(), Some("LiveMigratable is not known yet"));
    assert_eq!((found(&objects, "new").vm.node, found(&objects, "pinned").pod.clone()), (None, None));
    assert_eq!(objects.nodes[1].group.reserved.memory, Some(Bytes(8500 << 20)));
    assert_eq!((objects.nodes[1].group.max_vms, objects.vms.len()), (109, 3));
}

#[test]
fn constraints_allow_the_nodes_that_the_scheduler_allows() {
    let mut collector = Collector::new(Kind::Instance);
    collector.node(&node("a", json!({"zone": "a"}), json!([])), false);
    collector.node(&node("b", json!({"zone": "b"}), json!([])), false);
    collector
        .node(&node("gpu", json!({"zone": "b"}), json!([{"key": "gpu", "value": "x", "effect": "NoSchedule"}])), false);
    let affinity = |operator: &str| {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": operator, "values": ["a"]}]}]}}})
    };
    let tolerates = |value: &str| json!([{"key": "gpu", "value": value, "effect": "NoSchedule"}]);
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}]}});
    for (name, more) in [
        ("any", json!({})),
        ("selected", json!({"/spec/nodeSelector": {"zone": "b"}})),
        ("not-a", json!({"/spec/affinity": affinity("NotIn"), "/spec/tolerations": tolerates("x")})),
        ("only-a", json!({"/spec/affinity": affinity("In")})),
        ("wrong-value", json!({"/spec/tolerations": tolerates("y")})),
        ("apart-1", json!({"/spec/affinity": apart})),
        ("apart-2", json!({"/spec/affinity": apart})),
    ] {
        collector.instance(&instance(name, "a", more));
    }
    let objects = collector.finish();
    for (name, expected) in [
        ("any", vec!["a", "b"]),
        ("selected", vec!["b"]),
        ("not-a", vec!["b", "gpu"]),
        ("only-a", vec!["a"]),
        ("wrong-value", vec!["a", "b"]),
        ("apart-1", vec!["a", "b"]),
    ] {
        assert_eq!(allowed(&objects, name), expected, "{name}");
    }
    let word = |name: &str| found(&objects, name).vm.group.affinity.apart.clone();
    assert!(word("apart-1").is_some() && word("apart-1") == word("apart-2") && word("any").is_none());
    assert!(objects.notes.iter().any(|note| note.contains("depend on other pods")), "{:?}", objects.notes);
}

#[test]
fn names_that_are_used_twice_have_their_namespace() {
    let mut collector = Collector::new(Kind::Instance);
    collector.node(&node("n", json!({}), json!([])), false);
    collector.instance(&instance("web", "n", json!({"/metadata/namespace": "one"})));
    collector.instance(&instance("web", "n", json!({"/metadata/namespace": "two"})));
    collector.instance(&instance("db", "n", json!({})));
    let names: Vec<String> = collector.finish().vms.into_iter().map(|vm| vm.vm.group.name).collect();
    assert_eq!(names, ["one.web", "two.web", "db"]);
}

#[test]
fn pods_stand_for_vms_where_they_are_selected() {
    let mut collector = Collector::new(Kind::Pod);
    collector.node(&node("n", json!({}), json!([])), false);
    collector.pod(&launcher("guest", "n"), true);
    collector.pod(&json!({"metadata": {"namespace": "shop", "name": "tiny"}, "spec": {"containers": [{}]}}), true);
    collector.pod(&launcher("guest", "n"), false);
    let objects = collector.finish();
    let [guest] = &objects.vms[..] else { panic!("{:?}", objects.vms) };
    assert_eq!((guest.vm.group.cores, guest.vm.group.memory), (0.4, Bytes(8500 << 20)));
    assert_eq!(objects.nodes[0].group.reserved.memory, None, "its room is counted once");
    assert_eq!(objects.notes, ["1 pods without a size: they neither request nor limit CPU and memory are left out"]);
}

/// A client of a server that knows these two answers of metrics.k8s.io, or nothing.
fn api(answers: Option<[Value; 2]>) -> Client {
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let known =
            answers.as_ref().map(|[nodes, pods]| if request.uri().path().ends_with("/nodes") { nodes } else { pods });
        let absent =
            json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"});
        let (code, body) = known.map_or((404, &absent), |answer| (200, answer));
        let response = http::Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        async move { response }
    });
    Client::new(service, "default")
}

async fn snapshot(answers: Option<[Value; 2]>) -> (Scenario, Report) {
    let mut collector = Collector::new(Kind::Instance);
    collector.node(&node("n1", json!({}), json!([])), false);
    collector.instance(&instance("db", "n1", json!({})));
    collector.instance(&instance("silent", "n1", json!({})));
    collector.pod(&launcher("db", "n1"), false);
    let request = Request {
        name: "t".into(),
        span: Span(604_800),
        step: Span(300),
        scenario_step: Span(60),
        order: Order::Forecast,
        anonymize: None,
        time_scale: 1.0,
    };
    let client = api(answers);
    let imported = import(collector.finish(), Loads::Snapshot(&client), &request, Vec::new(), |_, _| {}).await;
    let (text, report) = imported.unwrap();
    (parse(&String::from_utf8(text).unwrap()).unwrap().remove(0), report)
}

/// Answers as metrics-server gives them.
#[tokio::test]
async fn a_snapshot_has_what_metrics_server_says_now() {
    let nodes = json!({"kind": "NodeMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [
        {"metadata": {"name": "n1"}, "timestamp": "2026-01-01T00:00:00Z", "window": "10s",
         "usage": {"cpu": "4000000000n", "memory": "31457280Ki"}}]});
    let pods = json!({"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "items": [
        {"metadata": {"name": "virt-launcher-db-x", "namespace": "shop"}, "timestamp": "2026-01-01T00:00:00Z", "window": "15s",
         "containers": [{"name": "compute", "usage": {"cpu": "1990m", "memory": "4Gi"}},
                        {"name": "guest-console-log", "usage": {"cpu": "10000000n", "memory": "0"}}]},
        {"metadata": {"name": "other", "namespace": "shop"}, "containers": [{"name": "c", "usage": {"cpu": "0", "memory": "1Gi"}}]}]});
    let (scenario, report) = snapshot(Some([nodes, pods])).await;
    let load = |name: &str| {
        let vm = scenario.vms.iter().find(|vm| vm.name == name).unwrap();
        (vm.cpu.clone(), vm.memory_use.clone())
    };
    assert_eq!(load("db"), (Load::Constant(0.5), Load::Constant(0.5)), "two of four cores, four of eight GiB");
    assert_eq!(
        load("silent"),
        (Load::Constant(0.5), Load::Constant(1.0)),
        "what is left of the node, and no more than all"
    );
    let own = &scenario.nodes[0].own_load;
    assert_eq!((&own.cpu, &own.memory), (&Load::Constant(0.0), &Load::Constant(0.3)), "(30 - 4 - 8) of 60 GiB");
    let origins: Vec<Origin> = report.metrics.iter().map(|found| found.origin).collect();
    assert_eq!(origins, [Origin::Found, Origin::Found, Origin::Found, Origin::Found, Origin::Guessed, Origin::Guessed]);
    assert_eq!(report.summary.guessed, [1, 1]);
}

#[tokio::test]
async fn without_any_metrics_the_report_says_what_is_assumed() {
    let (scenario, report) = snapshot(None).await;
    assert!(scenario.vms.iter().all(|vm| vm.cpu == Load::Constant(0.5) && vm.memory_use == Load::Constant(0.8)));
    assert_eq!((report.summary.assumed, report.summary.nodes_without_use), (2, 1));
    let text = lab::import::text(&report, None);
    assert!(
        text.contains(
            "CPU use of VMs            missing       -  half of the cores and 80 % of the memory are assumed"
        ),
        "{text}"
    );
    assert!(text.contains("nothing is known of 2 VMs"), "{text}");
}
