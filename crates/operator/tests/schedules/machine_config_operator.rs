//! A model of the machine config operator: it renders the configs of the worker pool, and updates node after node.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use http::Method;
use serde_json::{Value, json};
use testkit::rollout::{NODES, SAMPLE_CONFIGS, SAMPLE_RENDERED, configuration, merged, pool_status};
use tokio::time::sleep;

use crate::{
    api::{kinds::named, store::Key},
    client::{APPLY, MERGE},
    cluster::Server,
    random::Random,
};

const ROLE: &str = "machineconfiguration.openshift.io/role";
const CONFIGS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigs";
pub(crate) const POOL: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools/worker";

/// Runs until it is dropped, with a delay before each step.
pub(crate) async fn run(server: Server, seed: u64) {
    let mut random = Random::of(seed, "mco", 0);
    let slowest = *random.pick(&[300, 3_000, 40_000]);
    loop {
        sleep(random.millis(200, slowest)).await;
        let configs = server.changed("machineconfigs").notified();
        let pools = server.changed("machineconfigpools").notified();
        if !step(&server) {
            tokio::select! {
                biased;
                () = configs => {}
                () = pools => {}
            }
        }
    }
}

/// Makes all steps at once.
pub(crate) fn finish(server: &Server) {
    while step(server) {}
}

/// Makes one step, and returns whether there was something to do.
fn step(server: &Server) -> bool {
    let (pool, configs) = {
        let cluster = server.cluster();
        let pool = cluster.store.get(&Key::new(named("machineconfigpools"), "", "worker")).cloned();
        let configs: Vec<Arc<Value>> = cluster.store.list("machineconfigs").map(|(_, config)| config.clone()).collect();
        (pool, configs)
    };
    let Some(pool) = pool else { return false };
    let parts: Vec<&Arc<Value>> =
        configs.iter().filter(|config| config["metadata"]["labels"][ROLE] == "worker").collect();
    if parts.is_empty() {
        return false;
    }
    let rendered = name(&parts, &pool);
    if pool["spec"]["configuration"]["name"] != rendered.as_str() {
        if !configs.iter().any(|config| config["metadata"]["name"] == rendered.as_str()) {
            render(server, &rendered, &parts);
        }
        let names = parts.iter().filter_map(|part| part["metadata"]["name"].as_str());
        let spec = json!({"spec": {"configuration": configuration(&rendered, names)}});
        let answer = server.request_as("mco", Method::PATCH, &format!("{POOL}?fieldManager=mco"), MERGE, &spec);
        report(server, &answer.body, 0);
        return true;
    }
    let status = &pool["status"];
    let updated = status["updatedMachineCount"].as_i64().unwrap_or_default();
    let runs = status["configuration"]["name"] == rendered.as_str();
    let observed = status["observedGeneration"] == pool["metadata"]["generation"];
    if runs && observed && updated == NODES {
        return false;
    }
    if pool["spec"]["paused"] == true {
        if !observed {
            report(server, &pool, updated);
        }
        return false;
    }
    report(server, &pool, if runs { NODES } else { (updated + 1).min(NODES) });
    true
}

/// The name of a rendered config depends on its parts. The config of the samples keeps its name.
fn name(parts: &[&Arc<Value>], pool: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    let is_sample = |part: &&Arc<Value>| SAMPLE_CONFIGS.iter().any(|name| part["metadata"]["name"] == *name);
    if parts.len() == SAMPLE_CONFIGS.len() && parts.iter().all(is_sample) {
        return SAMPLE_RENDERED.to_owned();
    }
    parts.iter().for_each(|part| part["spec"].to_string().hash(&mut hasher));
    pool["metadata"]["name"].to_string().hash(&mut hasher);
    format!("rendered-worker-{:016x}", hasher.finish())
}

fn render(server: &Server, name: &str, parts: &[&Arc<Value>]) {
    let spec = merged(parts.iter().map(|part| &part["spec"]));
    let kind = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name}, "spec": spec,
    });
    server.request_as("mco", Method::PATCH, &format!("{CONFIGS}/{name}?fieldManager=mco&force=true"), APPLY, &kind);
}

fn report(server: &Server, pool: &Value, updated: i64) {
    let status = pool_status(pool, updated);
    server.request_as(
        "mco",
        Method::PATCH,
        &format!("{POOL}/status?fieldManager=mco"),
        MERGE,
        &json!({"status": status}),
    );
}
