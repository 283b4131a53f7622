//! Nodes without machines, and the stand-in for the machine config operator.

use std::time::Duration;

use devcluster::{Cluster, Identity};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, api::PostParams};
use kube_io::connect;
use serde_json::json;
use standins::machine_config::{COMPONENT, MachineConfigSettings, StandIn};

/// How long a node reboots.
const REBOOT: Duration = Duration::from_millis(1500);

/// Three of each role, as the samples of a platform at rest have them.
pub(crate) async fn start(cluster: &Cluster) -> anyhow::Result<StandIn> {
    let client = connect::client(cluster.access().config(&Identity::Admin).await?, "xtask")?;
    for role in ["master", "worker"] {
        create(&client, role, 3).await?;
    }
    look_after(cluster).await
}

pub(crate) async fn create(client: &Client, role: &str, count: usize) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=count {
        let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
        let node = json!({"metadata": {"name": format!("{role}-{number}"), "labels": labels}});
        nodes.create(&PostParams::default(), &serde_json::from_value(node)?).await?;
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
