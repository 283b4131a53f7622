//! Reads the nodes and pools of a rollout once: one list per kind, and none if nothing is rolled out.

use advisor::{
    blast_radius::{MachinePool, Node, Reading, Unread},
    rollout_view::{Cluster, NodeReport, is_rolling_out},
};
use api::VirtPlatformConfig;

use super::details::Details;
use crate::{
    impact::observe::{NODES, POOLS},
    reader::{Reader, reading},
    unreadable::Unreadable,
};

const REPORTS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfignodes";

pub(super) async fn cluster(reader: &Reader, configs: &[VirtPlatformConfig]) -> Cluster {
    if !configs.iter().any(is_rolling_out) {
        return Cluster { nodes: Reading::NotServed, pools: Reading::NotServed, reports: Reading::NotServed };
    }
    Cluster {
        nodes: reading(reader.pages(NODES, Node::of).await.0),
        pools: reading(reader.pages(POOLS, MachinePool::of).await.0),
        reports: reading(reader.pages(REPORTS, NodeReport::of).await.0),
    }
}

/// A configuration that this version cannot read.
pub(super) fn unreadable(object: &Unreadable) -> Unread {
    Unread { what: "A configuration", why: object.to_string(), consequence: "its plan, and how far it is" }
}

/// What could not be read, and what is not known because of that.
pub(super) fn unread(cluster: &Cluster, details: &Details) -> Vec<Unread> {
    [
        Unread::of("Nodes", &cluster.nodes, "what each node does"),
        Unread::of("MachineConfigPools", &cluster.pools, "which node belongs to which pool"),
        Unread::of("MachineConfigNodes", &cluster.reports, "the steps of each node beyond its annotations"),
        Unread::of("VirtualMachineInstances", &details.guests, "which virtual machines hold a node"),
        Unread::of("VirtualMachineInstanceMigrations", &details.moves, "which virtual machines are moving"),
        Unread::of("KubeVirt", &details.platform, "what becomes of virtual machines without a strategy of their own"),
        Unread::of("Events", &details.events, "what the operator has told lately"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
