//! Parts of the lab, each as a process of its own, on a real API server.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use api::{VirtualMachine, crd, virtual_machine::Phase};
use devcluster::{Cluster, Identity, Kwok, RunningProgram};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use lab::kwok;
use serde_json::json;
use testkit::eventually;

const GRACE: Duration = Duration::from_secs(60);

/// A running part, and the address that it logs.
pub(crate) struct Part {
    process: RunningProgram,
    address: String,
}

impl Part {
    async fn start(cluster: &Cluster, name: &'static str, more: &[&str]) -> Part {
        Part::start_at(cluster, name, 0, more).await
    }

    pub(crate) async fn start_at(cluster: &Cluster, name: &'static str, port: u16, more: &[&str]) -> Part {
        let port = format!("--port={port}");
        let args = [&[name, "--host=127.0.0.1", &port], more].concat();
        let program = Path::new(env!("CARGO_BIN_EXE_rebalance-lab"));
        let who = Identity::user(name, &["system:masters"]);
        let process = cluster.access().run(&who, name, program, &args).await.unwrap();
        let says = async || {
            let log = std::fs::read_to_string(process.log()).ok()?;
            let (_, rest) = log.split_once("://")?;
            rest.split_once('/').map(|(address, _)| address.to_owned())
        };
        let address = eventually("the part says where it listens", says).await;
        Part { process, address }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub(crate) async fn shows(&self, path: &str, text: &str) {
        eventually(text, async || self.get(path).contains(text).then_some(())).await;
    }

    pub(crate) fn kill(&self) {
        self.process.kill();
    }

    pub(crate) async fn stop(self) {
        let ended = self.process.stop(GRACE).await.unwrap();
        assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", self.process.log_tail());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vm_controller_and_exporter_run_as_processes_and_go_on_when_they_were_killed_during_a_migration() {
    let stages = Kwok { stages: kwok::stages().to_owned() };
    let cluster = Cluster::builder().scheduler().controllers(&kwok::CONTROLLERS).kwok(stages).start().await;
    let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
    cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
    let client = cluster.access().client().await.unwrap();
    let start = cluster.audit().position(&client).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    for name in ["n1", "n2"] {
        nodes.create(&PostParams::default(), &kwok::node(name, 4, 8 << 30)).await.unwrap();
    }
    // The migration does not end, because the VM writes 0.8 of 1 Gbit/s.
    let controller = Part::start(&cluster, "vm-controller", &["--bandwidth=1Gbps"]).await;
    let exporter = Part::start(&cluster, "exporter", &[]).await;

    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    let vm = json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine", "metadata": {"name": "a"},
        "spec": {"resources": {"cpu": "2", "memory": "2Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}},
    });
    vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.unwrap();
    let runs_on = async || {
        let status = vms.get("a").await.unwrap().status?;
        (status.phase == Some(Phase::Running) && status.evacuation_node_name.is_none()).then_some(status.node_name?)
    };
    let from = eventually("the VM runs", runs_on).await;
    controller.shows("/health", r#""status":"healthy","vms":1"#).await;
    exporter.shows("/health", r#""status":"healthy""#).await;
    let used = |node: &str| format!("node_cpu_usage_ratio{{node=\"{node}\",instance=\"{node}\"}} 0.25\n");
    exporter.shows("/metrics", &used(&from)).await;

    let request = Patch::Merge(json!({"status": {"evacuationNodeName": from}}));
    vms.patch_status("a", &PatchParams::default(), &request).await.unwrap();
    controller.shows("/health", r#""migrations":1"#).await;
    let both_run = async || {
        let pods = pods.list(&ListParams::default()).await.unwrap().items;
        let phases = pods.iter().filter_map(|pod| pod.status.as_ref()?.phase.as_deref());
        (phases.filter(|phase| *phase == "Running").count() == 2).then_some(())
    };
    eventually("source and target run", both_run).await;
    controller.kill();
    exporter.kill();
    let controller = Part::start(&cluster, "vm-controller", &["--time-scale=20", "--bandwidth=25Gbps"]).await;
    let exporter = Part::start(&cluster, "exporter", &[]).await;
    let moved = async || runs_on().await.filter(|node| *node != from);
    let to = eventually("the VM moves", moved).await;
    exporter.shows("/metrics", &used(&to)).await;

    vms.delete("a", &DeleteParams::default()).await.unwrap();
    controller.shows("/health", r#""vms":0"#).await;
    exporter.shows("/metrics", &format!("node_vm_count{{node=\"{to}\",instance=\"{to}\"}} 0\n")).await;
    controller.stop().await;
    exporter.stop().await;

    let requests = cluster.audit().since(start, &vms.clone().into_client()).await.unwrap();
    for (user, component) in [("vm-controller", "vm-controller"), ("exporter", "metrics-exporter")] {
        let by = requests.iter().filter(|request| request.user == user);
        let agents: BTreeSet<&str> = by.map(|request| &*request.user_agent).collect();
        assert_eq!(agents.into_iter().collect::<Vec<_>>(), [api::user_agent(component)], "of every request");
    }
}

#[test]
fn a_part_without_a_cluster_says_what_to_do() {
    for part in ["vm-controller", "exporter"] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_rebalance-lab"))
            .args([part, "--port=0"])
            .env("KUBECONFIG", "/nowhere/kubeconfig")
            .env_remove("KUBERNETES_SERVICE_HOST")
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(
            text.ends_with("error: there is no cluster to look at: set KUBECONFIG to a kubeconfig file\n"),
            "{text}"
        );
    }
}
