//! The nodes of the pools and the stand-in for the operator that takes them through a rollout.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{GroupVersionKind, PostParams},
};
use serde_json::{Value, json};
use standins::machine_config::{MachineConfigSettings, StandIn};

use super::stage::Stage;

/// Longer than any test: a node that reboots for so long stays as it is.
const FOREVER: Duration = Duration::from_secs(24 * 60 * 60);
const SHORT: Duration = Duration::from_secs(4);

pub(crate) struct Nodes {
    stand_in: StandIn,
}

impl Nodes {
    /// Nodes for both pools, and somebody who rolls out to them what MachineConfigs say.
    pub(crate) async fn start(stage: &Stage, workers: usize) -> Nodes {
        let nodes: Api<Node> = Api::all(stage.client.clone());
        for (role, count) in [("worker", workers), ("master", 3)] {
            for number in 0..count {
                let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
                let node = json!({"metadata": {"name": format!("{role}-{number}"), "labels": labels}});
                nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
            }
        }
        let client = stage.cluster.access().client().await.unwrap();
        let stand_in =
            StandIn::start(client, MachineConfigSettings { reboot: SHORT, ..MachineConfigSettings::default() });
        pool_until(stage, "at rest with its nodes", |pool| count(pool, "readyMachineCount") == workers).await;
        Nodes { stand_in }
    }

    /// Waits until one worker is done, and holds the next one in its reboot. Not for reboots that take no time.
    pub(crate) async fn hold_after_the_first(&self, stage: &Stage) {
        pool_until(stage, "done with one node", |pool| count(pool, "updatedMachineCount") == 1).await;
        self.stand_in.change(|settings| settings.reboot = FOREVER);
    }

    /// Reboots take the time that it takes to look at them.
    pub(crate) fn slow_down(&self) {
        self.stand_in.change(|settings| settings.reboot = SHORT);
    }

    /// Nodes that are rebooting stay so, and all that follow.
    pub(crate) fn hold(&self) {
        self.stand_in.change(|settings| settings.reboot = FOREVER);
    }

    /// No reboot takes time any more.
    pub(crate) fn release(&self) {
        self.stand_in.change(|settings| settings.reboot = Duration::ZERO);
    }
}

fn count(pool: &Value, name: &str) -> usize {
    pool["status"][name].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

/// Waits until the pool of the workers is as it should be.
pub(crate) async fn pool_until(stage: &Stage, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigPool");
    stage.object_until(&kind, None, "worker", what, is_it).await
}
