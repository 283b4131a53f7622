//! Nodes without machines, and the stand-in for the machine config operator.

use std::{ops::Range, time::Duration};

use devcluster::{Cluster, Identity};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use kube_io::connect;
use serde_json::json;
use standins::machine_config::{COMPONENT, MachineConfigSettings, StandIn};

/// How long a node reboots.
const REBOOT: Duration = Duration::from_millis(1500);

/// Three of each role, as the samples of a platform at rest have them.
pub(crate) async fn start(cluster: &Cluster) -> anyhow::Result<StandIn> {
    let client = connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    for role in ["master", "worker"] {
        create(&client, role, 1..4).await?;
    }
    look_after(cluster).await
}

/// Nodes with these numbers, each with room for virtual machines.
pub(crate) async fn create(client: &Client, role: &str, numbers: Range<usize>) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in numbers {
        let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
        let room = json!({"cpu": "16", "memory": "64Gi", "pods": "250"});
        let metadata = json!({"name": format!("{role}-{number}"), "labels": labels});
        let node = json!({"metadata": metadata, "status": {"allocatable": room, "capacity": room}});
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
        // The API server taints new nodes, and takes the taint off when a controller says so. There is none here.
        let untainted = Patch::Merge(json!({"spec": {"taints": null}}));
        nodes.patch(&format!("{role}-{number}"), &PatchParams::default(), &untainted).await?;
    }
    Ok(())
}

pub(crate) async fn look_after(cluster: &Cluster) -> anyhow::Result<StandIn> {
    let mut config = cluster.access().config(&Identity::Admin).await?;
    // The stand-in itself decides whether an eviction is repeated.
    config.default_retry = false;
    let client = connect::client(config, COMPONENT)?;
    Ok(StandIn::start(client, MachineConfigSettings { reboot: REBOOT, ..MachineConfigSettings::default() }))
}
