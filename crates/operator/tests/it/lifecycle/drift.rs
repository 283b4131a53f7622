//! Drift: it is reported at once, with the manager who caused it, and not reverted by default.

use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM, SWAP_ITEM, catch_up, events::until_event, interval, no_psi};
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, phase, reason},
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

fn culprit<'a>(config: &'a Value, name: &str) -> &'a str {
    item(config, name)["driftedBy"]["manager"].as_str().unwrap_or("nobody")
}

/// W9 (stale Drifted), W22 (foreign fields as drift), D9 (exact Completed), D29 (drift by watch): labels too, and
/// long before the next recheck.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_we_manage_is_watched_and_recovers_when_it_is_set_back() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    let mark = platform.mark().await;
    let customized = |name: &str, value: Value| descheduler(json!({"profileCustomizations": {name: value}}));
    let with_role = |role: Value| {
        let mut config = machine_config(PSI, json!({}));
        config["metadata"]["labels"]["machineconfiguration.openshift.io/role"] = role;
        config
    };
    let arguments = |arguments: &[&str]| machine_config(PSI, json!({"kernelArguments": arguments}));
    for (case, name, change, back, who) in [
        ("another value", DESCHEDULER, interval(180), interval(60), "kubectl-edit"),
        (
            "a value within a map",
            DESCHEDULER,
            customized("devEnableSoftTainter", json!(false)),
            customized("devEnableSoftTainter", json!(true)),
            "kubectl-edit",
        ),
        // A removed field has no manager.
        (
            "no value",
            DESCHEDULER,
            customized("devDeviationThresholds", Value::Null),
            customized("devDeviationThresholds", json!("AsymmetricLow")),
            "unknown",
        ),
        ("a list", PSI_ITEM, arguments(&["psi=1", "quiet"]), arguments(&["psi=1"]), "kubectl-edit"),
        ("no label", PSI_ITEM, with_role(Value::Null), with_role(json!("worker")), "unknown"),
        ("another label", PSI_ITEM, with_role(json!("infra")), with_role(json!("worker")), "kubectl-edit"),
    ] {
        platform.patch("kubectl-edit", &change).await;
        let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
        assert_eq!(culprit(&drifted, name), who, "{case}");
        let other = if name == DESCHEDULER { PSI_ITEM } else { DESCHEDULER };
        assert_eq!(culprit(&drifted, other), "nobody", "{case}");
        assert_eq!(reason(&drifted, "Drifted"), "DriftDetected", "{case}");
        assert_eq!(condition(&drifted, "Completed")["reason"], "ConfigurationDrifted", "{case}");
        platform.patch("kubectl-edit", &back).await;
        let back = platform.until_phase(LOAD_AWARE, "Completed").await;
        assert_eq!(culprit(&back, name), "nobody", "{case}");
    }
    assert_eq!(platform.changes_since(mark).await, [""; 0], "all by hand");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_target_is_drift_and_a_new_one_like_it_is_not() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let applied = platform.get(&descheduler(Value::Null)).await;
    let mark = platform.mark().await;
    platform.delete(&applied).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(culprit(&drifted, DESCHEDULER), "unknown", "nothing tells who deleted it");
    let told = "KubeDescheduler 'cluster' was deleted";
    assert_eq!(item(&drifted, DESCHEDULER)["message"], told);
    until_event(&platform, &format!("Warning ItemDrifted: {told}")).await;
    assert!(item(&drifted, DESCHEDULER)["diff"].as_str().unwrap().starts_with("--- /dev/null\n"), "what it takes");
    platform.apply("admin", &descheduler(applied["spec"].clone()), "").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// A map of which we set all members has two managers when somebody else sets one of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_last_field_of_a_map_that_is_set_back_by_hand_is_no_longer_drift() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(DENSITY, json!({}), &[SWAP]).await;
    let ignition = |version: &str| machine_config(SWAP, json!({"config": {"ignition": {"version": version}}}));
    platform.patch("kubectl-edit", &ignition("3.4.0")).await;
    let drifted = platform.until_phase(DENSITY, "Drifted").await;
    assert_eq!(culprit(&drifted, SWAP_ITEM), "kubectl-edit");
    platform.patch("kubectl-edit", &ignition("3.2.0")).await;
    platform.until_phase(DENSITY, "Completed").await;
    operator.stop().await;
}

/// W22 (foreign fields as drift): within maps that we manage in part.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_set_beside_our_fields_is_no_drift() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let before = platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;
    let mut beside = descheduler(json!({
        "logLevel": "Debug",
        "managementState": "Unmanaged",
        "profileCustomizations": {"thresholdPriority": 7, "namespaces": {"excluded": ["kube-system"]}},
    }));
    beside["metadata"]["labels"] = json!({"team": "platform"});
    beside["metadata"]["annotations"] = json!({"note": "please keep"});
    platform.patch("kubectl-edit", &beside).await;
    catch_up(&platform).await;
    catch_up(&platform).await;
    let writes: Vec<_> = platform.requests_since(mark).await.into_iter().filter(|request| request.is_write()).collect();
    assert!(writes.is_empty(), "{writes:?}");

    platform.patch("kubectl-edit", &descheduler(json!({"mode": "Predictive"}))).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    let diff = item(&drifted, DESCHEDULER)["diff"].as_str().unwrap();
    let changed: Vec<_> = diff.lines().skip(2).filter(|line| line.starts_with(['-', '+'])).collect();
    assert_eq!(changed, ["-  mode: Predictive", "+  mode: Automatic"]);
    assert_eq!(before["status"]["planDigest"], drifted["status"]["planDigest"]);
    operator.stop().await;
}

/// W5 (writes in DryRun), W6 (reverted by a rollout), D10 (no fighting by default), D11 (DryRun writes nothing):
/// under Apply and DryRun.
#[tokio::test(flavor = "multi_thread")]
async fn a_pool_that_rolls_for_other_reasons_concerns_nobody_and_reverts_nothing() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    let mark = platform.mark().await;
    for action in ["Apply", "DryRun"] {
        platform.configure(LOAD_AWARE, json!({"action": action})).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        platform.roll(&[PSI, "50-worker-somebody-elses"], 1).await;
        catch_up(&platform).await;
        let meanwhile = platform.config(LOAD_AWARE).await;
        assert_eq!((phase(&meanwhile), &item(&meanwhile, PSI_ITEM)["state"]), ("Completed", &json!("Completed")));
        platform.roll(&[PSI], 3).await;
    }

    // Somebody edits our config, and the pool rolls out: that is reported, and not reverted.
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    platform.roll(&[PSI], 1).await;
    platform.patch("kubectl-edit", &machine_config(PSI, json!({"kernelArguments": ["psi=0"]}))).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(culprit(&drifted, PSI_ITEM), "kubectl-edit");
    platform.roll(&[PSI], 3).await;
    catch_up(&platform).await;
    assert_eq!(phase(&platform.config(LOAD_AWARE).await), "Drifted");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// W21 (live state as baseline): and is not taken for what was applied.
#[tokio::test(flavor = "multi_thread")]
async fn drift_of_a_finished_item_is_told_while_the_nodes_still_roll() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.patch("kubectl-edit", &interval(180)).await;
    let told = |config: &Value| phase(config) == "InProgress" && reason(config, "Drifted") == "DriftDetected";
    let drifted = platform.until(LOAD_AWARE, "drifted already", told).await;
    assert_eq!(culprit(&drifted, DESCHEDULER), "kubectl-edit");

    platform.patch("kubectl-edit", &interval(60)).await;
    let gone = |config: &Value| condition(config, "Drifted")["status"] == "False";
    let back = platform.until(LOAD_AWARE, "no longer drifted", gone).await;
    assert_eq!((phase(&back), culprit(&back, DESCHEDULER)), ("InProgress", "nobody"));

    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until(LOAD_AWARE, "drifted again", told).await;
    let mark = platform.mark().await;
    platform.roll(&[PSI], 3).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, PSI_ITEM)["state"], "Completed", "the phase follows when everything has settled");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// W14 (leftover MachineConfig): with their reboots, and waited for.
#[tokio::test(flavor = "multi_thread")]
async fn pressure_metrics_that_are_turned_off_go_from_the_nodes_too() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let removal = item(&planned, PSI_ITEM);
    assert_eq!((&removal["operation"], &removal["impactSeverity"]), (&json!("Delete"), &json!("High")));
    assert_eq!(removal["impactDetail"]["reboot"], true);
    assert!(platform.find(&machine_config(PSI, Value::Null)).await.is_some(), "a preview deletes nothing");

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    assert_eq!(platform.find(&machine_config(PSI, Value::Null)).await, None);
    platform.roll(&[], 1).await;
    let message = "MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)";
    platform.until(LOAD_AWARE, "rolling", |config| item(config, PSI_ITEM)["message"] == message).await;
    platform.roll(&[], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    let later = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(item(&later, PSI_ITEM), &Value::Null, "done and forgotten");
    operator.stop().await;
}
