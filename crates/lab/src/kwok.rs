//! The nodes of the lab, which KWOK simulates.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Node, NodeStatus},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

/// How many pods a node takes.
const PODS: &str = "110";

/// The controllers of kube-controller-manager that the lab needs. They remove the not-ready taint of nodes, the pods of
/// deleted VMs while the VM controller is down, and deleted namespaces.
pub const CONTROLLERS: [&str; 3] =
    ["node-lifecycle-controller", "garbage-collector-controller", "namespace-controller"];

/// How KWOK simulates nodes and pods, as `Stage` documents. Nodes become Ready and keep their size, pods run as soon as they
/// have a node, and a deleted pod is removed as soon as it has no finalizer.
pub fn stages() -> &'static str {
    include_str!("../../devcluster/src/components/kwok-stages.yaml")
}

/// A node for VMs, without taints: the descheduler evicts a pod only if a node has no more taints than the pod has
/// tolerations, and the soft-tainter adds taints.
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

/// The name of a node of the lab. Numbers begin with 1.
pub(crate) fn node_name(number: u32) -> String {
    format!("kwok-node-{number}")
}

/// A sort key by which `node-10` comes after `node-9`.
pub(crate) fn by_number(name: &str) -> (String, u64, String) {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or(0), name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_in_the_order_of_their_numbers() {
        let mut names = ["n-10", "n-9", "a", "n-1"];
        names.sort_by_key(|name| by_number(name));
        assert_eq!(names, ["a", "n-1", "n-9", "n-10"]);
    }

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
