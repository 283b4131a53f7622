//! Changes of the action: DryRun during an apply, Ignore in every phase, and back.

use devcluster::LogPosition;
use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM, SWAP_ITEM, interval, no_psi};
use crate::webhook::Gate;
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, phase, reason},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

/// An operator that is held at its first write.
async fn held_at_its_first_write() -> (Platform, RunningOperator, Gate, LogPosition) {
    let platform = Platform::shared().await;
    let gate = Gate::closed().await;
    gate.webhook.protect(&platform, &machine_config(PSI, json!({}))).await;
    let operator = RunningOperator::start(&platform).await;
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    gate.reached().await;
    (platform, operator, gate, mark)
}

/// W5 (writes in DryRun), D11 (DryRun writes nothing): what was not written yet is not written any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_in_the_middle_of_an_apply_stops_it_before_the_next_write() {
    let (platform, operator, gate, mark) = held_at_its_first_write().await;
    let applying = platform.config(LOAD_AWARE).await;
    assert_eq!(item(&applying, PSI_ITEM)["state"], "InProgress", "what is about to be written is recorded first");
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    gate.open();

    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(platform.changes_since(mark).await, [format!("patch machineconfigs {PSI}")], "nothing after it");
    assert!(item(&planned, PSI_ITEM)["diff"].as_str().unwrap().ends_with("(no changes)\n"));
    assert_eq!(item(&planned, DESCHEDULER)["state"], "Pending", "this one is still to be approved");
    assert_eq!(platform.find(&descheduler(Value::Null)).await, None);

    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    assert_eq!(
        platform.changes_since(mark).await,
        [format!("patch machineconfigs {PSI}"), "patch kubedeschedulers cluster".into()],
        "what was applied before is not applied again"
    );
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_is_deleted_in_the_middle_of_an_apply_stops_it_too() {
    let (platform, operator, gate, mark) = held_at_its_first_write().await;
    platform.delete(&platform.config(LOAD_AWARE).await).await;
    gate.open();
    let offered = platform.until_phase(LOAD_AWARE, "Ignored").await;
    assert_eq!(offered["status"]["items"], Value::Null, "a new one");
    assert_eq!(platform.changes_since(mark).await, [format!("patch machineconfigs {PSI}")], "nothing after it");
    operator.stop().await;
}

/// W5 (writes in DryRun), D11 (DryRun writes nothing): nodes roll on, and nothing is applied again.
#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_that_is_under_way_is_followed_under_dry_run_too_and_nothing_is_written() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.roll(&[PSI], 1).await;
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let rolling = platform.until_phase(LOAD_AWARE, "InProgress").await;
    assert_eq!(item(&rolling, DESCHEDULER)["state"], "Completed");
    platform.roll(&[PSI], 2).await;
    let message = "MachineConfigPool 'worker' is updating (Updated: 2/3, Ready: 2/3)";
    platform.until(LOAD_AWARE, "followed", |config| item(config, PSI_ITEM)["message"] == message).await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// Ignores the plan and continues it. Plan and targets stay as they are meanwhile.
async fn ignored_and_resumed(platform: &Platform, from: &str, action: &str) {
    let before = platform.until_phase(LOAD_AWARE, from).await;
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "Ignore"})).await;
    let ignored = platform.until_phase(LOAD_AWARE, "Ignored").await;
    assert_eq!(ignored["status"]["items"], before["status"]["items"], "{from}: the plan is kept");
    let holding = ignored["status"]["conditions"].as_array().unwrap().iter().filter(|it| it["status"] == "True");
    let holding: Vec<_> = holding.map(|condition| condition["type"].as_str().unwrap()).collect();
    assert_eq!(holding, ["Ignored", "Ready"], "{from}");
    assert_eq!(platform.changes_since(mark).await, [""; 0], "{from}: nothing is rolled back");
    platform.configure(LOAD_AWARE, json!({"action": action})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ignoring_is_possible_in_every_phase_rolls_nothing_back_and_can_be_ended() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    ignored_and_resumed(&platform, "ReviewRequired", "DryRun").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    ignored_and_resumed(&platform, "InProgress", "Apply").await;
    platform.until(LOAD_AWARE, "waiting again", is_waiting_for_nodes).await;
    platform.roll(&[PSI], 3).await;

    ignored_and_resumed(&platform, "Completed", "Apply").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    platform.patch("kubectl-edit", &interval(180)).await;
    ignored_and_resumed(&platform, "Drifted", "DryRun").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;

    // A stale plan has failed.
    platform.patch("kubectl-edit", &interval(240)).await;
    let stale = |config: &Value| reason(config, "ReviewRequired") == "PlanStale";
    platform.until(LOAD_AWARE, "out of date", stale).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    ignored_and_resumed(&platform, "Failed", "DryRun").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(platform.get(&descheduler(Value::Null)).await["spec"]["deschedulingIntervalSeconds"], 240);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_ignored_takes_part_in_nothing() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.complete(DENSITY, json!({}), &[SWAP]).await;
    platform.configure(LOAD_AWARE, json!({"action": "Ignore"})).await;
    let ignored = platform.until_phase(LOAD_AWARE, "Ignored").await;
    let mark = platform.mark().await;

    platform.patch("kubectl-edit", &interval(180)).await;
    platform.delete(&descheduler(Value::Null)).await;
    // The other plan gets this event, and so it has got all events before.
    platform.patch("kubectl-edit", &machine_config(SWAP, json!({"extensions": ["usbguard"]}))).await;
    let requests = eventually("the other plan looks", async || {
        let requests = platform.requests_since(mark).await;
        requests.iter().any(|request| request.resource == "machineconfigs").then_some(requests)
    })
    .await;
    let about_it = requests.iter().find(|it| it.resource == "kubedeschedulers" || it.name == LOAD_AWARE);
    assert_eq!(about_it, None, "no drift, no request");
    assert_eq!(platform.config(LOAD_AWARE).await, ignored);
    let other = platform.until_phase(DENSITY, "Completed").await;
    assert_eq!(item(&other, SWAP_ITEM)["driftedBy"], Value::Null, "an extension beside our fields is no drift");
    operator.stop().await;
}

/// An edit of the spec that does not change the plan. The observed generation changes all the same.
async fn takes_note(platform: &Platform, profile: &str, timeout: &str, arrives_in: &str) {
    let before = platform.config(profile).await;
    let from = phase(&before).to_owned();
    platform.configure(profile, json!({"waitTimeout": timeout})).await;
    let after = platform.until_phase(profile, arrives_in).await;
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"].as_i64().unwrap() + 1, "{from}");
    assert_eq!(condition(&after, arrives_in)["observedGeneration"], after["metadata"]["generation"], "{from}");
}

/// W29 (lagging observedGeneration), D21 (usual observedGeneration): so that `kubectl wait` comes to an end.
#[tokio::test(flavor = "multi_thread")]
async fn every_phase_takes_note_of_an_edit_of_the_spec() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    takes_note(&platform, LOAD_AWARE, "1h", "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    takes_note(&platform, LOAD_AWARE, "2h", "ReviewRequired").await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    takes_note(&platform, LOAD_AWARE, "3h", "InProgress").await;
    platform.roll(&[PSI], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    takes_note(&platform, LOAD_AWARE, "4h", "Completed").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    takes_note(&platform, LOAD_AWARE, "5h", "ReviewRequired").await;
    operator.stop().await;
}
