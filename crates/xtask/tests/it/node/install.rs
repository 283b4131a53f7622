//! Installing, a plan, its rollout and the removal, as the guides tell it, on a cluster whose pods run.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use realnode::Node;
use serde_json::Value;

use super::{file, get, wait_for_phase, write_image, write_operator, xtask};

/// What changes by itself, or says what happened.
const VOLATILE: [&str; 6] = [
    "componentstatuses",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
];

/// Everything in the cluster, by kind, namespace and name, without what the API server and controllers count and report.
fn everything(node: &Node) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for resource in node.kubectl(&["api-resources", "--verbs=list", "-o", "name"]).lines() {
        if VOLATILE.contains(&resource) {
            continue;
        }
        let mut list = get(node, &[resource, "--all-namespaces"]);
        for mut object in std::mem::take(list["items"].as_array_mut().unwrap()) {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            // What the machine config operator renders, and what it says about its nodes, is history.
            if name.starts_with("rendered-") {
                continue;
            }
            let key = format!("{resource} {namespace}/{name}");
            object["status"] = Value::Null;
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.retain(|field, _| !["generation", "managedFields", "resourceVersion"].contains(&field.as_str()));
            if resource == "nodes" {
                metadata.remove("annotations");
            }
            found.insert(key, object);
        }
    }
    found
}

/// What is different, one line each.
fn differences(before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>) -> Vec<String> {
    let gone = before.keys().filter(|key| !after.contains_key(*key)).map(|key| format!("gone: {key}"));
    let new = after.keys().filter(|key| !before.contains_key(*key)).map(|key| format!("new: {key}"));
    let changed = before.iter().filter_map(|(key, object)| {
        let now = after.get(key).filter(|now| *now != object)?;
        Some(format!("changed: {key}\n  was {object}\n  is  {now}"))
    });
    gone.chain(new).chain(changed).collect()
}

fn patch(node: &Node, patch: &str) {
    node.kubectl(&["patch", "vpcfg", "load-aware-rebalancing", "--type=merge", "-p", patch]);
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn one_file_leads_to_a_plan_in_a_minute_it_is_rolled_out_and_all_of_it_can_be_removed() {
    let images = |folder: &std::path::Path| {
        write_operator(folder);
        write_image(folder, &["--lab"]);
    };
    realnode::run(images, async |node| {
        xtask(node, &["dev-setup", "--current"]);
        node.kubectl(&[
            "apply",
            "--server-side",
            "--force-conflicts",
            "-f",
            &file("config/samples/mock_baseline_resources.yaml"),
        ]);
        node.rollout("openshift-machine-config-operator", "machine-config-operator");
        xtask(node, &["uninstall", "--force"]);
        let before = everything(node);

        let start = Instant::now();
        node.kubectl(&["apply", "--server-side", "-f", &file("dist/install.yaml")]);
        node.kubectl(&["wait", "--for=condition=Established", "crd/virtplatformconfigs.advisor.kubevirt.io"]);
        // The operator offers the profile. A client that looks just before that and creates just after it fails.
        node.kubectl(&["wait", "--for=create", "--timeout=60s", "vpcfg/load-aware-rebalancing"]);
        node.kubectl(&["apply", "-f", &file("config/samples/loadaware_sample.yaml")]);
        wait_for_phase(node, "ReviewRequired", 60_u64.saturating_sub(start.elapsed().as_secs()));
        println!("plan: {:.1} s after `kubectl apply`", start.elapsed().as_secs_f64());

        patch(node, r#"{"spec":{"action":"Apply"}}"#);
        wait_for_phase(node, "Completed", 300);
        println!("rolled out: {:.1} s after `kubectl apply`", start.elapsed().as_secs_f64());
        node.kubectl(&["get", "machineconfig", "99-worker-psi-karg"]);

        patch(node, r#"{"spec":{"action":"DryRun","restore":{"record":"original"}}}"#);
        wait_for_phase(node, "ReviewRequired", 60);
        patch(node, r#"{"spec":{"action":"Apply"}}"#);
        wait_for_phase(node, "Completed", 300);
        node.kubectl(&["delete", "-f", &file("config/samples/loadaware_sample.yaml")]);
        let selector = "app.kubernetes.io/name=virt-advisor-operator";
        node.kubectl(&["delete", "-f", &file("dist/install.yaml"), "-l", selector]);
        xtask(node, &["uninstall", "--force"]);

        // Pods end, and roles that include ours are written anew, a moment later.
        let mut left = Vec::new();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            left = differences(&before, &everything(node));
            if left.is_empty() {
                return;
            }
        }
        panic!("the cluster is not as it was before:\n{}", left.join("\n"));
    });
}
