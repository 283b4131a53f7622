//! The eviction webhook as a process of its own, on a real API server.

use std::{path::Path, time::Duration};

use api::{VirtualMachine, crd};
use devcluster::{Cluster, Identity, RunningProgram};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{EvictParams, Patch, PatchParams, PostParams},
};
use lab_parts::launcher;
use serde_json::json;
use testkit::eventually;

const GRACE: Duration = Duration::from_secs(60);
const HERE: &str = "--reach=127.0.0.1";
const POD: &str = "virt-launcher-a-00000";

async fn start(cluster: &Cluster, more: &[&str]) -> RunningProgram {
    let args = [&["webhook", "--host=127.0.0.1", "--port=0"], more].concat();
    let program = Path::new(env!("CARGO_BIN_EXE_rebalance-lab"));
    let who = Identity::user("eviction-webhook", &["system:masters"]);
    cluster.access().run(&who, "webhook", program, &args).await.unwrap()
}

/// Holds L35 (webhook blocks the cluster).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_is_killed_holds_up_vms_only_and_the_next_one_goes_on() {
    let cluster = Cluster::builder().start().await.unwrap_or_else(|error| panic!("{error}"));
    cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
    let client = cluster.access().client().await.unwrap();
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let pods: Api<Pod> = Api::default_namespaced(client);
    let vm = json!({"apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a"}, "spec": {"resources": {"cpu": "1", "memory": "1Gi"}}});
    let vm = vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.unwrap();
    let add = async |name: &str, labels, finalizers| {
        let pod = json!({
            "metadata": {"name": name, "labels": labels, "finalizers": finalizers},
            "spec": {"nodeName": "n1", "containers": [{"name": "compute", "image": "none"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    };
    let labels = json!({launcher::DOMAIN: "a", launcher::APP.0: launcher::APP.1});
    add(POD, labels, json!([launcher::FINALIZER])).await;
    add("web", json!({"app": "web"}), json!([])).await;
    let status = Patch::Merge(json!({"status": {"podName": POD, "nodeName": "n1"}}));
    vms.patch_status(&vm.name_any(), &PatchParams::default(), &status).await.unwrap();

    let evict = async |pod: &str| match pods.evict(pod, &EvictParams::default()).await {
        Ok(_) => String::new(),
        Err(kube::Error::Api(status)) => status.message.clone(),
        Err(other) => panic!("{other}"),
    };
    let answers = async |text: &str| {
        eventually(text, async || evict(POD).await.ends_with(text).then_some(())).await;
    };
    let first = start(&cluster, &[HERE, "--certificate-lifetime=30s"]).await;
    let registered = async || std::fs::read_to_string(first.log()).ok()?.contains("/health").then_some(());
    eventually("the webhook says where it listens", registered).await;
    // A dry run evicts nothing while the API server does not call the webhook yet.
    let dry_run =
        EvictParams { post_options: PostParams { dry_run: true, ..PostParams::default() }, delete_options: None };
    let is_asked = async || pods.evict(POD, &dry_run).await.is_err().then_some(());
    eventually("the webhook is asked", is_asked).await;
    assert!(evict(POD).await.ends_with("denied the request: Eviction triggered evacuation of VMI \"default/a\""));
    let in_progress = "Evacuation in progress: Eviction triggered evacuation of VMI \"default/a\"";
    answers(in_progress).await;

    first.kill();
    assert!(evict(POD).await.contains("failed calling webhook"), "VMs stay protected");
    assert_eq!(evict("web").await, "", "and nobody else is");
    let second = start(&cluster, &[HERE]).await;
    answers(in_progress).await;
    let ended = second.stop(GRACE).await.unwrap();
    assert!(ended.is_some_and(|status| status.success()), "{ended:?}: {}", second.log_tail());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_cannot_start_says_why() {
    let cluster = devcluster::own().await.unwrap();
    for (more, why) in [
        (&[HERE, "--cert=/nowhere/tls.crt", "--key=/nowhere/tls.key"][..], "reading /nowhere/tls.crt: "),
        (&["--reach=\u{fc}ber"], "making a certificate: "),
    ] {
        let process = start(cluster, more).await;
        let status = eventually("the webhook ends", async || process.exit_status()).await;
        assert!(!status.success());
        assert!(
            process.log_tail().contains(&format!("error: running the eviction webhook: {why}")),
            "{}",
            process.log_tail()
        );
    }
}
