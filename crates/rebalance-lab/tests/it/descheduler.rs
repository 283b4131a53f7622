//! The stand-in for the descheduler operator and the soft-tainter, each as a process of its own.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::Duration,
};

use devcluster::{Cluster, Identity, RunningProgram};
use k8s_openapi::{
    api::core::v1::{Namespace, Node},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
};
use process::is_alive;
use serde_json::{Value, json};
use testkit::eventually;

const NAMESPACE: &str = "openshift-kube-descheduler-operator";

async fn start(cluster: &Cluster, name: &'static str, more: &[&str]) -> RunningProgram {
    let args = [&[name, "--host=127.0.0.1", "--port=0", "--prometheus=http://127.0.0.1:9"], more].concat();
    let program = Path::new(env!("CARGO_BIN_EXE_rebalance-lab"));
    cluster.access().run(&Identity::user(name, &["system:masters"]), name, program, &args).await.unwrap()
}

/// Waits until a part is healthy and returns its `/health` page.
async fn health(part: &RunningProgram) -> Value {
    let ask = async || {
        let log = std::fs::read_to_string(part.log()).ok()?;
        let address = log.split_once("http://")?.1.split_once('/')?.0.to_owned();
        let mut stream = TcpStream::connect(address).ok()?;
        write!(stream, "GET /health HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        (body["status"] == "healthy").then_some(body)
    };
    eventually("the part is well", ask).await
}

async fn descheduler(part: &RunningProgram) -> u32 {
    let runs = async || {
        let descheduler = health(part).await["descheduler"].clone();
        descheduler["pid"].as_u64().filter(|_| descheduler["ready"] == true)
    };
    eventually("a descheduler runs", runs).await as u32
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn descheduler_operator_and_soft_tainter_run_as_processes_and_leave_no_descheduler_behind() {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    let client = cluster.access().client().await.unwrap();
    let crd = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd/third-party/kubedescheduler-5.1.yaml");
    let crd: CustomResourceDefinition = serde_saphyr::from_str(&std::fs::read_to_string(crd).unwrap()).unwrap();
    cluster.access().install_crds(&[crd]).await.unwrap();
    let create = |object: Value| serde_json::from_value::<DynamicObject>(object).unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let labels: BTreeMap<_, _> = [("openshift.io/cluster-monitoring", "true")].into();
    let namespace = json!({"metadata": {"name": NAMESPACE, "labels": labels}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    let node = json!({"metadata": {"name": "n1", "labels": {"kubevirt.io/schedulable": "true"}}});
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
    let objects: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &ApiResource::from_gvk(&kind));
    let object = json!({
        "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "metadata": {"name": "cluster"},
        "spec": {"mode": "Automatic", "deschedulingIntervalSeconds": 60, "profiles": ["KubeVirtRelieveAndMigrate"]},
    });
    objects.create(&PostParams::default(), &create(object)).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let folder = format!("--folder={}", folder.path().display());
    let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
    let program = format!("--descheduler={}", program.display());
    let options = ["--time-scale=20", folder.as_str(), program.as_str()];
    let first = start(&cluster, "descheduler-operator", &options).await;
    let pid = descheduler(&first).await;
    first.kill();
    eventually("the descheduler goes with its operator", async || (!is_alive(pid)).then_some(())).await;

    let second = start(&cluster, "descheduler-operator", &options).await;
    let pid = descheduler(&second).await;
    let ended = second.stop(Duration::from_secs(60)).await.unwrap();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", second.log_tail());
    assert!(!is_alive(pid));

    let tainter = start(&cluster, "soft-tainter", &["--time-scale=20"]).await;
    let told = async || health(&tainter).await["problem"].as_str().map(str::to_owned);
    let problem = eventually("it tells that nobody answers", told).await;
    assert!(problem.contains("http://127.0.0.1:9"), "{problem}");
    let ended = tainter.stop(Duration::from_secs(60)).await.unwrap();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", tainter.log_tail());
}
