//! Heartbeats of nodes without machines, in clusters whose node lifecycle controller expects them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Node},
    apimachinery::pkg::apis::meta::v1::MicroTime,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use tracing::warn;

use super::names::FIELD_MANAGER;
use crate::STAND_IN_LABEL;

const NAMESPACE: &str = "kube-node-lease";
/// As a kubelet does it. Without one for 50 s, a node counts as lost.
const INTERVAL: Duration = Duration::from_secs(10);
const LEASE_SECONDS: i32 = 40;

/// Renews the leases of all nodes that are labeled as ours, for as long as the future is polled.
pub async fn keep_alive(client: Client) {
    let nodes: Api<Node> = Api::all(client.clone());
    let leases: Api<Lease> = Api::namespaced(client, NAMESPACE);
    loop {
        if let Err(error) = renew(&nodes, &leases).await {
            warn!(target: FIELD_MANAGER, %error, "stand-in: heartbeats of nodes");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn renew(nodes: &Api<Node>, leases: &Api<Lease>) -> kube::Result<()> {
    let ours = ListParams::default().labels(&format!("{STAND_IN_LABEL}=true"));
    for node in nodes.list_metadata(&ours).await? {
        let name = node.name_any();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {
                "holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": MicroTime(Timestamp::now()),
            },
        });
        leases.patch(&name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(lease)).await?;
    }
    Ok(())
}
