//! Two profiles whose plans reboot the same nodes: the operator, and the stand-in for the machine config operator.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::StreamExt;
use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};
use standins::machine_config::{Machine, MachineConfigSettings, StandIn, names};
use testkit::{
    configs::condition,
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

type RenderedConfigs = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

/// A sample platform whose worker nodes the stand-in updates.
async fn platform(render_delay: Duration) -> (Platform, StandIn) {
    let platform = Platform::at_rest().await;
    platform.install().await;
    let nodes: Api<Node> = Api::all(platform.client.clone());
    for (role, number) in ["worker", "master"].into_iter().flat_map(|role| (0..3).map(move |number| (role, number))) {
        let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
        let node = json!({"metadata": {"name": format!("{role}-{number}"), "labels": labels}});
        nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }
    let settings =
        MachineConfigSettings { render_delay, reboot: Duration::from_millis(50), ..MachineConfigSettings::default() };
    let stand_in = StandIn::start(platform.client.clone(), settings);
    eventually("all nodes are adopted", async || {
        let nodes = nodes.list(&ListParams::default()).await.unwrap();
        nodes.iter().map(Machine::of).all(|node| node.is_done() && node.is_in_service()).then_some(())
    })
    .await;
    (platform, stand_in)
}

/// Records the rendered configs that each worker runs, one after another.
fn record(platform: &Platform) -> (RenderedConfigs, tokio::task::JoinHandle<()>) {
    let (configs, nodes) = (RenderedConfigs::default(), Api::<Node>::all(platform.client.clone()));
    let written = configs.clone();
    let task = tokio::spawn(async move {
        let workers = watcher::Config::default().labels("node-role.kubernetes.io/worker");
        let mut events = std::pin::pin!(watcher(nodes, workers).applied_objects().default_backoff());
        while let Some(event) = events.next().await {
            let Ok(node) = event else { continue };
            let Some(config) = node.annotations().get(names::CURRENT_CONFIG).cloned() else { continue };
            let mut written = written.lock().unwrap();
            let configs: &mut Vec<String> = written.entry(node.name_any()).or_default();
            if configs.last() != Some(&config) {
                configs.push(config);
            }
        }
    });
    (configs, task)
}

fn approved(approval: Value) -> Value {
    json!({"action": "Apply", "approval": approval})
}

/// A new config of a node means a reboot of it.
#[tokio::test(flavor = "multi_thread")]
async fn two_plans_that_start_together_reboot_each_node_once() {
    // The second plan has to write its config before the first is rendered. A real operator waits for five seconds.
    let (platform, stand_in) = platform(Duration::from_secs(3)).await;
    let (configs, task) = record(&platform);
    let operator = RunningOperator::start(&platform).await;
    let start = Timestamp::now().checked_add(15.seconds()).unwrap();
    for profile in [LOAD_AWARE, DENSITY] {
        platform.configure(profile, approved(json!({"notBefore": start}))).await;
    }
    for profile in [LOAD_AWARE, DENSITY] {
        let scheduled = platform.until_phase(profile, "Scheduled").await;
        let message = condition(&scheduled, "Scheduled")["message"].as_str().unwrap();
        assert!(message.starts_with("Plan approved. It starts at "), "{message}");
    }
    for profile in [LOAD_AWARE, DENSITY] {
        platform.until_phase(profile, "Completed").await;
    }
    let configs = configs.lock().unwrap().clone();
    assert_eq!(configs.len(), 3, "{configs:?}");
    assert!(configs.values().all(|configs| configs.len() == 2), "the first config and one other: {configs:?}");
    operator.stop().await;
    task.abort();
    stand_in.shutdown().await.unwrap();
}

/// Without a common start the nodes that are done reboot twice, and the second plan says so before it is approved.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_says_that_it_reboots_nodes_again_while_others_are_being_updated() {
    let (platform, stand_in) = platform(Duration::from_millis(20)).await;
    let operator = RunningOperator::start(&platform).await;
    // One node is never updated, so the pool stays on its way.
    stand_in.change(|settings| settings.fail.extend(["worker-1".to_owned()]));
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "one node is done", |config| config.to_string().contains("Updated: 1/3")).await;

    platform.configure(DENSITY, json!({"action": "DryRun"})).await;
    let review = platform.until_phase(DENSITY, "ReviewRequired").await;
    let notes = review["status"]["notes"].to_string();
    assert!(
        notes.contains("MachineConfigPool 'worker' is being updated already, and 1 of 3 nodes are done"),
        "{notes}"
    );
    operator.stop().await;
    stand_in.shutdown().await.unwrap();
}
