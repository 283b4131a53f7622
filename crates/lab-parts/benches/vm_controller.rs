//! What the VM controller costs on a real API server: `cargo bench -p lab-parts --bench vm_controller [-- 100 1000 5000]`.
//! For each number of VMs: how long it takes until all run; then, with a controller that is a process of its own, how long
//! it takes to start, what it asks for, what it asks for at rest, and its memory; then how fast VMs move.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::{
    path::Path,
    time::{Duration, Instant},
};

use api::{VirtualMachine, crd, virtual_machine::Phase};
use devcluster::{Cluster, Identity, Kwok, RunningProgram};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use lab::kwok;
use lab_parts::vm::{self, VmController, VmControllerSettings};
use serde_json::json;
use testkit::within;

const USER: &str = "vm-controller-user";
/// The argument that makes this program a VM controller.
const AS_CONTROLLER: &str = "as-controller";
const PER_NODE: usize = 100;
const AT_ONCE: usize = 32;
const REST: Duration = Duration::from_secs(20);
const MOVES: usize = 50;
const TIMEOUT: Duration = Duration::from_secs(1800);
const BREATHER: Duration = Duration::from_millis(200);

fn settings() -> VmControllerSettings {
    // Copying takes next to no time: what is measured is the controller.
    VmControllerSettings { time_scale: 1000.0, ..VmControllerSettings::default() }
}

async fn create_vm(vms: &Api<VirtualMachine>, number: usize) {
    let vm = json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": format!("vm-{number}")},
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}},
    });
    vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.unwrap();
}

async fn counted(vms: &Api<VirtualMachine>, is: impl Fn(&VirtualMachine) -> bool) -> usize {
    // Who asks too often is measured, too.
    tokio::time::sleep(BREATHER).await;
    let vms = vms.list(&ListParams::default()).await.unwrap();
    vms.items.iter().filter(|vm| is(vm)).count()
}

fn runs(vm: &VirtualMachine) -> bool {
    let status = vm.status.as_ref();
    let node = status.and_then(|status| status.node_name.as_ref());
    let label = vm.metadata.labels.as_ref().and_then(|labels| labels.get(lab_parts::launcher::NODE_NAME));
    status.and_then(|status| status.phase) == Some(Phase::Running) && label == node
}

fn has_moved(vm: &VirtualMachine) -> bool {
    let conditions = vm.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|condition| condition.type_ == "Migrated" && condition.status == "True")
}

async fn start_process(cluster: &Cluster) -> RunningProgram {
    let who = Identity::user(USER, &["system:masters"]);
    let program = std::env::current_exe().unwrap();
    cluster.access().run(&who, "vm-controller", Path::new(&program), &[AS_CONTROLLER]).await.unwrap()
}

async fn asked(cluster: &Cluster, client: &Client, mark: devcluster::LogPosition) -> Vec<String> {
    let requests = cluster.audit().since(mark, client).await.unwrap();
    requests.into_iter().filter(|request| request.user == USER).map(|request| request.verb).collect()
}

async fn measure(count: usize) {
    let stages = Kwok { stages: kwok::stages().to_owned() };
    let cluster = Cluster::builder().scheduler().controllers(&kwok::CONTROLLERS).kwok(stages).start().await;
    let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
    cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
    let client = cluster.access().client().await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    // One to spare, so that there is room to move.
    for number in 0..count.div_ceil(PER_NODE) + 1 {
        let node = kwok::node(&format!("n{number}"), 64, 256 << 30);
        nodes.create(&PostParams::default(), &node).await.unwrap();
    }
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let start = Instant::now();
    let first = VmController::start(cluster.access().client().await.unwrap(), settings());
    stream::iter(0..count).for_each_concurrent(AT_ONCE, |number| create_vm(&vms, number)).await;
    within(TIMEOUT, "all run", async || (counted(&vms, runs).await == count).then_some(())).await;
    let all_run = start.elapsed();
    drop(first);

    let mark = cluster.audit().position(&client).await.unwrap();
    let start = Instant::now();
    let controller = start_process(&cluster).await;
    let ready = async || std::fs::read_to_string(controller.log()).ok()?.contains("ready").then_some(());
    within(TIMEOUT, "the controller is ready", ready).await;
    let started = start.elapsed();
    let at_start = asked(&cluster, &client, mark).await;
    let mark = cluster.audit().position(&client).await.unwrap();
    tokio::time::sleep(REST).await;
    let at_rest = asked(&cluster, &client, mark).await;
    let memory = controller.resident_memory().unwrap() as f64 / f64::from(1 << 20);

    let start = Instant::now();
    let mark_vm = async |number: usize| {
        let name = format!("vm-{number}");
        let node = vms.get(&name).await.unwrap().status.and_then(|status| status.node_name);
        let patch = Patch::Merge(json!({"status": {"evacuationNodeName": node}}));
        vms.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    };
    stream::iter(0..MOVES).for_each_concurrent(AT_ONCE, mark_vm).await;
    within(TIMEOUT, "all have moved", async || (counted(&vms, has_moved).await == MOVES).then_some(())).await;
    let moved = start.elapsed();

    let lists = at_start.iter().filter(|verb| *verb == "list").count();
    let watches = at_start.iter().filter(|verb| *verb == "watch").count();
    println!(
        "{count:>6} VMs: all run after {:.1} s; a controller that starts is ready after {:.2} s with {lists} lists, \
         {watches} watches and {} other requests, then asks {} times in {} s and holds {memory:.1} MiB; \
         {:.1} migrations per second",
        all_run.as_secs_f64(),
        started.as_secs_f64(),
        at_start.len() - lists - watches,
        at_rest.len(),
        REST.as_secs(),
        MOVES as f64 / moved.as_secs_f64(),
    );
}

async fn be_controller() {
    let mut config = Config::infer().await.unwrap();
    config.default_retry = false;
    let controller = VmController::start(Client::try_from(config).unwrap(), settings());
    controller.state().wait_for(|state: &vm::State| state.is_ready).await.unwrap();
    println!("ready");
    std::future::pending::<()>().await;
}

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    if args.iter().any(|arg| arg == AS_CONTROLLER) {
        return runtime.block_on(be_controller());
    }
    let counts: Vec<usize> = args.iter().map(|count| count.parse().unwrap()).collect();
    let counts = if counts.is_empty() { vec![100, 1_000, 5_000] } else { counts };
    for count in counts {
        runtime.block_on(measure(count));
    }
}
