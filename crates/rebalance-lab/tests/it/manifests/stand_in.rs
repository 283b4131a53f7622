//! The stand-in for the descheduler operator, as the manifests run it.

use std::fs;

use devcluster::Cluster;
use serde_json::json;
use testkit::eventually;

use super::{
    PROMETHEUS,
    installation::{Installation, account},
    objects, one, root,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stand_in_of_the_manifests_runs_a_descheduler_with_the_rights_of_its_account() {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    let mut installation = Installation::new(cluster).await;
    let crd = root().join("config/crd/third-party/kubedescheduler-5.1.yaml");
    installation.kubectl(&["apply", "--server-side", "-f", crd.to_str().unwrap()]).await;
    installation
        .kubectl(&[
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd/kubedeschedulers.operator.openshift.io",
        ])
        .await;
    let file = "descheduler-operator.yaml";
    installation.apply(&objects(file)).await;
    let nodes: Vec<_> = objects("kwok-nodes.yaml").into_iter().filter(|object| object["kind"] == "Node").collect();
    installation.apply(&nodes).await;
    installation
        .apply(&[json!({
            "apiVersion": "operator.openshift.io/v1",
            "kind": "KubeDescheduler",
            "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
            "spec": {"mode": "Automatic", "deschedulingIntervalSeconds": 60, "profiles": ["KubeVirtRelieveAndMigrate"]},
        })])
        .await;
    let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
    let folder = installation.folder.path().join("descheduler");
    let changes = [
        ("--descheduler=/descheduler", &*format!("--descheduler={}", program.display())),
        ("/var/lib/descheduler", folder.to_str().unwrap()),
        ("--port=8443", "--port=0"),
        (PROMETHEUS, "http://127.0.0.1:9"),
    ];
    let here = ["--time-scale=20", "--host=127.0.0.1"];
    installation.part(file, "descheduler-operator", &changes, &here).await;
    let changes = [("--port=8081", "--port=0"), (PROMETHEUS, "http://127.0.0.1:9")];
    let tainter = installation.part(file, "soft-tainter", &changes, &here).await;
    let path = "jsonpath={.status.readyReplicas}";
    let ready = async || {
        let args = ["get", "kubedescheduler", "cluster", "-n", "openshift-kube-descheduler-operator", "-o", path];
        (installation.kubectl(&args).await == "1").then_some(())
    };
    eventually("the descheduler is ready", ready).await;
    // Without Prometheus the descheduler only tries to read the values of the nodes.
    let log = folder.join("descheduler.log");
    let tries = async || fs::read_to_string(&log).ok()?.contains("127.0.0.1").then_some(());
    eventually("the descheduler has tried", tries).await;
    let tries = async || fs::read_to_string(&tainter).ok()?.contains("this cycle is abandoned").then_some(());
    eventually("the soft-tainter has tried", tries).await;
    installation.stop().await;
    let unused = async |name| installation.unused(file, &account(&one(file, "Deployment", name))).await;
    // Without values nothing is evicted or tainted. The audit log shows an apply that creates an object as a patch.
    let rarely = ["create pods/eviction", "get priorityclasses", "create events"];
    let logged_otherwise = ["create configmaps", "create deployments"];
    assert_eq!(unused("descheduler-operator").await, [&rarely[..], &logged_otherwise].concat());
    assert_eq!(unused("soft-tainter").await, ["get nodes", "patch nodes"]);
}
