//! The other packages, each installed and led to a plan: the chart by Helm, and the bundle as OLM would install it.

use std::{fs, process::Command, time::Instant};

use devcluster::tools::{self, Program};
use realnode::Node;
use serde_json::{Value, json};

use super::{DEPLOYMENT, NAMESPACE, install_platform, offer, wait_for_phase, write_operator};
use crate::commands::{printed, root};

const RBAC: &str = "rbac.authorization.k8s.io";
const BUNDLE: &str = "dist/bundle/manifests";

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn the_chart_leads_to_a_plan_and_leaves_configurations_behind() {
    let prepare = |folder: &std::path::Path| {
        write_operator(folder);
        tools::ensure(Program::Helm).unwrap();
    };
    realnode::run(prepare, async |node| {
        install_platform(node);
        let helm = |args: &[&str]| {
            let mut command = Command::new(tools::ensure(Program::Helm).unwrap());
            command.args(args).args(["--namespace", NAMESPACE]).env("KUBECONFIG", node.kubeconfig());
            printed(&command.env("HOME", node.archives()).current_dir(root()).output().unwrap())
        };
        let start = Instant::now();
        helm(&["install", "virt-advisor-operator", "dist/chart", "--wait", "--timeout", "60s"]);
        offer(node);
        wait_for_phase(node, "ReviewRequired", 60_u64.saturating_sub(start.elapsed().as_secs()));
        println!("plan: {:.1} s after `helm install`", start.elapsed().as_secs_f64());
        helm(&["uninstall", "virt-advisor-operator", "--wait"]);
        node.kubectl(&["get", "vpcfg", "load-aware-rebalancing"]);
        assert!(!node.try_kubectl(&["get", "deployment", "-n", NAMESPACE, DEPLOYMENT]).status.success());
    });
}

#[test]
#[ignore = "needs root, runc and plugins for the network of pods: `make node-test` says what is missing, and runs it"]
fn the_deployment_of_the_bundle_leads_to_a_plan_with_the_rights_of_the_bundle() {
    realnode::run(write_operator, async |node| {
        install_platform(node);
        apply(node, &installed_by_olm());
        node.rollout(NAMESPACE, DEPLOYMENT);
        offer(node);
        wait_for_phase(node, "ReviewRequired", 60);
    });
}

fn apply(node: &Node, objects: &[Value]) {
    let path = node.archives().join("bundle.json");
    fs::write(&path, json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).unwrap();
    node.kubectl(&["apply", "--server-side", "-f", path.to_str().unwrap()]);
}

/// What OLM makes of a bundle on Kubernetes: its manifests, and accounts, roles and Deployments by its description.
fn installed_by_olm() -> Vec<Value> {
    let files = fs::read_dir(root().join(BUNDLE)).unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<Value> =
        files.map(|path| serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()).collect();
    let description = all.iter().find(|object| object["kind"] == "ClusterServiceVersion").unwrap();
    let install = &description["spec"]["install"]["spec"];
    let list = |field: &str| install[field].as_array().cloned().unwrap_or_default();
    // Kinds of OpenShift's console and of the Prometheus operator are not served here.
    let is_served = |object: &&Value| {
        let group = object["apiVersion"].as_str().unwrap();
        !["operators.coreos.com", "console.openshift.io", "monitoring.coreos.com"]
            .iter()
            .any(|it| group.starts_with(it))
    };
    let mut objects: Vec<Value> = all.iter().filter(is_served).cloned().collect();
    for object in objects.iter_mut().filter(|object| is_namespaced(object)) {
        object["metadata"]["namespace"] = NAMESPACE.into();
    }
    for (field, role_kind) in [("clusterPermissions", "ClusterRole"), ("permissions", "Role")] {
        for permission in list(field) {
            let account = permission["serviceAccountName"].as_str().unwrap().to_owned();
            let metadata = json!({"name": format!("bundle-{account}"), "namespace": NAMESPACE});
            let rules = &permission["rules"];
            let role = json!({"apiGroup": RBAC, "kind": role_kind, "name": metadata["name"]});
            let subject = json!({"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE});
            let version = format!("{RBAC}/v1");
            objects.push(json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}}));
            objects.push(json!({"apiVersion": version, "kind": role_kind, "metadata": metadata, "rules": rules}));
            objects.push(json!({
                "apiVersion": version, "kind": format!("{role_kind}Binding"), "metadata": metadata,
                "roleRef": role, "subjects": [subject],
            }));
        }
    }
    objects.extend(list("deployments").iter().map(|deployment| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "spec": deployment["spec"],
            "metadata": {"name": deployment["name"], "namespace": NAMESPACE, "labels": deployment["label"]},
        })
    }));
    for object in objects.iter_mut().filter(|object| !is_namespaced(object)) {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    // An account that has rights of both kinds is listed once.
    let mut accounts = std::collections::BTreeSet::new();
    objects
        .retain(|object| object["kind"] != "ServiceAccount" || accounts.insert(object["metadata"]["name"].to_string()));
    objects
}

fn is_namespaced(object: &Value) -> bool {
    !["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "PriorityClass"]
        .contains(&object["kind"].as_str().unwrap())
}
