//! All parts of the manifests together balance a skew.

use std::{fs, path::Path};

use api::{VirtualMachine, virtual_machine::Phase};
use base64::{Engine, prelude::BASE64_STANDARD};
use devcluster::{
    Cluster, Port, RunningProgram,
    tools::{self, Program},
};
use k8s_openapi::api::{
    admissionregistration::v1::ValidatingWebhookConfiguration,
    core::v1::{Node, Pod},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams},
};
use lab::kwok;
use lab_parts::prometheus;
use serde_json::{Value, json};
use testkit::eventually;

use super::{
    POLICY, PROMETHEUS, args,
    installation::{GRACE, Installation, account},
    objects, one,
};

/// The CA of a cluster. The descheduler reads a CA file even if it uses plain HTTP.
fn authority(kubeconfig: &Path) -> Vec<u8> {
    let config: Value = serde_saphyr::from_str(&fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let data = &config["clusters"][0]["cluster"]["certificate-authority-data"];
    BASE64_STANDARD.decode(data.as_str().expect("an authority")).unwrap()
}

fn has_taint(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    taints.is_some_and(|taints| taints.iter().any(|taint| taint.key.ends_with("/overutilized")))
}

/// Holds L7 (loop stops) and L14 (proxy name).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_the_manifests_balance_a_skew_with_the_rights_of_their_accounts() {
    let exporter_port = Port::reserve().unwrap();
    let settings = prometheus::PrometheusSettings {
        time_scale: 20.0,
        ..prometheus::PrometheusSettings::new(exporter_port.address())
    };
    let cluster = Cluster::builder()
        .scheduler()
        .controllers(&kwok::CONTROLLERS)
        .prometheus(settings.component(None))
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let url = format!("http://{}", cluster.address(devcluster::Component::Prometheus).unwrap());
    let mut installation = Installation::new(cluster).await;
    cluster_definition(&installation).await;
    for file in ["prometheus.yaml", "prometheus-rules.yaml", "kwok-nodes.yaml", "vm-controller.yaml"] {
        installation.apply(&objects(file)).await;
    }
    for file in ["eviction-webhook.yaml", "metrics-exporter.yaml", "descheduler.yaml", "descheduler-policy.yaml"] {
        installation.apply(&objects(file)).await;
    }

    registers_itself(&mut installation).await;

    let stages = one("kwok-nodes.yaml", "ConfigMap", "kwok-stages");
    let stages = installation.write("stages.yaml", stages["data"]["stages.yaml"].as_str().unwrap());
    let port = Port::reserve().unwrap();
    let changes =
        [("/etc/kwok/stages.yaml", stages.as_str()), ("$(POD_IP)", "127.0.0.1"), ("0.0.0.0:10247", &port.address())];
    let deployment = one("kwok-nodes.yaml", "Deployment", "kwok-controller");
    let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Kwok)).await.unwrap().unwrap();
    let kwok_args = args(&deployment, "kwok-controller", &changes);
    installation.run(&deployment, "kwok-controller", &program, &kwok_args).await;

    installation
        .part("vm-controller.yaml", "vm-controller", &[("--port=8080", "--port=0")], &["--time-scale=20"])
        .await;
    let port = format!("--port={}", exporter_port.number());
    installation
        .part("metrics-exporter.yaml", "metrics-exporter", &[("--port=8000", &port)], &["--host=127.0.0.1"])
        .await;
    let here = ["--host=127.0.0.1", "--reach=127.0.0.1"];
    let changes = [("--port=8443", "--port=0"), ("--service=default/eviction-webhook", "")];
    installation.part("eviction-webhook.yaml", "eviction-webhook", &changes, &here).await;

    place_examples(&installation).await;

    // Outside of a pod the descheduler reads its token from a Secret, and needs a right for that.
    let policy = one("descheduler-policy.yaml", "ConfigMap", "descheduler-policy");
    let policy = policy["data"]["policy.yaml"].as_str().unwrap().replace(PROMETHEUS, &url);
    let mut document: Value = serde_saphyr::from_str(&policy).unwrap();
    let reference = json!({"secretReference": {"namespace": "kube-descheduler", "name": "token"}});
    document["metricsProviders"][0]["prometheus"]["authToken"] = reference;
    let policy = installation.write("policy.yaml", &document.to_string());
    let metadata = json!({"name": "token", "namespace": "kube-descheduler"});
    let subject = json!({"kind": "ServiceAccount", "name": "descheduler", "namespace": "kube-descheduler"});
    installation.apply(&[
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"prometheusAuthToken": "any"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "token"}, "subjects": [subject]}),
    ])
    .await;
    let deployment = one("descheduler.yaml", "Deployment", "descheduler");
    let kubeconfig = installation.cluster.access().kubeconfig(&account(&deployment)).await.unwrap();
    fs::write(installation.folder.path().join("prometheus-ca.crt"), authority(&kubeconfig)).unwrap();
    let port = Port::reserve().unwrap();
    let changes = [(POLICY, policy.as_str()), ("10258", &port.number().to_string()), ("=60s", "=3s")];
    let mut descheduler_args = args(&deployment, "descheduler", &changes);
    descheduler_args.push(format!("--kubeconfig={}", kubeconfig.display()));
    let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
    let (folder, log) = (installation.folder.path().to_owned(), installation.folder.path().join("descheduler.log"));
    let descheduler = RunningProgram::spawn("descheduler", &program, descheduler_args, &folder, &log).unwrap();

    let changes = [(POLICY, policy.as_str()), (PROMETHEUS, &url), ("--port=8081", "--port=0")];
    installation.part("descheduler.yaml", "soft-tainter", &changes, &["--time-scale=20", "--host=127.0.0.1"]).await;

    let vms: Api<VirtualMachine> = Api::default_namespaced(installation.client.clone());
    let has_moved = async || {
        let all = vms.list(&ListParams::default()).await.unwrap().items;
        let moved = all.iter().filter(|vm| {
            let conditions = vm.status.as_ref().map(|status| &status.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition.type_ == "Migrated" && condition.status == "True")
        });
        let by_descheduler = moved
            .filter(|vm| vm.annotations().get("kubevirt.io/eviction-source").is_some_and(|by| by == "descheduler"));
        (by_descheduler.count() >= 3).then_some(())
    };
    eventually("three VMs have moved", has_moved).await;
    let nodes: Api<Node> = Api::all(installation.client.clone());
    let is_tainted = async || nodes.list(&ListParams::default()).await.unwrap().iter().any(has_taint).then_some(());
    eventually("a busy node is marked for the scheduler", is_tainted).await;

    // The deletion of a pod causes a migration, and the deletion of a VM deletes its pod.
    let pods: Api<Pod> = Api::default_namespaced(installation.client.clone());
    let name = vms.get("vm-60").await.unwrap().status.unwrap().pod_name.unwrap();
    let refused = pods.delete(&name, &DeleteParams::default()).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 429), "{refused:?}");
    vms.delete("vm-60", &DeleteParams::default()).await.unwrap();
    let is_gone = async || pods.get_opt(&name).await.unwrap().is_none().then_some(());
    eventually("the VM's pod goes with it", is_gone).await;

    descheduler.stop(GRACE).await.unwrap();
    installation.stop().await;
    let unused = async |file, name| installation.unused(file, &account(&one(file, "Deployment", name))).await;
    assert_eq!(unused("vm-controller.yaml", "vm-controller").await, [""; 0]);
    assert_eq!(unused("metrics-exporter.yaml", "metrics-exporter").await, [""; 0]);
    // An apply that creates an object needs both rights, and the audit log shows a patch only.
    let logged_otherwise = unused("eviction-webhook.yaml", "eviction-webhook").await;
    assert_eq!(logged_otherwise, ["create validatingwebhookconfigurations"]);
    assert_eq!(unused("kwok-nodes.yaml", "kwok-controller").await, [""; 0]);
    // The descheduler uses these only if a policy has a priority threshold or an eviction fails.
    let rarely = unused("descheduler.yaml", "descheduler").await;
    let rarely: Vec<_> = rarely.iter().filter(|right| *right != "create events").collect();
    assert_eq!(rarely, ["get priorityclasses"]);
    // The soft-tainter reads a node only after a conflict.
    let rarely = unused("descheduler.yaml", "soft-tainter").await;
    assert!(rarely.is_empty() || rarely == ["get nodes"], "{rarely:?}");
}

async fn cluster_definition(installation: &Installation) {
    installation.apply(&objects("virtualmachine-crd.yaml")).await;
    let crd = "crd/virtualmachines.simulation.node-classifier.io";
    installation.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", crd]).await;
}

/// With the arguments of its pod, the webhook adds only its CA to the configuration of the manifest.
async fn registers_itself(installation: &mut Installation) {
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(installation.client.clone());
    let name = "eviction-webhook";
    let before = configurations.get(name).await.unwrap().webhooks.unwrap();
    assert!(before.iter().all(|webhook| webhook.client_config.ca_bundle.is_none()));
    installation.part("eviction-webhook.yaml", name, &[("--port=8443", "--port=0")], &["--host=127.0.0.1"]).await;
    let is_trusted = async || {
        let webhooks = configurations.get(name).await.unwrap().webhooks.unwrap();
        webhooks.iter().all(|webhook| webhook.client_config.ca_bundle.is_some()).then_some(webhooks)
    };
    let mut after = eventually("the webhook writes its authority", is_trusted).await;
    for webhook in &mut after {
        webhook.client_config.ca_bundle = None;
    }
    assert_eq!(after, before);
    installation.stop().await;
    // The configuration names a Service, and no Service leads to this machine.
    configurations.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Creates the example VMs on two of the nodes, as the script does.
async fn place_examples(installation: &Installation) {
    let others = ["kwok-node-3", "kwok-node-4", "kwok-node-5"];
    installation
        .kubectl(&["wait", "--for=condition=Ready", "--timeout=60s", "nodes", "-l", "kubevirt.io/schedulable=true"])
        .await;
    installation.kubectl(&[&["cordon"], &others[..]].concat()).await;
    installation.apply(&objects("example-vms.yaml")).await;
    installation.kubectl(&["wait", "--for=jsonpath={.status.phase}=Running", "--timeout=60s", "vm", "--all"]).await;
    installation.kubectl(&[&["uncordon"], &others[..]].concat()).await;
    let vms: Api<VirtualMachine> = Api::default_namespaced(installation.client.clone());
    for vm in vms.list(&ListParams::default()).await.unwrap() {
        let status = vm.status.unwrap();
        assert_eq!(status.phase, Some(Phase::Running));
        assert!(!others.contains(&&*status.node_name.unwrap()));
    }
}
