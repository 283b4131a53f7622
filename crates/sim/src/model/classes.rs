//! The nodes that labels and taints allow. VMs with the same selector and tolerations form a class.

use std::collections::BTreeMap;

use crate::scenario::{Effect, NodeGroup, VmGroup};

/// The nodes for VMs with the same selector and tolerations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Class {
    /// By node. It is empty if all nodes are allowed.
    allowed: Vec<bool>,
    /// By node: the number of soft taints that the VMs do not tolerate. It is empty if there are none.
    unwanted: Vec<u8>,
}

impl Class {
    pub(crate) fn new(vm: &VmGroup, nodes: &[&NodeGroup]) -> Self {
        let tolerates = |key: &str| vm.tolerations.iter().any(|tolerated| tolerated == key || tolerated == "*");
        let has_labels = |labels: &BTreeMap<String, String>| {
            vm.affinity.nodes.iter().all(|(key, value)| labels.get(key) == Some(value))
        };
        let count = |node: &NodeGroup, effect| {
            node.taints.iter().filter(|taint| taint.effect == effect && !tolerates(&taint.key)).count()
        };
        let allowed: Vec<bool> =
            nodes.iter().map(|node| has_labels(&node.labels) && count(node, Effect::NoSchedule) == 0).collect();
        let unwanted: Vec<u8> =
            nodes.iter().map(|node| u8::try_from(count(node, Effect::PreferNoSchedule)).unwrap_or(u8::MAX)).collect();
        Self {
            allowed: if allowed.iter().all(|allowed| *allowed) { Vec::new() } else { allowed },
            unwanted: if unwanted.iter().all(|count| *count == 0) { Vec::new() } else { unwanted },
        }
    }

    #[inline]
    pub(crate) fn allows(&self, node: u32) -> bool {
        self.allowed.is_empty() || self.allowed[node as usize]
    }

    #[inline]
    pub(crate) fn unwanted(&self, node: u32) -> u32 {
        if self.unwanted.is_empty() { 0 } else { u32::from(self.unwanted[node as usize]) }
    }
}
