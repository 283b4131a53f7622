//! What `virt-advisor impact` costs on a large cluster, with everything that it reads: requests, time and memory.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use devcluster::Identity;
use process::Memory;
use serde_json::{Value, json};

use crate::{bench_cluster, bench_operator, bench_plan::grow};

const PROFILE: &str = "load-aware-rebalancing";
const NODES: usize = 500;
const GUESTS: usize = 10_000;
const PODS: usize = 15_000;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(crate) async fn run() -> anyhow::Result<()> {
    println!("Starting a control plane with {NODES} nodes, {GUESTS} guests and {PODS} other pods");
    let program = bench_operator::build()?;
    let cluster = bench_cluster::start().await?;
    let kubectl = async |args: &[&str]| bench_cluster::kubectl(&cluster, args).await;
    kubectl(&["create", "namespace", "guests"]).await?;
    // No controller is here to create it.
    kubectl(&["-n", "guests", "create", "serviceaccount", "default"]).await?;
    let client = kube_io::connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    let kubevirt = "/apis/kubevirt.io/v1/namespaces/guests";
    let pods = "/api/v1/namespaces/guests/pods";
    grow(&client, "/api/v1/nodes", 0..NODES, node).await?;
    grow(&client, &format!("{kubevirt}/virtualmachines"), 0..GUESTS, machine).await?;
    grow(&client, &format!("{kubevirt}/virtualmachineinstances"), 0..GUESTS, instance).await?;
    grow(&client, pods, 0..GUESTS, launcher).await?;
    grow(&client, pods, 0..PODS, pod).await?;

    let _operator = cluster.access().run(&Identity::Admin, "virt-advisor", &program, &["operator"]).await?;
    kubectl(&["wait", "--for=create", "vpcfg", PROFILE, "--timeout=60s"]).await?;
    kubectl(&["wait", "--for=jsonpath={.status.phase}=Ignored", "vpcfg", PROFILE, "--timeout=60s"]).await?;
    kubectl(&["patch", "vpcfg", PROFILE, "--type=merge", "-p", r#"{"spec":{"action":"DryRun"}}"#]).await?;
    kubectl(&["wait", "--for=jsonpath={.status.phase}=ReviewRequired", "vpcfg", PROFILE, "--timeout=120s"]).await?;

    let kubeconfig = cluster.access().kubeconfig(&Identity::Admin).await?;
    let mut command = Command::new(&program);
    command.args(["impact", PROFILE, "-o", "json"]).env("KUBECONFIG", kubeconfig);
    let (report, took, memory) = measured(command)?;
    let (read, totals) = (&report["read"], &report["plans"][0]["impact"]["totals"]);
    println!("{} guests on {} nodes that reboot", totals["guests"], totals["nodes"]);
    println!(
        "{} objects in {} requests, read in {} ms; {} ms and {} MiB in all",
        read["objects"],
        read["requests"],
        read["milliseconds"],
        took.as_millis(),
        memory >> 20
    );
    Ok(())
}

/// What a command prints, how long it takes, and the most memory that it has, in bytes.
fn measured(mut command: Command) -> anyhow::Result<(Value, Duration, u64)> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("report.json");
    let start = Instant::now();
    let mut child = command.stdout(Stdio::from(std::fs::File::create(&output)?)).spawn()?;
    let mut memory = 0;
    let ended = loop {
        memory = Memory::read(child.id()).ok().and_then(|memory| memory.peak).unwrap_or(memory);
        match child.try_wait()? {
            Some(ended) => break ended,
            None => std::thread::sleep(POLL_INTERVAL),
        }
    };
    ensure!(ended.success(), "virt-advisor impact: {ended}");
    let report = std::fs::read_to_string(&output)?;
    Ok((serde_json::from_str(&report).context("the report")?, start.elapsed(), memory))
}

fn node(number: usize) -> Value {
    let zone = format!("zone-{}", number % 3);
    let labels = json!({"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": zone});
    let room = json!({"cpu": "128", "memory": "512Gi", "pods": "500"});
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": format!("worker-{number}"), "labels": labels},
        "status": {
            "allocatable": room, "capacity": room,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}],
        },
    })
}

fn on(number: usize) -> String {
    format!("worker-{}", number % NODES)
}

fn machine(number: usize) -> Value {
    let template = json!({"spec": {"domain": {"devices": {}, "memory": {"guest": "8Gi"}}}});
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": {"name": format!("vm-{number}"), "namespace": "guests"},
        "spec": {"runStrategy": "Always", "template": template},
    })
}

fn instance(number: usize) -> Value {
    let strategy = ["LiveMigrate", "LiveMigrate", "LiveMigrate", "LiveMigrateIfPossible", "None"][number % 5];
    let migratable = if number.is_multiple_of(50) { "False" } else { "True" };
    let owner = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": format!("vm-{number}"), "controller": true,
        "uid": "00000000-0000-4000-8000-000000000000",
    });
    json!({
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
        "metadata": {"name": format!("vm-{number}"), "namespace": "guests", "ownerReferences": [owner]},
        "spec": {"evictionStrategy": strategy, "domain": {"devices": {}, "memory": {"guest": "8Gi"}}},
        "status": {
            "phase": "Running", "nodeName": on(number),
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "LiveMigratable", "status": migratable}],
        },
    })
}

fn launcher(number: usize) -> Value {
    let name = format!("vm-{number}");
    let labels = json!({"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": name});
    let annotations = json!({"kubevirt.io/domain": name});
    of_node(
        json!({"name": format!("virt-launcher-{name}"), "labels": labels, "annotations": annotations}),
        number,
        "8Gi",
    )
}

fn pod(number: usize) -> Value {
    of_node(
        json!({"name": format!("pod-{number}"), "labels": {"app": format!("app-{}", number % 1500)}}),
        number,
        "256Mi",
    )
}

fn of_node(metadata: Value, number: usize, memory: &str) -> Value {
    let requests = json!({"cpu": "100m", "memory": memory});
    let container = json!({"name": "main", "image": "x", "resources": {"requests": requests}});
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"nodeName": on(number), "containers": [container]},
    })
}
