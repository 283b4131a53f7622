//! The machine config operator, played by hand: what the worker pool runs, and how far it is.

use serde_json::{Value, json};

use crate::platform::{Platform, machine_config};

const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker";
const CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";

/// What the pool consists of at rest, and what that was rendered to.
const OWN: [&str; 4] = ["00-worker", "01-worker-kubelet", "97-worker-generated-kubelet", "99-worker-ssh"];
const RENDERED: &str = "rendered-worker-d9366560000b5d89c5825f832fda0bd6";

pub(crate) const PSI: &str = "99-worker-psi-karg";
pub(crate) const SWAP: &str = "90-worker-kubelet-swap";

impl Platform {
    /// The worker pool has taken in these configs beyond its own, and so many of its three nodes run them.
    pub(crate) async fn roll(&self, configs: &[&str], updated: i64) {
        let version = "machineconfiguration.openshift.io/v1";
        let source = |name: &&str| json!({"apiVersion": version, "kind": "MachineConfig", "name": name});
        let sources: Vec<Value> = OWN.iter().chain(configs).map(source).collect();
        let configuration = json!({"name": self.render(configs).await, "source": sources});
        let done = updated == 3;
        let condition = |kind: &str, holds: bool| {
            let status = if holds { "True" } else { "False" };
            let time = "2026-01-01T00:00:00Z";
            json!({"type": kind, "status": status, "lastTransitionTime": time, "reason": "", "message": ""})
        };
        let mut status = json!({
            "machineCount": 3,
            "updatedMachineCount": updated,
            "readyMachineCount": updated,
            "unavailableMachineCount": i32::from(!done),
            "degradedMachineCount": 0,
            "conditions": [
                condition("Updated", done),
                condition("Updating", !done),
                condition("Degraded", false),
                condition("RenderDegraded", false),
                condition("NodeDegraded", false),
            ],
        });
        if done {
            status["configuration"] = configuration.clone();
        }
        self.set_pool(json!({"configuration": configuration}), status).await;
    }

    /// Changes the spec of the worker pool, and what its controller reports of the result.
    pub(crate) async fn set_pool(&self, spec: Value, mut status: Value) {
        let merge = Some("application/merge-patch+json");
        let pool = self.request("PATCH", POOL, merge, json!({"spec": spec})).await;
        status["observedGeneration"] = pool["metadata"]["generation"].clone();
        self.request("PATCH", &format!("{POOL}/status"), merge, json!({"status": status})).await;
    }

    /// The name of what these configs are rendered to; it is there afterwards.
    async fn render(&self, configs: &[&str]) -> String {
        if configs.is_empty() {
            return RENDERED.to_owned();
        }
        let name = format!("rendered-worker-{}", configs.join("-"));
        let known = http::Request::get(format!("{CONFIGS}/{name}")).body(Vec::new()).unwrap();
        if self.client.request::<Value>(known).await.is_err() {
            let arguments: Vec<&str> = configs.iter().filter(|name| name.contains("psi")).map(|_| "psi=1").collect();
            let base = self.request("GET", &format!("{CONFIGS}/{RENDERED}"), None, Value::Null).await;
            let mut rendered =
                machine_config(&name, json!({"kernelArguments": arguments, "config": base["spec"]["config"]}));
            rendered["metadata"]["labels"] = json!({});
            self.apply("mco", &rendered, "").await;
        }
        name
    }
}
