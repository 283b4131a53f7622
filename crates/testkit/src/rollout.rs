//! Machine config rollouts of the worker pool, written by the test in place of the machine config operator.

use serde_json::{Value, json};

use crate::platform::Platform;

const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker";
const CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";

/// The machine configs of the worker pool in the samples.
pub const SAMPLE_CONFIGS: [&str; 4] =
    ["00-worker", "01-worker-kubelet", "97-worker-generated-kubelet", "99-worker-ssh"];
/// The rendered config of the samples.
pub const SAMPLE_RENDERED: &str = "rendered-worker-d9366560000b5d89c5825f832fda0bd6";
/// How many nodes the worker pool of the samples has.
pub const NODES: i64 = 3;

/// The machine configs of our profiles.
pub const PSI: &str = "99-worker-psi-karg";
pub const SWAP: &str = "90-worker-kubelet-swap";

/// One moment of a rollout: the configs beyond those of the samples, and how many nodes run them.
#[derive(Debug, Clone, Copy)]
pub struct Rollout<'a> {
    pub configs: &'a [&'a str],
    pub updated: i64,
}

impl Rollout<'_> {
    /// The name of the rendered config.
    pub fn rendered_name(&self) -> String {
        match self.configs {
            [] => SAMPLE_RENDERED.to_owned(),
            configs => format!("rendered-worker-{}", configs.join("-")),
        }
    }

    /// The rendered config, with the Ignition config of another one.
    pub fn rendered_config(&self, ignition: &Value) -> Value {
        let is_psi = |name: &&&str| name.contains("psi");
        let arguments: Vec<&str> = self.configs.iter().filter(is_psi).map(|_| "psi=1").collect();
        let mut spec = json!({"kernelArguments": arguments});
        if !ignition.is_null() {
            spec["config"] = ignition.clone();
        }
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": self.rendered_name()},
            "spec": spec,
        })
    }

    /// The part of the pool's spec that the machine config operator writes.
    pub fn pool_spec(&self) -> Value {
        json!({"configuration": configuration(&self.rendered_name(), SAMPLE_CONFIGS.iter().chain(self.configs).copied())})
    }

    /// The pool's status, for a spec of this generation.
    pub fn pool_status(&self, generation: &Value) -> Value {
        pool_status(&json!({"metadata": {"generation": generation}, "spec": self.pool_spec()}), self.updated)
    }
}

/// A rendered config and its sources, as `spec.configuration` of a pool has them.
pub fn configuration<'a>(rendered: &str, configs: impl IntoIterator<Item = &'a str>) -> Value {
    let version = "machineconfiguration.openshift.io/v1";
    let source = |name: &str| json!({"apiVersion": version, "kind": "MachineConfig", "name": name});
    json!({"name": rendered, "source": configs.into_iter().map(source).collect::<Vec<_>>()})
}

/// The status of a pool of which so many nodes run the config of its spec.
pub fn pool_status(pool: &Value, updated: i64) -> Value {
    let is_done = updated == NODES;
    let is_paused = pool["spec"]["paused"] == true;
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        let time = "2026-01-01T00:00:00Z";
        json!({"type": kind, "status": status, "lastTransitionTime": time, "reason": "", "message": ""})
    };
    let mut status = json!({
        "observedGeneration": pool["metadata"]["generation"],
        "machineCount": NODES,
        "updatedMachineCount": updated,
        "readyMachineCount": updated,
        "unavailableMachineCount": i32::from(!is_done && !is_paused),
        "degradedMachineCount": 0,
        "conditions": [
            condition("Updated", is_done),
            condition("Updating", !is_done && !is_paused),
            condition("Degraded", false),
            condition("RenderDegraded", false),
            condition("NodeDegraded", false),
        ],
    });
    if is_done {
        status["configuration"] = pool["spec"]["configuration"].clone();
    }
    status
}

impl Platform {
    /// The worker pool is rendered from these configs beyond its own, and so many of its nodes run them.
    pub async fn roll(&self, configs: &[&str], updated: i64) {
        let rollout = Rollout { configs, updated };
        self.render(&rollout).await;
        self.set_pool(rollout.pool_spec(), rollout.pool_status(&Value::Null)).await;
    }

    /// Changes the spec of the worker pool, and then its status for the new generation.
    pub async fn set_pool(&self, spec: Value, mut status: Value) {
        let merge = Some("application/merge-patch+json");
        let pool = self.request("PATCH", POOL, merge, json!({"spec": spec})).await;
        status["observedGeneration"] = pool["metadata"]["generation"].clone();
        self.request("PATCH", &format!("{POOL}/status"), merge, json!({"status": status})).await;
    }

    /// Creates the rendered config, unless it exists.
    async fn render(&self, rollout: &Rollout<'_>) {
        let name = rollout.rendered_name();
        let request = http::Request::get(format!("{CONFIGS}/{name}")).body(Vec::new()).unwrap();
        if self.client.request::<Value>(request).await.is_err() {
            let sample = self.request("GET", &format!("{CONFIGS}/{SAMPLE_RENDERED}"), None, Value::Null).await;
            self.apply("mco", &rollout.rendered_config(&sample["spec"]["config"]), "").await;
        }
    }
}
