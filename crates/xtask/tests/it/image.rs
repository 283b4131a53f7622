//! What is handed out: which program builds the image, and what is in it. No engine runs where these tests run, so the file
//! in the image is started as an engine would start it: alone in a root directory, as its service account.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use devcluster::{Cluster, Identity};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::commands::{kubectl, printed, root, text, xtask};

const ACCOUNT: &str = "virt-advisor-operator-controller-manager";
const NAMESPACE: &str = "openshift-cnv";

/// A folder with programs of these names that only say how they were called.
fn engines(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let file = folder.path().join(name);
        fs::write(&file, "#!/bin/sh\necho \"${0##*/} $*\"\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder
}

fn image(engines: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).env("PATH", engines.path()).output().unwrap()
}

#[test]
fn the_image_is_built_and_pushed_with_the_program_that_is_there() {
    let both = engines(&["podman", "docker"]);
    let docker = engines(&["docker"]);
    let name = concat!("kubevirt.io/virt-advisor-operator:v", env!("CARGO_PKG_VERSION"));
    let built = |engines, args: &[&str]| printed(&image(engines, args)).lines().next().unwrap().to_owned();
    assert_eq!(built(&both, &["image-build"]), format!("podman build --tag {name} ."));
    assert_eq!(built(&docker, &["image-build"]), format!("docker build --tag {name} ."));
    assert_eq!(
        built(&both, &["image-build", "--tool", "docker", "--image", "me/it:v1"]),
        "docker build --tag me/it:v1 ."
    );
    assert_eq!(built(&both, &["image-push", "--image", "me/it:v1"]), "podman push me/it:v1");
    let lab = concat!("kubevirt.io/rebalance-lab:v", env!("CARGO_PKG_VERSION"));
    assert_eq!(built(&both, &["image-build", "--lab"]), format!("podman build --target rebalance-lab --tag {lab} ."));
}

#[test]
fn without_an_engine_one_line_says_what_to_install() {
    for (args, expected) in [
        (
            &["image-build"][..],
            "error: neither podman nor docker is installed: install one, or name another with CONTAINER_TOOL\n",
        ),
        (
            &["image-push", "--tool", "buildah"],
            "error: buildah is not installed: install it, or leave CONTAINER_TOOL out\n",
        ),
    ] {
        let output = image(&engines(&[]), args);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), expected));
    }
}

#[test]
fn the_image_holds_the_file_that_is_tested_here_and_no_root_user() {
    let dockerfile = fs::read_to_string(root().join("Dockerfile")).unwrap();
    for line in ["RUN make build-static && ", "FROM scratch", "USER 65532:65532", "ENTRYPOINT [\"/virt-advisor\"]"] {
        assert!(dockerfile.lines().any(|found| found.starts_with(line)), "no {line:?} in Dockerfile");
    }
    let toolchain = format!("rust:{}-", env!("CARGO_PKG_RUST_VERSION"));
    assert!(dockerfile.contains(&toolchain), "Dockerfile builds with another version than {toolchain}");
}

/// The operator as the image holds it, but for the optimizations.
fn static_binary() -> PathBuf {
    let output = Command::new("make")
        .args(["--no-print-directory", "build-static", "PROFILE=dev"])
        .current_dir(root())
        .env_remove("MAKEFLAGS")
        .output()
        .unwrap();
    printed(&output);
    let folder = Path::new(env!("CARGO_BIN_EXE_xtask")).ancestors().nth(2).unwrap();
    let host = text(&Command::new("rustc").arg("-vV").output().unwrap().stdout);
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    folder.join(host).join("debug/virt-advisor")
}

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
    fs::copy(static_binary(), inside.path().join("virt-advisor")).unwrap();
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
