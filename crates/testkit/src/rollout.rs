//! Machine config rollouts of the worker pool, written by the test in place of the machine config operator.

use std::hash::{DefaultHasher, Hash, Hasher};

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

    /// The part of the pool's spec that the machine config operator writes.
    pub fn pool_spec(&self) -> Value {
        pool_spec(&self.rendered_name(), self.configs)
    }

    /// The pool's status, for a spec of this generation.
    pub fn pool_status(&self, generation: &Value) -> Value {
        pool_status(&json!({"metadata": {"generation": generation}, "spec": self.pool_spec()}), self.updated)
    }
}

/// The part of the worker pool's spec that the machine config operator writes.
pub fn pool_spec(rendered: &str, configs: &[&str]) -> Value {
    json!({"configuration": configuration(rendered, SAMPLE_CONFIGS.iter().chain(configs).copied())})
}

/// The rendered config from these specs. Its name follows from its content, as in a real cluster.
pub fn rendered_config<'a>(specs: impl IntoIterator<Item = &'a Value>) -> (String, Value) {
    let spec = merged(specs);
    let mut hasher = DefaultHasher::new();
    spec.to_string().hash(&mut hasher);
    let name = format!("rendered-worker-{:016x}", hasher.finish());
    let config = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name},
        "spec": spec,
    });
    (name, config)
}

/// The specs of machine configs, merged as the machine config operator does it: arguments one after another, files and units by their
/// keys.
pub fn merged<'a>(specs: impl IntoIterator<Item = &'a Value>) -> Value {
    let (mut arguments, mut files, mut units): (Vec<Value>, Vec<Value>, Vec<Value>) = Default::default();
    let list = |spec: &Value, at: &str| spec.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let merge = |merged: &mut Vec<Value>, entries: Vec<Value>, key: &str| {
        for entry in entries {
            merged.retain(|known| known[key] != entry[key]);
            merged.push(entry);
        }
    };
    for spec in specs {
        arguments.extend(list(spec, "/kernelArguments"));
        merge(&mut files, list(spec, "/config/storage/files"), "path");
        merge(&mut units, list(spec, "/config/systemd/units"), "name");
    }
    let config = json!({"ignition": {"version": "3.5.0"}, "storage": {"files": files}, "systemd": {"units": units}});
    json!({"kernelArguments": arguments, "config": config})
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
    /// The worker pool is rendered from these configs, as they are, beyond its own, and so many of its nodes run them.
    pub async fn roll(&self, configs: &[&str], updated: i64) {
        let name = self.render(configs).await;
        let spec = pool_spec(&name, configs);
        let status = pool_status(&json!({"spec": spec}), updated);
        self.set_pool(spec, status).await;
    }

    /// Changes the spec of the worker pool, and then its status for the new generation.
    pub async fn set_pool(&self, spec: Value, mut status: Value) {
        let merge = Some("application/merge-patch+json");
        let pool = self.request("PATCH", POOL, merge, json!({"spec": spec})).await;
        status["observedGeneration"] = pool["metadata"]["generation"].clone();
        self.request("PATCH", &format!("{POOL}/status"), merge, json!({"status": status})).await;
    }

    /// Creates the rendered config, unless it exists. A config that does not exist has no content.
    async fn render(&self, configs: &[&str]) -> String {
        if configs.is_empty() {
            return SAMPLE_RENDERED.to_owned();
        }
        let mut specs = Vec::new();
        for config in [SAMPLE_RENDERED].iter().chain(configs) {
            let request = http::Request::get(format!("{CONFIGS}/{config}")).body(Vec::new()).unwrap();
            let config = self.client.request::<Value>(request).await.unwrap_or_default();
            specs.push(config["spec"].clone());
        }
        let (name, rendered) = rendered_config(&specs);
        self.apply("mco", &rendered, "").await;
        name
    }
}
