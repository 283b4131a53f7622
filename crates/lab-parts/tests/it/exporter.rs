//! The exporter on a real API server: the page follows the objects, and a scrape causes no requests.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use api::{VirtualMachine, crd};
use devcluster::{Cluster, Component, Identity};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use lab_parts::{
    exporter::{Exporter, ExporterSettings},
    launcher,
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::platform::blank;

const USER: &str = "exporter-user";

async fn get(address: SocketAddr, path: &'static str) -> (u16, String) {
    ask(address, "GET", path).await
}

async fn ask(address: SocketAddr, method: &'static str, path: &'static str) -> (u16, String) {
    let ask = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let code = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (code, answer)
    };
    tokio::task::spawn_blocking(ask).await.unwrap()
}

async fn shows(address: SocketAddr, line: &str) {
    let found = async || {
        let (code, text) = get(address, "/metrics").await;
        (code == 200 && text.lines().any(|found| found == line)).then_some(())
    };
    eventually(format!("{line} on the page"), found).await;
}

async fn create<K>(api: &Api<K>, object: Value) -> K
where
    K: Clone + serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap()
}

async fn create_node(client: &Client, name: &str, cores: u32) {
    let nodes: Api<Node> = Api::all(client.clone());
    create(&nodes, json!({"metadata": {"name": name, "labels": {"type": "kwok"}}})).await;
    let size = json!({"cpu": cores.to_string(), "memory": "64Gi", "pods": "110"});
    let status = Patch::Merge(json!({"status": {"capacity": size, "allocatable": size}}));
    nodes.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

async fn create_pod(client: &Client, vm: &str, name: &str, node: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let object = json!({
        "metadata": {
            "name": name,
            "labels": {launcher::DOMAIN: vm, launcher::APP.0: launcher::APP.1},
            "annotations": {
                launcher::CPU_CORES: "8", launcher::MEMORY_BYTES: "1073741824",
                launcher::CPU_UTILIZATION: "0.5", launcher::MEMORY_UTILIZATION: "0.5",
            },
        },
        "spec": {"nodeName": node, "containers": [{"name": "compute", "image": "none"}]},
    });
    create(&pods, object).await;
    let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
    pods.patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

async fn name_pod(client: &Client, vm: &str, pod: Option<&str>) {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let status = Patch::Merge(json!({"status": {"podName": pod}}));
    let write = async || vms.patch_status(vm, &PatchParams::default(), &status).await.ok();
    eventually(format!("VM {vm} names {pod:?}"), write).await;
}

async fn start(cluster: &Cluster) -> Exporter {
    let client = cluster.access().client_for(&Identity::user(USER, &["system:masters"])).await.unwrap();
    let settings = ExporterSettings { address: ([127, 0, 0, 1], 0).into(), ..ExporterSettings::default() };
    Exporter::start(client, settings).await.unwrap()
}

fn use_of(node: &str, share: &str) -> String {
    format!("node_cpu_usage_ratio{{node=\"{node}\",instance=\"{node}\"}} {share}")
}

/// Holds L3 (posted scenario) and L51 (slow scrape).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_follows_nodes_pods_and_vms_and_a_scrape_asks_nobody() {
    let (cluster, client) = blank(Cluster::builder()).await;
    // VirtualMachine is not served yet. The page says so until the definition is installed.
    let exporter = start(&cluster).await;
    let address = exporter.address();
    let (code, text) = get(address, "/metrics").await;
    assert_eq!(code, 503, "{text}");
    assert!(get(address, "/health").await.1.contains("\"status\":\"starting\""));
    cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();

    create_node(&client, "big", 16).await;
    create_node(&client, "small", 8).await;
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let vm = json!({"apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a"}, "spec": {"resources": {"cpu": "8", "memory": "1Gi"}}});
    create(&vms, vm).await;
    create_pod(&client, "a", "virt-launcher-a-1", "big").await;
    name_pod(&client, "a", Some("virt-launcher-a-1")).await;
    shows(address, &use_of("big", "0.25")).await;
    shows(address, &use_of("small", "0")).await;
    let (code, health) = get(address, "/health").await;
    assert!(code == 200 && health.contains("\"nodes\":2") && health.contains("\"vms\":1"), "{health}");

    // A target that runs does not count before the hand-over.
    create_pod(&client, "a", "virt-launcher-a-2", "small").await;
    let mark = cluster.audit().position(&client).await.unwrap();
    for _ in 0..20 {
        let (code, text) = get(address, "/metrics").await;
        assert_eq!(code, 200);
        assert!(text.contains(&use_of("big", "0.25")) && text.contains(&use_of("small", "0")), "{text}");
    }
    let requests = cluster.audit().since(mark, &client).await.unwrap();
    let asked: Vec<_> = requests.iter().filter(|request| request.user == USER && request.verb != "watch").collect();
    assert!(asked.is_empty(), "a scrape asked: {asked:?}");
    name_pod(&client, "a", Some("virt-launcher-a-2")).await;
    shows(address, &use_of("small", "0.5")).await;
    shows(address, &use_of("big", "0")).await;

    // Paths of the reference's exporter are refused, and do not change the metrics.
    assert_eq!(ask(address, "POST", "/scenario").await.0, 404);
    assert_eq!(ask(address, "POST", "/metrics").await.0, 405);
    shows(address, &use_of("small", "0.5")).await;

    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let busy = Patch::Merge(json!({"metadata": {"annotations": {launcher::CPU_UTILIZATION: "1"}}}));
    pods.patch("virt-launcher-a-2", &PatchParams::default(), &busy).await.unwrap();
    shows(address, &use_of("small", "1")).await;

    // The page shows the last values while the API server is down, and follows again after its restart.
    cluster.kill(Component::ApiServer).unwrap();
    assert_eq!(get(address, "/metrics").await.0, 200);
    cluster.start(Component::ApiServer).await.unwrap();
    name_pod(&client, "a", None).await;
    shows(address, &use_of("small", "0")).await;
}
