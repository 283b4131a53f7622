//! What an import found, and what it had to assume.

use std::collections::BTreeMap;

use super::recording::Filled;

/// Counts of an import.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub nodes: usize,
    pub vms: usize,
    /// VMs that run nowhere yet.
    pub vms_without_node: usize,
    /// VMs that cannot be migrated, by cause.
    pub not_migratable: BTreeMap<String, usize>,
    /// Samples that were there, of VMs and nodes.
    pub samples: u64,
    /// Samples between others that were missing, and how many VMs or nodes miss some.
    pub missing: u64,
    pub with_gaps: usize,
    pub longest_gap_seconds: u64,
    /// VMs that came during the span, and VMs whose samples end before it does.
    pub younger: usize,
    pub ended: usize,
    /// VMs that were on more than one node.
    pub moved: usize,
    /// VMs whose load is what their object states.
    pub stated: usize,
    /// VMs whose CPU or memory use is guessed from that of their node.
    pub guessed: [usize; 2],
    /// VMs of which nothing is known.
    pub assumed: usize,
    /// Nodes without samples of CPU and memory use.
    pub nodes_without_use: usize,
    /// Nodes whose VMs together use clearly more than the node.
    pub beyond_node: usize,
}

impl Summary {
    pub(super) fn recorded(&mut self, filled: &Filled, step: u64) {
        let gone = filled.missing + filled.before + filled.after;
        self.samples += (filled.values.len() - gone) as u64;
        self.missing += filled.missing as u64;
        self.with_gaps += usize::from(filled.missing > 0);
        self.longest_gap_seconds = self.longest_gap_seconds.max(filled.longest_gap as u64 * step);
    }
}
