//! The file in the image is started as an engine would start it, without one: alone in a root directory, as its service
//! account.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use devcluster::{Cluster, Identity};
use serde_json::{Value, json};

use super::static_program;
use crate::commands::{kubectl, printed, text, xtask};

const ACCOUNT: &str = "virt-advisor-operator-controller-manager";
const NAMESPACE: &str = "openshift-cnv";

/// The pod of the operator, as the Deployment would have it made.
fn pod(at: &Path) -> Value {
    let deployed = printed(&kubectl(at, &["get", "deployments", "-n", NAMESPACE, "-o", "json"]));
    let deployments: Value = serde_json::from_str(&deployed).unwrap();
    let deployment = &deployments["items"][0];
    assert_eq!(deployment["spec"]["replicas"], 2);
    let mut pod = deployment["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = "as-deployed".into();
    pod["metadata"]["namespace"] = NAMESPACE.into();
    pod
}

#[tokio::test]
#[ignore = "builds a static program, which takes minutes: `make test-images` runs it"]
async fn the_operator_runs_alone_in_a_root_directory_as_its_deployment_says() {
    let cluster = Cluster::builder().start().await.unwrap();
    let at = cluster.access().kubeconfig(&Identity::Admin).await.unwrap();
    let restricted = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
    }});
    create(&at, &restricted, &[]).expect("a namespace");
    printed(&xtask(&at, &["deploy"]));

    // The strictest of the pod security standards lets it in, and would not let in more.
    let pod = pod(&at);
    create(&at, &pod, &["--dry-run=server"]).expect("restricted is enough");
    let mut careless = pod.clone();
    careless["spec"]["containers"][0]["securityContext"] = Value::Null;
    let refused = create(&at, &careless, &["--dry-run=server"]).unwrap_err();
    assert!(refused.contains("violates PodSecurity"), "{refused}");

    // A root directory with what a kubelet puts into every pod, and nothing else but the one file.
    let inside = tempfile::tempdir().unwrap();
    fs::copy(static_program(&[], "dev"), inside.path().join("virt-advisor")).unwrap();
    let secrets = inside.path().join("var/run/secrets/kubernetes.io/serviceaccount");
    fs::create_dir_all(&secrets).unwrap();
    let cluster_of = |field: &str, then: &str| {
        let template = format!("go-template={{{{index (index .clusters 0).cluster \"{field}\"{then}}}}}");
        printed(&kubectl(&at, &["config", "view", "--raw", "-o", &template]))
    };
    fs::write(secrets.join("ca.crt"), cluster_of("certificate-authority-data", " | base64decode")).unwrap();
    fs::write(secrets.join("token"), printed(&kubectl(&at, &["create", "token", ACCOUNT, "-n", NAMESPACE]))).unwrap();
    fs::write(secrets.join("namespace"), NAMESPACE).unwrap();
    let server = cluster_of("server", "");
    let (host, port) = server.trim_start_matches("https://").rsplit_once(':').unwrap();
    let (host, port) = (format!("KUBERNETES_SERVICE_HOST={host}"), format!("KUBERNETES_SERVICE_PORT={port}"));
    let root = format!("--root={}", inside.path().display());
    let mut command = vec!["-i", &host, &port, "/usr/bin/unshare", "--map-root-user", &root];
    let container = &pod["spec"]["containers"][0];
    for part in ["command", "args"] {
        command.extend(container[part].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    }
    // Ports are not the pod's own here.
    let probes = command.iter_mut().find(|word| **word == "--health-probe-bind-address=:8081").unwrap();
    *probes = "--health-probe-bind-address=127.0.0.1:0";
    let metrics = command.iter_mut().find(|word| **word == "--metrics-bind-address=:8443").unwrap();
    *metrics = "--metrics-bind-address=127.0.0.1:0";
    let start = cluster.audit().position(&cluster.access().client().await.unwrap()).await.unwrap();
    let running = cluster.access().run(&Identity::Admin, "operator-alone", Path::new("/usr/bin/env"), &command).await;
    let running = running.unwrap();
    let offered = ["wait", "--for=jsonpath={.status.phase}=Ignored", "virtplatformconfig/load-aware-rebalancing"];
    let deadline = Instant::now() + Duration::from_secs(60);
    while !kubectl(&at, &[&offered[..], &["--timeout=2s"]].concat()).status.success() {
        assert!(running.exit_status().is_none() && Instant::now() < deadline, "{}", running.log_tail());
    }
    running.stop(Duration::from_secs(10)).await.unwrap();
    let client = cluster.access().client().await.unwrap();
    let user = format!("system:serviceaccount:{NAMESPACE}:{ACCOUNT}");
    let requests = cluster.audit().since(start, &client).await.unwrap();
    assert!(requests.iter().any(|request| request.user == user && request.verb != "watch"), "as its account");
}

/// Creates an object, or tells what was said against it.
fn create(at: &Path, object: &Value, args: &[&str]) -> Result<(), String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, object.to_string()).unwrap();
    let output = kubectl(at, &[&["create", "-f", file.path().to_str().unwrap()], args].concat());
    if output.status.success() { Ok(()) } else { Err(text(&output.stderr)) }
}
