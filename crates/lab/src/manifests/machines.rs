//! The stand-in for the machine config operator, and the nodes that it looks after.

use serde_json::{Value, json};
use standins::STAND_IN_LABEL;

use super::{
    Document,
    objects::{Pod, deployment, everywhere, namespace, service_account},
    parts::{USER, container_without_pages, documents},
    rights,
};

const NAMESPACE: &str = "openshift-machine-config-operator";
/// Three of each role, as the samples of a platform at rest have them.
const ROLES: [&str; 2] = ["master", "worker"];
const NODES: usize = 3;

pub(super) fn machine_config_operator() -> Vec<Document> {
    let name = "machine-config-operator";
    let [role, binding] = everywhere(NAMESPACE, name, name, &rights::MACHINE_CONFIG_OPERATOR);
    let containers = vec![container_without_pages(name, &[name])];
    let pod = Pod { name, namespace: NAMESPACE, main: None, user: Some(USER), containers, volumes: Vec::new() };
    let mut documents = documents(
        "A stand-in for the machine config operator, for clusters to develop against. `make dev-setup` installs it. Never\n\
         install it where there is a real one. See docs/dev/mco-stand-in.md.",
        [namespace(NAMESPACE, Value::Null), service_account(NAMESPACE, name), role, binding, deployment(pod)],
    );
    let mut about = "Nodes without machines. The stand-in sends their heartbeats. No pod is scheduled to them.";
    for role in ROLES {
        for number in 1..=NODES {
            documents.push(Document { about, object: node(role, number) });
            about = "";
        }
    }
    documents
}

fn node(role: &str, number: usize) -> Value {
    let labels = json!({format!("node-role.kubernetes.io/{role}"): "", STAND_IN_LABEL: "true"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": format!("{role}-{number}"), "labels": labels},
        "spec": {"taints": [{"key": STAND_IN_LABEL, "value": "true", "effect": "NoSchedule"}]},
    })
}
