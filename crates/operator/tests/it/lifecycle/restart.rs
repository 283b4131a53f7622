//! Restarts of the operator and of the API server.

use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM, catch_up, interval, no_psi};
use crate::webhook::Gate;
use testkit::{
    configs::{is_waiting_for_nodes, item},
    eventually,
    platform::{LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::PSI,
    running_operator::RunningOperator,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_nobody_heard_the_answer_of_is_found_or_made_and_the_plan_goes_on() {
    let platform = Platform::shared().await;
    let gate = Gate::closed().await;
    gate.webhook.protect(&platform, &machine_config(PSI, json!({}))).await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    gate.reached().await;
    operator.stop().await;
    gate.open();
    let operator = RunningOperator::start(&platform).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.roll(&[PSI], 3).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    for name in [PSI_ITEM, DESCHEDULER] {
        assert_eq!(item(&done, name)["state"], "Completed", "{name}");
    }
    let config = platform.get(&machine_config(PSI, Value::Null)).await;
    assert_eq!(config["metadata"]["generation"], 1, "whoever wrote it, it was written once");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_process_finds_everything_as_it_was_and_writes_nothing() {
    let platform = Platform::shared().await;
    let mut operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    for step in ["ReviewRequired", "InProgress", "Completed", "Drifted", "Ignored"] {
        match step {
            "InProgress" => {
                platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
                platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
            }
            "Completed" => platform.roll(&[PSI], 3).await,
            "Drifted" => drop(platform.patch("kubectl-edit", &interval(180)).await),
            "Ignored" => drop(platform.configure(LOAD_AWARE, json!({"action": "Ignore"})).await),
            _ => {}
        }
        let before = platform.until_phase(LOAD_AWARE, step).await;
        operator.stop().await;
        let mark = platform.mark().await;
        operator = RunningOperator::start(&platform).await;
        if step != "Ignored" {
            eventually("it has looked", async || {
                let requests = platform.requests_since(mark).await;
                requests.iter().any(|request| request.resource == "kubedeschedulers").then_some(())
            })
            .await;
        }
        if platform.find(&descheduler(Value::Null)).await.is_some() && step != "Ignored" {
            catch_up(&platform).await;
        }
        assert_eq!(platform.config(LOAD_AWARE).await, before, "{step}");
        assert_eq!(platform.changes_since(mark).await, [""; 0], "{step}");
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_the_operator_is_away_is_found_when_it_is_back() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    operator.stop().await;
    platform.patch("kubectl-edit", &interval(180)).await;
    let operator = RunningOperator::start(&platform).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], "kubectl-edit");
    operator.stop().await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_survive_an_api_server_that_forgets_everything_they_know() {
    let platform = Platform::at_rest().await;
    platform.install().await;
    let mut operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.cluster.expire_watches().await.unwrap();
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    platform.patch("kubectl-edit", &interval(60)).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    platform.configure(LOAD_AWARE, json!({"action": "Ignore"})).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    // An API server that has just started knows no roles yet and forbids everything.
    operator.end().await;
}
