//! The manifests of `config/lab` with the real binary: it accepts the arguments, and each part needs exactly the rights of its
//! service account.

mod balance;
mod installation;
mod stand_in;

use std::{collections::BTreeSet, fs, process::Command};

use lab::manifests;
use serde_json::Value;
use testkit::files::root;

const POLICY: &str = "/policy-dir/policy.yaml";
const PROMETHEUS: &str = "http://prometheus.monitoring.svc:9090";
const FILES: [&str; 6] = [
    "descheduler.yaml",
    "descheduler-operator.yaml",
    "eviction-webhook.yaml",
    "kwok-nodes.yaml",
    "metrics-exporter.yaml",
    "vm-controller.yaml",
];

fn objects(file: &str) -> Vec<Value> {
    let path = root().join("config/lab").join(file);
    serde_saphyr::from_multiple(&fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn one(file: &str, kind: &str, name: &str) -> Value {
    let found = objects(file).into_iter().find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.unwrap_or_else(|| panic!("{file} has no {kind} {name}"))
}

/// The arguments of a container, with replacements for values that only a pod has.
fn args(deployment: &Value, container: &str, changes: &[(&str, &str)]) -> Vec<String> {
    let containers = deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let container = containers.iter().find(|it| it["name"] == container).unwrap();
    let args = container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap());
    let args = args.map(|arg| arg.replace("$(DESCHEDULING_INTERVAL)", "60s"));
    let change = |arg: String| changes.iter().fold(arg, |arg, (from, to)| arg.replace(from, to));
    args.map(change).filter(|arg| !arg.is_empty()).collect()
}

/// Holds L11 (broken installation).
#[test]
fn the_arguments_of_every_container_mean_something_to_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "kind: DeschedulerPolicy\n").unwrap();
    let mut seen = BTreeSet::new();
    for deployment in FILES.iter().flat_map(|file| objects(file)).filter(|object| object["kind"] == "Deployment") {
        for container in deployment["spec"]["template"]["spec"]["containers"].as_array().unwrap() {
            if container["image"] != manifests::IMAGE {
                continue;
            }
            let name = container["name"].as_str().unwrap();
            let args = args(&deployment, name, &[(POLICY, policy.to_str().unwrap())]);
            let output = Command::new(env!("CARGO_BIN_EXE_rebalance-lab"))
                .args(&args)
                .env("KUBECONFIG", "/nowhere/kubeconfig")
                .env_remove("KUBERNETES_SERVICE_HOST")
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            // The program has accepted its arguments and looks for a cluster.
            assert!(told.contains("there is no cluster to look at"), "{name} {args:?}: {told}");
            seen.insert(args[0].clone());
        }
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        ["descheduler-operator", "exporter", "soft-tainter", "vm-controller", "webhook"]
    );
}
