//! The nodes of the pools, and the stand-in for the machine config operator that updates them.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{GroupVersionKind, PostParams},
};
use serde_json::{Value, json};
use standins::machine_config::{MachineConfigSettings, StandIn};

use super::test_cluster::TestCluster;

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);
const SHORT: Duration = Duration::from_secs(4);

pub(crate) struct Nodes {
    stand_in: StandIn,
}

impl Nodes {
    /// Creates nodes for both pools and starts the stand-in.
    pub(crate) async fn start(cluster: &TestCluster, workers: usize) -> Nodes {
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        for (role, count) in [("worker", workers), ("master", 3)] {
            for number in 0..count {
                let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
                let node = json!({"metadata": {"name": format!("{role}-{number}"), "labels": labels}});
                nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
            }
        }
        let client = cluster.control_plane.access().client().await.unwrap();
        let stand_in =
            StandIn::start(client, MachineConfigSettings { reboot: SHORT, ..MachineConfigSettings::default() });
        pool_until(cluster, "at rest with its nodes", |pool| count(pool, "readyMachineCount") == workers).await;
        Nodes { stand_in }
    }

    /// Adds a node in trouble that is a worker by its label and that the worker pool does not configure, because custom pools want it.
    pub(crate) async fn add_stranger(cluster: &TestCluster, name: &str) {
        for pool in ["gpu", "infra"] {
            let role = format!("node-role.kubernetes.io/{pool}");
            let manifest = json!({
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": "MachineConfigPool",
                "metadata": {"name": pool},
                "spec": {
                    "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": pool}},
                    "nodeSelector": {"matchLabels": {role: ""}},
                },
            });
            cluster.terminal.run(&format!("kubectl apply --server-side -f - <<'END'\n{manifest}\nEND")).await;
        }
        let annotation = |name: &str| format!("machineconfiguration.openshift.io/{name}");
        let roles = ["worker", "gpu", "infra"].map(|role| (format!("node-role.kubernetes.io/{role}"), json!("")));
        let labels: serde_json::Map<String, Value> = roles.into_iter().collect();
        let annotations = json!({annotation("state"): "Degraded", annotation("desiredConfig"): "rendered-gpu-0123"});
        let node = json!({"metadata": {"name": name, "labels": labels, "annotations": annotations}});
        let nodes: Api<Node> = Api::all(cluster.client.clone());
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }

    /// Waits until one worker is updated, and keeps the next one in its reboot. Reboots must take some time.
    pub(crate) async fn hold_after_the_first(&self, cluster: &TestCluster) {
        pool_until(cluster, "done with one node", |pool| count(pool, "updatedMachineCount") == 1).await;
        self.stand_in.change(|settings| settings.reboot = FOREVER);
    }

    /// Makes reboots long enough to be seen.
    pub(crate) fn slow_down(&self) {
        self.stand_in.change(|settings| settings.reboot = SHORT);
    }

    /// Keeps nodes in their reboot, those that are rebooting and all that follow.
    pub(crate) fn hold(&self) {
        self.stand_in.change(|settings| settings.reboot = FOREVER);
    }

    /// From now on MachineConfigNodes tell the steps of each node. Their definition has to be there.
    pub(crate) fn report(&self) {
        self.stand_in.change(|settings| settings.machine_config_nodes = true);
    }

    /// Makes the update of a node fail, after its drain.
    pub(crate) fn fail(&self, node: &str) {
        self.stand_in.change(|settings| settings.fail.extend([node.to_owned()]));
    }

    /// Lets the update of every node succeed.
    pub(crate) fn recover(&self) {
        self.stand_in.change(|settings| settings.fail.clear());
    }

    /// Makes reboots take no time.
    pub(crate) fn release(&self) {
        self.stand_in.change(|settings| settings.reboot = Duration::ZERO);
    }
}

fn count(pool: &Value, name: &str) -> usize {
    pool["status"][name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Waits until a condition holds for the worker pool.
pub(crate) async fn pool_until(cluster: &TestCluster, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    cluster.object_until(&kind, None, "worker", what, holds).await
}
