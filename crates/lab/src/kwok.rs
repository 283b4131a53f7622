//! The nodes of the lab, which KWOK plays.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeStatus},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

/// How many pods a node takes.
const PODS: &str = "110";

/// What kube-controller-manager has to do in the lab: without the first, nobody takes the not-ready taint off a node; without
/// the second, the pod of a VM that is deleted stays until the VM controller is back; without the third, namespaces never end.
pub const CONTROLLERS: [&str; 3] =
    ["node-lifecycle-controller", "garbage-collector-controller", "namespace-controller"];

/// What KWOK does with nodes and pods, as `Stage` documents. Nodes become Ready and keep their size, pods run as soon as
/// they have a node, and a deleted pod is gone as soon as no finalizer holds it: a VM's pod never goes before the VM
/// controller lets it go.
pub fn stages() -> &'static str {
    include_str!("../../devcluster/src/components/kwok-stages.yaml")
}

/// A node for VMs. It has no taint of its own: the descheduler moves a pod only to nodes that have no more taints than the
/// pod has tolerations, and the soft-tainter needs that room.
pub fn node(name: &str, cores: u32, memory_bytes: u64) -> Node {
    let labels = [
        ("type", "kwok"),
        ("kubevirt.io/schedulable", "true"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/os", "linux"),
        ("node-role.kubernetes.io/worker", ""),
    ];
    let texts = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let size: BTreeMap<String, Quantity> =
        [("cpu", cores.to_string()), ("memory", memory_bytes.to_string()), ("pods", PODS.to_owned())]
            .into_iter()
            .map(|(name, amount)| (name.to_owned(), Quantity(amount)))
            .collect();
    Node {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(texts(&labels)),
            annotations: Some(texts(&[("kwok.x-k8s.io/node", "fake")])),
            ..ObjectMeta::default()
        },
        status: Some(NodeStatus { capacity: Some(size.clone()), allocatable: Some(size), ..NodeStatus::default() }),
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_its_size_and_what_selects_it_and_no_taint() {
        let node = serde_json::to_value(node("kwok-node-1", 32, 128 << 30)).unwrap();
        assert_eq!(node["metadata"]["labels"]["type"], "kwok");
        assert_eq!(node["metadata"]["labels"]["kubevirt.io/schedulable"], "true");
        assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "kwok-node-1");
        assert_eq!(node["metadata"]["labels"]["node-role.kubernetes.io/worker"], "");
        assert_eq!(node["metadata"]["annotations"]["kwok.x-k8s.io/node"], "fake");
        let size = serde_json::json!({"cpu": "32", "memory": "137438953472", "pods": "110"});
        assert_eq!((&node["status"]["allocatable"], &node["status"]["capacity"]), (&size, &size));
        assert!(node["spec"].is_null());
    }
}
