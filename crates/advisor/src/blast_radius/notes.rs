//! What is worth a sentence beside the figures: what is not looked at, and why nodes are not drained.

use super::{Instance, Node, ObservedCluster, counted};

/// The machine config operator decides by the topology, and the number of nodes says nearly the same.
pub(super) fn is_drained(observed: &ObservedCluster) -> bool {
    match observed.topology.value() {
        Some(topology) => topology != "SingleReplica",
        None => observed.nodes.items().len() != 1,
    }
}

pub(super) fn notes<'a>(
    observed: &ObservedCluster,
    ambiguous: &[&Node],
    moves: bool,
    instances: impl Iterator<Item = &'a Instance>,
) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(own) = &observed.namespace {
        notes.push(format!(
            "Only namespace {own} is looked at: virtual machines, pods and budgets of others are left out"
        ));
    }
    if !is_drained(observed) {
        let why = match observed.topology.value() {
            Some(topology) => format!("The control plane is one node ({topology}), so nodes are not drained"),
            None => "The cluster has one node, which is not drained; its topology could not be read".into(),
        };
        notes.push(format!("{why}: guests get the kubelet's time for a shutdown and are cut off then"));
    }
    if moves {
        notes.push(
            "What can be moved live still needs a target: whether another node has the CPU of a host-model guest, whether a \
             ResourceQuota has room for a second pod, and whether a backup runs is not looked at"
                .into(),
        );
    }
    if !ambiguous.is_empty() {
        let names: Vec<&str> = ambiguous.iter().map(|node| node.name.as_str()).collect();
        notes.push(format!(
            "Several custom pools select {}: such a node gets no configuration and does not reboot",
            names.join(", ")
        ));
    }
    let dependent = instances.filter(|instance| instance.demand.depends_on_pods).count();
    if dependent > 0 {
        let have = if dependent == 1 { "has" } else { "have" };
        let dependent = counted(dependent, "virtual machine");
        notes.push(format!(
            "Where the other pods are that a pod affinity asks for is not looked at; {dependent} {have} one"
        ));
    }
    notes
}
