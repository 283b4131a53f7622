//! The lab in its kind form: `setup-kind-env.sh` and `test-closed-loop.sh` as they are, on this node in the place of kind's.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use devcluster::tools::{self, Program};
use realnode::{Archive, Content, Node};
use testkit::within;

use super::write_image;
use crate::commands::{root, text};

const CONTEXT: &str = "kind-node-classifier-sim";
const LONG: Duration = Duration::from_secs(600);

/// Plays kind and docker: the cluster is there, and has all images.
const ENGINE: &str = r#"#!/bin/sh
case "$1" in
  version) echo "kind v0.30.0 go1.26 linux/amd64" ;;
  get) echo node-classifier-sim ;;
esac
"#;

/// The image that the manifests have of something.
fn image(of: &str) -> String {
    let files = fs::read_dir(root().join("config/lab")).unwrap().map(|entry| entry.unwrap().path());
    let texts: Vec<String> = files.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let mut images = texts.iter().flat_map(|text| text.lines()).filter_map(|line| line.trim().strip_prefix("image: "));
    images.find(|image| image.contains(of)).unwrap_or_else(|| panic!("no image of {of}")).to_owned()
}

fn write_images(folder: &Path) {
    write_image(folder, &["--lab"]);
    let write = |archive: anyhow::Result<Archive<'_>>| archive.and_then(|archive| archive.write(folder)).unwrap();
    write(Archive::of(Program::Kwok, &image("/kwok:"), &["/kwok"]));
    // A volume hides `/prometheus`, so the program is where the real image has it.
    write(Archive::of_at(Program::Prometheus, &image("/prometheus:"), &["/bin/prometheus"], "/bin/prometheus"));
    // Our build looks for the CA of its pod in its working directory.
    let ca = Content::Link("/var/run/secrets/kubernetes.io/serviceaccount/ca.crt");
    let descheduler = image("/descheduler:");
    let mut descheduler = Archive::of_at(Program::Descheduler, &descheduler, &[], "/bin/descheduler").unwrap();
    descheduler.files.push(("/prometheus-ca.crt".to_owned(), ca));
    write(Ok(descheduler));
    // It shows metrics or the log of the descheduler, and the loop does without it.
    let nginx = image("/nginx");
    let mut nginx = Archive::idle(&nginx, "/usr/bin/nginx").unwrap();
    nginx.files.push(("/usr/bin/tail".to_owned(), Content::Link("/usr/bin/nginx")));
    write(Ok(nginx));
}

/// A folder with the programs that the scripts call, for the PATH.
fn programs(folder: &Path) -> String {
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["kind", "docker"] {
        fs::write(programs.join(name), ENGINE).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    symlink(tools::ensure(Program::Kubectl).unwrap(), programs.join("kubectl")).unwrap();
    format!("{}:{}", programs.display(), std::env::var("PATH").unwrap())
}

/// Runs a line in the root of the tree, as a person types it. It has to succeed.
fn typed(node: &Node, path: &str, line: &str) -> String {
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", line]).current_dir(root());
    command.env("PATH", path).env("KUBECONFIG", node.kubeconfig()).env("no_proxy", "*").stdin(Stdio::null());
    let output = command.env("SKIP_IMAGE_BUILD", "true").env("TIMEOUT", "600").output().unwrap();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{line}\n{out}{err}");
    out
}

/// The commands of the guide that end by themselves, in its order.
const LINES: [&str; 19] = [
    "kubectl get vm",
    "kubectl describe vm $(kubectl get vm -o name | head -1 | cut -d/ -f2)",
    "kubectl get vm -o wide",
    "kubectl get pods -l app=virt-launcher",
    "kubectl get pod $(kubectl get pods -l app=virt-launcher -o name | head -1 | cut -d/ -f2) -o jsonpath='{.metadata.annotations}'",
    "kubectl logs -n kube-descheduler deployment/descheduler | grep -i evict",
    "./test-closed-loop.sh",
    "curl --fail http://localhost:9090/-/healthy",
    "curl --fail http://localhost:8000/health",
    "curl --fail http://localhost:9090/api/v1/targets",
    "curl --fail http://localhost:9090/api/v1/rules",
    "kubectl get nodes -l kubevirt.io/schedulable=true",
    "kubectl logs -n kube-descheduler deployment/descheduler",
    "curl --fail \"http://localhost:9090/api/v1/query?query=descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m\"",
    "kubectl get pods -l app=eviction-webhook",
    "kubectl logs -l app=eviction-webhook",
    "kubectl get pods -l app=vm-controller",
    "kubectl get pods -n monitoring -l app=metrics-exporter",
    "kubectl logs -n monitoring -l app=metrics-exporter",
];

/// Those that go on until Ctrl-C.
const ENDLESS_LINES: [&str; 4] = [
    "kubectl get vm -w",
    "kubectl get pods -w",
    "kubectl logs -n kube-descheduler deployment/descheduler -f",
    "kubectl logs -l app=eviction-webhook -f",
];

/// Installs the lab as a person does, and returns the PATH of that person.
async fn set_up(node: &Node, script: &str) -> String {
    node.kubectl(&["config", "rename-context", "devcluster", CONTEXT]);
    let path = programs(node.archives());
    // As the ports of kind's container lead to those of the node.
    node.publish(9090, 30090).await;
    node.publish(8000, 30800).await;
    let told = typed(node, &path, script);
    assert!(told.contains("The lab is up."), "{told}");
    path
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn the_lab_balances_as_pods_under_the_descheduler_operator() {
    realnode::run(write_images, async |node| {
        let path = set_up(node, "./setup-kind-env.sh --operator").await;
        typed(node, &path, "./test-closed-loop.sh");
    });
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn the_lab_balances_as_pods_and_every_command_of_its_guide_works() {
    realnode::run(write_images, async |node| {
        let path = set_up(node, "./setup-kind-env.sh").await;
        // A descheduler first looks at the cluster as it starts, and then every minute.
        within(LONG, "the loop is closed", async || {
            let evicted = "kubectl logs -n kube-descheduler deployment/descheduler";
            typed(node, &path, evicted).to_lowercase().contains("evict").then_some(())
        })
        .await;
        for line in LINES {
            let told = typed(node, &path, line);
            assert!(!told.is_empty(), "{line}");
        }
        for line in ENDLESS_LINES {
            // `timeout` ends with 124 when it had to end the command.
            let told = typed(node, &path, &format!("timeout 5 {line}; test $? = 124"));
            assert!(!told.is_empty(), "{line}");
        }

        // A pod is reached from a person's machine, through the API server and the kubelet.
        let mut forward = node.kubectl_command();
        forward.args(["-n", "monitoring", "port-forward", "service/prometheus", "19090:9090"]).stdout(Stdio::null());
        let mut forward = forward.spawn().unwrap();
        within(LONG, "the forwarded port answers", async || {
            let mut curl = Command::new("curl");
            curl.args(["--silent", "--fail", "--noproxy", "*", "http://127.0.0.1:19090/-/healthy"]);
            curl.output().unwrap().status.success().then_some(())
        })
        .await;
        forward.kill().unwrap();
        forward.wait().unwrap();
    });
}
