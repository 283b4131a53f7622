//! Pools on their way: what they do is told with its cause, standstill is noticed, and only what the nodes run is completed.

use std::time::Duration;

use advisor::machine::Intervals;
use operator::OperatorSettings;
use serde_json::{Value, json};

use super::{PSI_ITEM, events::until_event};
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, phase},
    platform::{LOAD_AWARE, Platform, machine_config},
    rollout::{PSI, pool_status},
    running_operator::RunningOperator,
};

const NODE: &str = "Node worker-3 is reporting: \"failed to drain node: worker-3 after 1 hour\"";

/// What the status says about the worker pool.
fn pool(config: &Value) -> &Value {
    &item(config, PSI_ITEM)["rollout"][0]
}

/// A plan whose machine config is written and not rolled out.
async fn rolling(platform: &Platform, spec: Value) {
    let mut spec = spec;
    spec["action"] = "Apply".into();
    platform.configure(LOAD_AWARE, spec).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
}

async fn exists(platform: &Platform) -> Option<()> {
    platform.find(&machine_config(PSI, Value::Null)).await.map(|_| ())
}

/// Sets the status of the worker pool: so many nodes are updated, and one is degraded with this message.
async fn degrade(platform: &Platform, updated: i64, message: &str) {
    let mut status = pool_status(&json!({}), updated);
    status["degradedMachineCount"] = 1.into();
    for condition in status["conditions"].as_array_mut().unwrap() {
        if condition["type"] == "NodeDegraded" || condition["type"] == "Degraded" {
            condition["status"] = "True".into();
        }
        if condition["type"] == "NodeDegraded" {
            condition["message"] = message.into();
        }
    }
    platform.set_pool(json!({}), status).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_cannot_be_drained_is_named_at_once_and_forgotten_when_it_recovers() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    rolling(&platform, json!({})).await;
    platform.roll(&[PSI], 1).await;
    let updating = |config: &Value| pool(config)["state"] == "Updating";
    let config = platform.until(LOAD_AWARE, "updating", updating).await;
    assert_eq!((&pool(&config)["updated"], &pool(&config)["total"]), (&json!(1), &json!(3)), "{config:#}");

    degrade(&platform, 1, NODE).await;
    let degraded = |config: &Value| pool(config)["state"] == "Degraded";
    let config = platform.until(LOAD_AWARE, "degraded", degraded).await;
    assert_eq!((&pool(&config)["pool"], &pool(&config)["cause"]), (&json!("worker"), &json!(NODE)));
    assert_eq!(item(&config, PSI_ITEM)["message"], format!("MachineConfigPool 'worker' is degraded: {NODE}"));
    let told = "Warning RolloutDegraded: enable-psi-metrics: MachineConfigPool 'worker' is Degraded (was Updating, 1 of 3 nodes \
                updated)";
    until_event(&platform, &format!("{told}: {NODE}")).await;

    platform.roll(&[PSI], 3).await;
    let config = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(item(&config, PSI_ITEM)["rollout"], Value::Null);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_stands_still_is_stalled_until_it_moves() {
    let platform = Platform::shared().await;
    let intervals = Intervals { stuck_after: Duration::from_secs(2), ..Intervals::default() };
    let settings = OperatorSettings { intervals, ..OperatorSettings::default() };
    let operator = RunningOperator::start_with(&platform, settings).await;
    rolling(&platform, json!({})).await;
    platform.roll(&[PSI], 1).await;
    // Long before the next regular look.
    let stalled = |config: &Value| condition(config, "Stalled")["reason"] == "NoProgress";
    let config = platform.until(LOAD_AWARE, "stalled", stalled).await;
    assert_eq!((phase(&config), &pool(&config)["state"]), ("InProgress", &json!("NoProgress")));
    assert_eq!(
        (condition(&config, "Ready")["status"].as_str(), condition(&config, "Reconciling")),
        (Some("False"), &Value::Null)
    );
    platform.roll(&[PSI], 2).await;
    let moving = |config: &Value| condition(config, "Reconciling")["status"] == "True";
    let config = platform.until(LOAD_AWARE, "moving again", moving).await;
    assert_eq!((condition(&config, "Stalled"), &pool(&config)["state"]), (&Value::Null, &json!("Updating")));
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// Found by random edits: such a plan was InProgress without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_is_deleted_on_its_way_is_drift_and_is_applied_again_where_the_spec_asks_for_it() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    rolling(&platform, json!({})).await;
    platform.roll(&[PSI], 1).await;
    platform.delete(&machine_config(PSI, Value::Null)).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    let told = format!("MachineConfig '{PSI}' was deleted");
    assert_eq!(
        (&pool(&drifted)["cause"], &item(&drifted, PSI_ITEM)["driftedBy"]["deleted"]),
        (&json!(told), &json!(true))
    );
    until_event(&platform, &format!("Warning ItemDrifted: {told}")).await;

    platform.configure(LOAD_AWARE, json!({"bypassOptimisticLock": true})).await;
    testkit::eventually("it is applied with the new plan", async || exists(&platform).await).await;
    platform.until(LOAD_AWARE, "rolling again", |config| pool(config)["state"] == "Updating").await;
    platform.delete(&machine_config(PSI, Value::Null)).await;
    testkit::eventually("it is applied again", async || exists(&platform).await).await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// Found by random edits: "all 3 nodes updated", of the content before.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_its_pool_has_with_other_content_is_completed_when_the_nodes_run_it() {
    let platform = Platform::shared().await;
    platform.apply("installer", &machine_config(PSI, json!({"kernelArguments": ["psi=0"]})), "").await;
    platform.roll(&[PSI], 3).await;
    platform.delete(&machine_config(PSI, Value::Null)).await;
    let operator = RunningOperator::start(&platform).await;
    rolling(&platform, json!({})).await;
    platform.roll(&[PSI], 2).await;
    platform.until(LOAD_AWARE, "rolling", |config| pool(config)["updated"] == 2).await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// Found by a random schedule: the pool had nothing to render, and was waited for without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_config_that_is_set_back_before_its_pool_noticed_is_completed_without_a_rollout() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.configure(LOAD_AWARE, json!({"options": super::no_psi()})).await;
    let removed = |config: &Value| item(config, PSI_ITEM)["operation"] == "Delete" && phase(config) == "InProgress";
    platform.until(LOAD_AWARE, "removed", removed).await;
    platform.configure(LOAD_AWARE, json!({"options": {"loadAware": {"enablePSIMetrics": true}}})).await;
    let config = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(item(&config, PSI_ITEM)["state"], "Completed");
    assert!(platform.find(&machine_config(PSI, Value::Null)).await.is_some());
    operator.stop().await;
}
