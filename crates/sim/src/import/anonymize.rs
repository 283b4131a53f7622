//! Other names for everything that names something. The same cluster gets the same names each time.

use std::collections::{BTreeMap, BTreeSet};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::ImportedVm;
use crate::scenario::NodeGroup;

/// Keys of Kubernetes itself say nothing about a cluster.
const KEPT: [&str; 2] = ["node.kubernetes.io/", "node-role.kubernetes.io/"];

/// Names that follow from a cluster and the real name, and from which the real one cannot be computed.
#[derive(Debug, Clone)]
pub struct Names {
    cluster: String,
}

impl Names {
    /// `cluster` identifies it, for example by a UID. It is not in the names.
    pub fn new(cluster: &str) -> Self {
        Self { cluster: cluster.to_owned() }
    }

    pub fn name(&self, kind: &str, real: &str) -> String {
        let mut hash = Sha256::new();
        for part in [self.cluster.as_str(), kind, real] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        format!("{kind}-{}", HEXLOWER.encode(&hash.finalize()[..6]))
    }

    fn key(&self, real: &str) -> String {
        if KEPT.iter().any(|prefix| real.starts_with(prefix)) { real.to_owned() } else { self.name("key", real) }
    }

    fn labels(&self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        labels.iter().map(|(key, value)| (self.key(key), self.name("value", value))).collect()
    }
}

/// Renames nodes, VMs, labels and taints, and drops the labels of nodes that no VM asks for.
pub fn anonymize(names: &Names, nodes: &mut [NodeGroup], vms: &mut [ImportedVm]) {
    let asked: BTreeSet<String> = vms.iter().flat_map(|vm| vm.group.affinity.nodes.keys().cloned()).collect();
    for node in nodes {
        node.name = names.name("node", &node.name);
        node.labels.retain(|key, _| asked.contains(key));
        node.labels = names.labels(&node.labels);
        for taint in &mut node.taints {
            taint.key = names.key(&taint.key);
        }
    }
    for vm in vms {
        let group = &mut vm.group;
        group.name = names.name("vm", &group.name);
        group.affinity.nodes = names.labels(&group.affinity.nodes);
        group.affinity.apart = group.affinity.apart.as_ref().map(|word| names.name("apart", word));
        for key in group.tolerations.iter_mut().filter(|key| *key != "*") {
            *key = names.key(key);
        }
    }
}
