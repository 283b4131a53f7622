//! `make dev-setup` and `make kind-delete`: with our own control plane, and with kind.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use devcluster::{Cluster, Identity};
use process::is_alive;
use serde_json::Value;
use testkit::poll_blocking;

use crate::commands::{kubectl, printed};

/// Our own control plane, with its files in a folder of the test's.
struct Dev {
    outer: tempfile::TempDir,
    /// The control plane ends with this process.
    owner: u32,
}

impl Dev {
    fn new() -> Self {
        Dev::owned_by(std::process::id())
    }

    fn owned_by(owner: u32) -> Self {
        Dev { outer: tempfile::tempdir().unwrap(), owner }
    }

    fn folder(&self) -> PathBuf {
        self.outer.path().join("dev")
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder().join("kubeconfig")
    }

    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        // Whoever runs this may have a cluster of kind: that is not ours to touch.
        command.args(args).args(["--own", "--folder"]).arg(self.folder()).env_remove("KUBECONFIG");
        // Also if this test is killed, the control plane ends.
        command.args(["--end-with", &self.owner.to_string()]);
        printed(&command.output().unwrap())
    }

    fn setup(&self) -> String {
        self.run(&["dev-setup"])
    }

    fn kubectl(&self, args: &[&str]) -> Output {
        kubectl(&self.kubeconfig(), args)
    }

    /// The process in the background and what it started.
    fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder().join("host.json")).unwrap();
        let host = serde_json::from_str::<Value>(&text).unwrap()["pid"].as_u64().unwrap() as u32;
        let mut pids = vec![host];
        let all =
            std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
        pids.extend(all.filter(|&pid: &u32| parent(pid) == Some(host)));
        pids
    }
}

/// A failed test leaves no control plane behind either.
impl Drop for Dev {
    fn drop(&mut self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let _ = command.args(["dev-teardown", "--own", "--folder"]).arg(self.folder()).output();
    }
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn wait_until_gone(pids: &[u32]) {
    let gone = poll_blocking(Duration::from_secs(120), || match pids.iter().find(|pid| is_alive(**pid)) {
        Some(pid) => Err(*pid),
        None => Ok(()),
    });
    gone.unwrap_or_else(|pid| panic!("left over: {pid} of {pids:?}"));
}

/// W48 (broken quick start), D25 (quick start as printed), D27 (namespaced KubeDescheduler), D31 (shipped stand-ins):
/// with stand-ins for all kinds, and the samples can be applied.
#[test]
fn our_own_control_plane_outlives_the_command_and_ends_when_told() {
    let dev = Dev::new();
    let said = dev.setup();
    let export = format!("export KUBECONFIG={}", dev.kubeconfig().display());
    assert!(said.contains(&export), "{said}");
    let processes = dev.processes();
    assert!(processes.len() >= 4, "host, etcd, kube-apiserver, kube-controller-manager: {processes:?}");
    assert!(processes.iter().all(|&pid| is_alive(pid)));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&dev.folder()), mode(&dev.kubeconfig())), (0o700, 0o600), "it holds a key");

    // The commands of the guides, as they are written there.
    let kinds = printed(&dev.kubectl(&["get", "crd", "-o", "name"]));
    assert_eq!(kinds.lines().count(), 13, "{kinds}");
    let pools = printed(&dev.kubectl(&["get", "machineconfigpool", "worker", "-o", "jsonpath={.status.machineCount}"]));
    assert_eq!(pools, "3");
    printed(&dev.kubectl(&["apply", "-f", "config/samples/mock_baseline_resources.yaml"]));
    printed(&dev.kubectl(&["apply", "-f", "config/samples/loadaware_sample.yaml"]));
    let descheduler = printed(&dev.kubectl(&["get", "kubedescheduler", "cluster", "-o", "yaml"]));
    assert!(descheduler.contains("namespace: openshift-kube-descheduler-operator"), "{descheduler}");
    printed(&dev.kubectl(&["apply", "-k", "config/samples/"]));
    printed(&dev.kubectl(&["delete", "-k", "config/samples/"]));

    // Once more: it is still the same one, and what somebody did to it stays.
    printed(&dev.kubectl(&[
        "patch",
        "machineconfigpool",
        "worker",
        "--type=merge",
        "-p",
        r#"{"spec": {"paused": true}}"#,
    ]));
    let again = dev.setup();
    assert!(again.contains("it runs already") && again.contains("it is there already"), "{again}");
    assert_eq!(dev.processes(), processes);
    assert_eq!(printed(&dev.kubectl(&["get", "machineconfigpool", "worker", "-o", "jsonpath={.spec.paused}"])), "true");

    assert!(dev.run(&["dev-teardown"]).contains("The control plane has ended."));
    wait_until_gone(&processes);
    assert!(!dev.folder().exists());
    assert!(dev.run(&["dev-teardown"]).contains("There is no control plane of ours."));
}

#[test]
fn a_control_plane_that_was_killed_is_replaced_and_one_that_a_test_owns_ends_with_it() {
    // It waits for input that never comes.
    let mut owner = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let dev = Dev::owned_by(owner.id());
    dev.setup();
    let processes = dev.processes();
    let status = Command::new("kill").args(["-KILL", &processes[0].to_string()]).status().unwrap();
    assert!(status.success());
    wait_until_gone(&processes);
    dev.setup();
    printed(&dev.kubectl(&["get", "virtplatformconfigs"]));
    let processes = dev.processes();
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_until_gone(&processes);
}

#[test]
fn a_definition_that_is_not_a_stand_in_is_left_alone_with_its_objects() {
    let dev = Dev::new();
    dev.setup();
    let definition = "hyperconvergeds.hco.kubevirt.io";
    printed(&dev.kubectl(&["label", "crd", definition, "advisor.kubevirt.io/stand-in-"]));
    printed(&dev.kubectl(&["delete", "hyperconverged", "-n", "openshift-cnv", "kubevirt-hyperconverged"]));
    let generation = || {
        let path = "jsonpath={.metadata.resourceVersion}";
        printed(&dev.kubectl(&["get", "crd", definition, "-o", path]))
    };
    let before = generation();
    let said = dev.setup();
    assert!(said.contains("hyperconvergeds.hco.kubevirt.io is not a stand-in of ours: left alone"), "{said}");
    assert_eq!(generation(), before);
    assert_eq!(printed(&dev.kubectl(&["get", "hyperconverged", "-A", "-o", "name"])), "");
}

/// Plays kind: its one cluster is whatever `$PREPARED` leads to.
const KIND: &str = r#"#!/bin/sh
echo "$*" >> "$CALLS"
case "$1 $2" in
  "get clusters") [ ! -e "$KUBECONFIG" ] || echo virt-advisor-dev ;;
  "create cluster") cp "$PREPARED" "$KUBECONFIG" ;;
  "delete cluster") rm "$KUBECONFIG" ;;
esac
"#;

/// W48 (broken quick start): there, too.
#[tokio::test]
async fn where_there_is_kind_its_cluster_is_used() {
    let cluster = Cluster::builder().start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [kind, calls, prepared, kubeconfig] =
        ["kind", "calls", "prepared", "kubeconfig"].map(|name| folder.path().join(name));
    std::fs::write(&kind, KIND).unwrap();
    std::fs::set_permissions(&kind, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::copy(cluster.access().kubeconfig(&Identity::Admin).await.unwrap(), &prepared).unwrap();
    printed(&kubectl(&prepared, &["config", "rename-context", "devcluster", "kind-virt-advisor-dev"]));
    let run = |args: &[&str]| {
        let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.args(args).arg("--folder").arg(folder.path().join("dev")).env("PATH", path);
        command.env("KUBECONFIG", &kubeconfig).env("PREPARED", &prepared).env("CALLS", &calls);
        command.env("SKIP_IMAGE_BUILD", "true");
        printed(&command.output().unwrap())
    };
    assert!(run(&["dev-setup"]).contains("The current context of your kubeconfig is kind-virt-advisor-dev."));
    assert!(run(&["dev-setup"]).contains("it is there already"));
    printed(&kubectl(&kubeconfig, &["apply", "-f", "config/samples/mock_baseline_resources.yaml"]));
    printed(&kubectl(&kubeconfig, &["get", "kubedescheduler", "cluster"]));
    let machines = printed(&kubectl(&kubeconfig, &["get", "nodes", "-o", "name"]));
    assert_eq!(machines.lines().count(), 6, "{machines}");
    printed(&kubectl(&kubeconfig, &["get", "-n", "openshift-machine-config-operator", "deployment", "-o", "name"]));
    run(&["dev-teardown"]);
    run(&["dev-teardown"]);
    let calls = std::fs::read_to_string(&calls).unwrap();
    let changes: Vec<_> = calls.lines().filter(|call| call.contains("--name")).collect();
    assert_eq!(changes, ["create cluster --name virt-advisor-dev", "delete cluster --name virt-advisor-dev"]);
    assert!(!folder.path().join("dev").exists(), "no control plane of our own");
}
