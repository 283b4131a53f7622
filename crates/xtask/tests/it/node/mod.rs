//! What is handed out, as pods on a real node. `make node-test` runs these.

mod install;
mod killed;
mod lab;
mod operator;
mod packages;
mod pods;

use std::{env, path::Path, process::Command};

use realnode::Node;
use serde_json::Value;

use crate::commands::{printed, root};

/// The namespace of the operator, its Deployment and its lease.
const NAMESPACE: &str = "openshift-cnv";
const DEPLOYMENT: &str = "virt-advisor-operator-controller-manager";

/// Writes the image of the operator into a folder, or that of the lab, under the name that the manifests have.
fn write_image(folder: &Path, args: &[&str]) {
    let profile = env::var("IMAGE_PROFILE").unwrap_or_else(|_| "dev".to_owned());
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["image-archive", "--profile", &profile, "--output"]).arg(folder).args(args);
    // Programs that were built before, by `make build-static`.
    if let Some(programs) = env::var_os("NODE_TEST_PROGRAMS") {
        let name = if args.contains(&"--lab") { "rebalance-lab" } else { "virt-advisor" };
        command.arg("--program").arg(Path::new(&programs).join(name));
    }
    printed(&command.env("CARGO", env!("CARGO")).current_dir(root()).output().unwrap());
}

fn write_operator(folder: &Path) {
    write_image(folder, &[]);
}

/// One of our commands, on the cluster of the node. It has to succeed.
fn xtask(node: &Node, args: &[&str]) -> String {
    printed(&crate::commands::xtask(node.kubeconfig(), args))
}

/// An object or a list, as JSON.
fn get(node: &Node, args: &[&str]) -> Value {
    serde_json::from_str(&node.kubectl(&[&["get", "-o", "json"], args].concat())).unwrap()
}

/// A file of the repository.
fn file(path: &str) -> String {
    root().join(path).display().to_string()
}

/// A platform at rest, with a descheduler of other settings. Nobody looks after its pools.
fn install_platform(node: &Node) {
    let apply = |args: &[&str]| node.kubectl(&[&["apply", "--server-side", "--force-conflicts"], args].concat());
    apply(&["-k", &file("config/crd/third-party")]);
    node.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    apply(&["-f", &file("config/samples/mock_baseline_resources.yaml")]);
    apply(&["--subresource=status", "-f", &file("config/samples/third-party/status.yaml")]);
}

/// Asks for a plan that changes the descheduler and no machines.
fn offer(node: &Node) {
    node.kubectl(&["wait", "--for=create", "--timeout=60s", "vpcfg/load-aware-rebalancing"]);
    let options = r#"{"spec":{"action":"DryRun","options":{"loadAware":{"enablePSIMetrics":false}}}}"#;
    node.kubectl(&["patch", "vpcfg", "load-aware-rebalancing", "--type=merge", "-p", options]);
}

fn wait_for_phase(node: &Node, phase: &str, seconds: u64) {
    let (phase, timeout) = (format!("--for=jsonpath={{.status.phase}}={phase}"), format!("--timeout={seconds}s"));
    node.kubectl(&["wait", &phase, &timeout, "vpcfg/load-aware-rebalancing"]);
}
