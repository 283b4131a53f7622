//! `virt-advisor gather` and `virt-advisor doctor` on a real API server, with the rights of an administrator, of a viewer and of nobody.

mod doctor;
mod gather;
mod must_gather;
mod pages;

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use devcluster::{Access, Cluster, Identity, RunningProgram};
use serde_json::{Value, json};
use testkit::poll;
use tokio::sync::OnceCell;

use crate::guide::terminal::root;

const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));

pub(crate) const LIMIT: Duration = Duration::from_secs(100);

/// The file that a rendered MachineConfig has of every node. Nobody may find it in what is collected.
const PULL_SECRET: &str = "cHVsbC1zZWNyZXQ=";

/// A cluster with OpenShift Virtualization, the operator, one applied plan and one that waits for a review.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    /// Its log is a text.
    pub(crate) operator: RunningProgram,
}

/// One for all tests that change nothing.
pub(crate) async fn site() -> &'static Site {
    static SITE: OnceCell<Site> = OnceCell::const_new();
    SITE.get_or_init(start).await
}

async fn start() -> Site {
    let cluster = Cluster::builder().start().await.unwrap();
    let access = cluster.access();
    install_definitions(access).await;
    for args in [
        &["apply", "--server-side", "--subresource=status", "-f", "config/samples/third-party/status.yaml"][..],
        &["apply", "--server-side", "-f", "config/samples/third-party/kubedescheduler.yaml"],
        &["apply", "--server-side", "--force-conflicts", "-k", "config/default"],
        &[
            "create",
            "clusterrolebinding",
            "viewers",
            "--user=victor",
            "--clusterrole=virt-advisor-operator-virtplatformconfig-viewer-role",
        ],
    ] {
        kubectl(access, args).await;
    }
    // Nothing here runs pods, so what a kubelet and a controller would report is written instead.
    let deployment = "deployment/virt-advisor-operator-controller-manager";
    let available = json!({"status": {"replicas": 2, "readyReplicas": 2, "availableReplicas": 2}}).to_string();
    kubectl(access, &["-n", "openshift-cnv", "patch", deployment, "--subresource=status", "-p", &available]).await;
    apply(access, &pod()).await;
    add_pull_secret(access).await;
    let account = Identity::service_account("openshift-cnv", "virt-advisor-operator-controller-manager");
    let args = ["operator", "--leader-elect", "--leader-election-namespace=openshift-cnv", "--log-format=text"];
    let operator = access.run(&account, "operator", &program(), &args).await.unwrap();
    phase(access, "load-aware-rebalancing", "Ignored").await;
    phase(access, "virt-higher-density", "Ignored").await;
    apply(access, &config("example-profile", "Apply")).await;
    kubectl(
        access,
        &["patch", "vpcfg", "load-aware-rebalancing", "--type=merge", "-p", r#"{"spec":{"action":"DryRun"}}"#],
    )
    .await;
    phase(access, "example-profile", "Completed").await;
    phase(access, "load-aware-rebalancing", "ReviewRequired").await;
    Site { cluster, operator }
}

/// Installs the definitions of OpenShift's kinds and of ours, and what an OpenShift cluster has of its kinds.
pub(crate) async fn install_definitions(access: &Access) {
    for args in [
        &["apply", "--server-side", "-k", "config/crd/third-party"][..],
        &["apply", "--server-side", "-k", "config/crd"],
        &["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"],
        &["apply", "--server-side", "-k", "config/samples/third-party"],
    ] {
        kubectl(access, args).await;
    }
}

pub(crate) fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_virt-advisor"))
}

fn config(profile: &str, action: &str) -> Value {
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": profile}, "spec": {"profile": profile, "action": action},
    })
}

/// A pod of the operator. Its log cannot be read: there is no kubelet.
fn pod() -> Value {
    let labels = json!({"app.kubernetes.io/name": "virt-advisor-operator", "control-plane": "controller-manager"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "virt-advisor-operator-0", "namespace": "openshift-cnv", "labels": labels},
        "spec": {"nodeName": "nowhere", "serviceAccountName": "virt-advisor-operator-controller-manager", "containers": [{"name": "manager", "image": "x"}]},
    })
}

/// Adds the pull secret to what the nodes of pool worker run, as it is in real clusters.
async fn add_pull_secret(access: &Access) {
    let contents = json!({"source": format!("data:;base64,{PULL_SECRET}")});
    let file = json!({"path": "/var/lib/kubelet/config.json", "contents": contents});
    let patch = json!([{"op": "add", "path": "/spec/config/storage/files/-", "value": file}]).to_string();
    let config = "rendered-worker-d9366560000b5d89c5825f832fda0bd6";
    kubectl(access, &["patch", "machineconfig", config, "--type=json", "-p", &patch]).await;
}

pub(crate) async fn kubectl(access: &Access, args: &[&str]) -> String {
    let mut command = access.kubectl_command(&Identity::Admin).await.unwrap();
    let output = command.args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "kubectl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) async fn apply(access: &Access, object: &Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("object.json");
    std::fs::write(&path, object.to_string()).unwrap();
    kubectl(
        access,
        &["apply", "--server-side", "--force-conflicts", "--validate=ignore", "-f", path.to_str().unwrap()],
    )
    .await;
}

pub(crate) async fn phase(access: &Access, profile: &str, phase: &str) {
    let args = ["get", "vpcfg", "--ignore-not-found", profile, "-o", "jsonpath={.status.phase}"];
    let reached = async || {
        let found = kubectl(access, &args).await;
        if found == phase { Ok(()) } else { Err(found) }
    };
    poll(LIMIT, reached).await.unwrap_or_else(|found| panic!("{profile} is {found:?} and never {phase}"));
}

/// Runs the program as somebody, without colors and with all signs.
pub(crate) async fn run_as(
    access: &Access,
    who: &Identity,
    program: &Path,
    args: &[&str],
    env: &[(&str, &Path)],
) -> Output {
    let kubeconfig = access.kubeconfig(who).await.unwrap();
    let mut command = Command::new(program);
    command.args(args).env("KUBECONFIG", kubeconfig).env("LC_ALL", "C.UTF-8").env_remove("COLUMNS");
    for (name, value) in env {
        command.env(name, value);
    }
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output without what is different in every run.
pub(crate) fn settled(output: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut skipping = false;
    for line in output.lines() {
        let is_continuation = line.starts_with("           ") && !line.trim_start().starts_with('→');
        if skipping && is_continuation {
            continue;
        }
        skipping = true;
        lines.push(match line {
            line if line.contains("API server: ") => {
                line[..line.find("API server: ").unwrap()].to_owned()
                    + "API server: v1.36.0 at https://api.example.com:6443/"
            }
            line if line.contains("leader: ") => {
                line[..line.find("leader: ").unwrap()].to_owned()
                    + "leader: virt-advisor-operator-0_5f0c2d7f1f0a4b5e, seen 1 s ago"
            }
            line => {
                skipping = false;
                line.to_owned()
            }
        });
    }
    lines.join("\n") + "\n"
}
