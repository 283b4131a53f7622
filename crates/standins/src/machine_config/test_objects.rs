//! Objects for the unit tests.

use std::path::Path;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Node, NodeCondition, NodeStatus, Taint},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

use super::{MachineConfig, MachineConfigPool, names};

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// A MachineConfig for a role; for none if the role is empty.
pub(super) fn machine_config(name: &str, role: &str, spec: Value) -> MachineConfig {
    let labels = if role.is_empty() { json!({}) } else { json!({names::ROLE: role}) };
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// A pool that takes the nodes of its name's role and the machine configs of these roles.
pub(super) fn pool(name: &str, roles: &[&str]) -> MachineConfigPool {
    let object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfigPool",
        "metadata": {"name": name},
        "spec": {
            "machineConfigSelector": {"matchExpressions": [{"key": names::ROLE, "operator": "In", "values": roles}]},
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
        },
    });
    serde_json::from_value(object).unwrap()
}

/// A node with these roles, about which nothing else is known.
pub(super) fn node(name: &str, roles: &[&str]) -> Node {
    let labels = roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), String::new())).collect();
    Node {
        metadata: ObjectMeta { name: Some(name.into()), labels: Some(labels), ..ObjectMeta::default() },
        ..Node::default()
    }
}

/// A ready worker to be varied.
#[derive(Debug, Clone)]
pub(super) struct NodeBuilder {
    pub(super) name: String,
    node: Node,
}

impl NodeBuilder {
    pub(super) fn new(name: &str) -> Self {
        NodeBuilder { name: name.into(), node: node(name, &["worker"]) }.ready(true)
    }

    pub(super) fn build(self) -> Node {
        self.node
    }

    fn annotate(mut self, name: &str, value: &str) -> Self {
        self.node.metadata.annotations.get_or_insert_default().insert(name.into(), value.into());
        self
    }

    pub(super) fn annotated(self, current: &str, desired: &str, state: &str) -> Self {
        self.annotate(names::CURRENT_CONFIG, current).annotate(names::DESIRED_CONFIG, desired).state(state)
    }

    pub(super) fn state(self, state: &str) -> Self {
        self.annotate(names::STATE, state)
    }

    pub(super) fn reason(self, reason: &str) -> Self {
        self.annotate(names::REASON, reason)
    }

    pub(super) fn since(self, second: i64) -> Self {
        self.annotate(names::SINCE, &at(second).to_string())
    }

    pub(super) fn since_nothing(self) -> Self {
        self.annotate(names::SINCE, "long ago")
    }

    pub(super) fn drained(self, config: &str) -> Self {
        self.annotate(names::LAST_APPLIED_DRAIN, &format!("drain-{config}"))
    }

    pub(super) fn kwok(self) -> Self {
        self.annotate(names::KWOK_NODE, "fake")
    }

    pub(super) fn zone(mut self, zone: &str) -> Self {
        self.node.metadata.labels.get_or_insert_default().insert(names::ZONE.into(), zone.into());
        self
    }

    pub(super) fn tainted(mut self, is_set: bool) -> Self {
        let taint = Taint { key: names::UPDATE_IN_PROGRESS.into(), ..Taint::default() };
        self.node.spec.get_or_insert_default().taints = is_set.then(|| vec![taint]);
        self
    }

    pub(super) fn created(mut self, second: i64) -> Self {
        self.node.metadata.creation_timestamp = Some(Time(at(second)));
        self
    }

    pub(super) fn cordoned(mut self) -> Self {
        self.node.spec.get_or_insert_default().unschedulable = Some(true);
        self
    }

    pub(super) fn uncordoned(mut self) -> Self {
        self.node.spec.get_or_insert_default().unschedulable = None;
        self
    }

    pub(super) fn ready(mut self, ready: bool) -> Self {
        let status = if ready { "True" } else { "False" };
        let ready = NodeCondition { type_: "Ready".into(), status: status.into(), ..NodeCondition::default() };
        self.node.status = Some(NodeStatus { conditions: Some(vec![ready]), ..NodeStatus::default() });
        self
    }

    pub(super) fn without_ready(mut self) -> Self {
        self.node.status = None;
        self
    }
}

/// The machine configs and pools of the sample cluster, with the status that the real operator wrote.
pub(super) fn sample() -> (Vec<MachineConfig>, Vec<MachineConfigPool>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/samples/third-party");
    let read = |name: &str| -> Vec<Value> {
        serde_saphyr::from_multiple(&std::fs::read_to_string(folder.join(name)).unwrap()).unwrap()
    };
    let configs = read("machineconfigs.yaml").into_iter().map(|it| serde_json::from_value(it).unwrap()).collect();
    let states = read("status.yaml");
    let pool = |mut pool: Value| {
        let state = states.iter().find(|state| state["metadata"]["name"] == pool["metadata"]["name"]).unwrap();
        pool["status"] = state["status"].clone();
        pool["metadata"]["generation"] = 1.into();
        serde_json::from_value(pool).unwrap()
    };
    (configs, read("machineconfigpools.yaml").into_iter().map(pool).collect())
}
