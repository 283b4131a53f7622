//! Beside virt-platform-autopilot, which writes the same objects by force, under its own field manager.

use serde_json::{Value, json};
use testkit::{
    configs::{condition, item, phase, reason},
    platform::{LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config},
    running_operator::RunningOperator,
};

use crate::lifecycle::no_psi;

const AUTOPILOT: &str = "virt-platform-autopilot";
const DESCHEDULER: &str = "enable-load-aware-descheduling";
const PSI_ITEM: &str = "enable-psi-metrics";
const THEIR_PSI: &str = "99-openshift-machineconfig-worker-psi-karg";
const FORCED_REVIEW: &str = "InputDependencyDrift";
const OPT_OUT: &str = "kubectl annotate --overwrite kubedescheduler cluster -n openshift-kube-descheduler-operator \
                       platform.kubevirt.io/mode=unmanaged";

/// Sets the annotation on HyperConverged, or removes it.
async fn switch(platform: &Platform, value: Option<&str>) {
    let mut patch = hyper_converged(json!({}));
    patch["metadata"]["annotations"] = json!({"platform.kubevirt.io/autopilot": value});
    platform.patch("admin", &patch).await;
}

/// The autopilot applies its KubeDescheduler.
async fn takes(platform: &Platform, interval: i32) -> Value {
    let mut object = descheduler(json!({
        "managementState": "Managed", "mode": "Automatic", "deschedulingIntervalSeconds": interval,
        "profiles": ["KubeVirtRelieveAndMigrate"], "evictionLimits": {"total": 5, "node": 2},
    }));
    object["metadata"]["labels"] = json!({"platform.kubevirt.io/managed-by": AUTOPILOT});
    platform.apply(AUTOPILOT, &object, "").await
}

/// An administrator opts the KubeDescheduler out, as the plan says.
async fn opt_out(platform: &Platform) {
    let mut patch = descheduler(json!({}));
    patch["metadata"]["annotations"] = json!({"platform.kubevirt.io/mode": "unmanaged"});
    platform.patch("kubectl-annotate", &patch).await;
}

fn notes(config: &Value) -> String {
    let notes = config.pointer("/status/notes").and_then(Value::as_array);
    notes.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}

fn version(object: &Value) -> &Value {
    &object["metadata"]["resourceVersion"]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_autopilot_manages_is_left_out_until_it_is_told_to_leave_it_alone() {
    let platform = Platform::shared().await;
    switch(&platform, Some("true")).await;
    let theirs = takes(&platform, 600).await;
    let operator = RunningOperator::start(&platform).await;
    let mark = platform.mark().await;
    let spec = json!({"action": "Apply", "options": no_psi(), "bypassOptimisticLock": true});
    platform.configure(LOAD_AWARE, spec).await;
    let left = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(item(&left, DESCHEDULER), &Value::Null);
    let told = notes(&left);
    for part in [
        "virt-platform-autopilot manages the descheduler by KubeDescheduler openshift-kube-descheduler-operator/cluster",
        "platform.kubevirt.io/autopilot: \"true\"",
        "platform.kubevirt.io/managed-by",
        "virt-platform-autopilot owns spec.deschedulingIntervalSeconds",
        OPT_OUT,
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(platform.changes_since(mark).await, [""; 0], "although the action is Apply");
    assert_eq!(version(&platform.get(&descheduler(Value::Null)).await), version(&theirs));

    // Opted out, it is planned as usual, and somebody reads that plan first.
    opt_out(&platform).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let taken = item(&review, DESCHEDULER)["takesOver"].as_array().cloned().unwrap_or_default();
    assert!(taken.iter().any(|taken| taken["manager"] == AUTOPILOT), "{review:#}");
    assert!(!notes(&review).contains(AUTOPILOT), "{review:#}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.changes_since(mark).await, ["patch kubedeschedulers cluster"]);
    let live = platform.get(&descheduler(Value::Null)).await;
    assert_eq!(live["spec"]["deschedulingIntervalSeconds"], 60);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_autopilot_takes_back_is_told_and_never_reverted() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi(), "bypassOptimisticLock": true}), &[]).await;
    let mark = platform.mark().await;
    let mut theirs = Value::Null;
    for interval in [600, 700] {
        theirs = takes(&platform, interval).await;
        let shown = format!("-  deschedulingIntervalSeconds: {interval}");
        let stalled = |config: &Value| {
            let diff = item(config, DESCHEDULER)["diff"].as_str().unwrap_or_default();
            reason(config, "Drifted") == "RemediationStalled" && diff.contains(&shown)
        };
        let drifted = platform.until(LOAD_AWARE, &shown, stalled).await;
        assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], AUTOPILOT);
        let message = condition(&drifted, "Drifted")["message"].as_str().unwrap();
        assert!(message.contains("was changed by virt-platform-autopilot") && message.ends_with(OPT_OUT), "{message}");
        assert_eq!(drifted.pointer("/status/reverts"), None, "not once");
    }
    assert_eq!(platform.changes_since(mark).await, [""; 0], "no edit war");
    assert_eq!(version(&platform.get(&descheduler(Value::Null)).await), version(&theirs));

    // An edit of the spec leaves it to the autopilot.
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    let left = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert!(item(&left, DESCHEDULER).is_null() && notes(&left).contains(OPT_OUT), "{left:#}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// An annotation changes no generation, and is noticed all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_autopilot_that_is_switched_on_later_leads_to_a_review_and_off_again_ends_it() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi(), "bypassOptimisticLock": true}), &[]).await;
    let mark = platform.mark().await;
    switch(&platform, Some("swap-enable")).await;
    let noted = |config: &Value| config.pointer("/status/inputs/2/value") == Some(&json!("\"swap-enable\""));
    let config = platform.until(LOAD_AWARE, "noted", noted).await;
    assert_eq!(condition(&config, FORCED_REVIEW), &Value::Null, "a scope without the descheduler changes nothing");

    switch(&platform, Some("descheduler-loadaware")).await;
    let forced =
        |config: &Value| reason(config, FORCED_REVIEW) == "AutopilotManages" && phase(config) == "ReviewRequired";
    let review = platform.until(LOAD_AWARE, "a review", forced).await;
    let message = condition(&review, FORCED_REVIEW)["message"].as_str().unwrap();
    assert!(message.contains("\"descheduler-loadaware\"") && message.ends_with(OPT_OUT), "{message}");
    assert!(item(&review, DESCHEDULER).is_null() && notes(&review).contains(OPT_OUT), "{review:#}");

    switch(&platform, None).await;
    let resolved = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(condition(&resolved, FORCED_REVIEW)["reason"], "DriftResolved");
    assert_eq!(item(&resolved, DESCHEDULER)["state"], "Completed");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// Its MachineConfig has another name than ours. It is read with the rights that the operator has.
#[tokio::test(flavor = "multi_thread")]
async fn pressure_metrics_are_left_to_the_autopilot_and_are_no_item_once_they_are_on() {
    let platform = Platform::shared().await;
    let forbidden = platform.forbidden_requests().await;
    let names = |plan: &advisor::Plan| plan.items.iter().map(|planned| planned.item.name.clone()).collect::<Vec<_>>();
    switch(&platform, Some("psi-enable")).await;
    let plan = platform.plan(LOAD_AWARE).await;
    assert_eq!(names(&plan), [DESCHEDULER]);
    let command = plan.notes.iter().find(|note| note.contains("platform.kubevirt.io/disabled-resources='[{"));
    assert!(command.is_some_and(|note| note.contains(THEIR_PSI)), "{:?}", plan.notes);

    let mut config = machine_config(THEIR_PSI, json!({"kernelArguments": ["psi=1"]}));
    config["metadata"]["labels"]["platform.kubevirt.io/managed-by"] = AUTOPILOT.into();
    platform.apply(AUTOPILOT, &config, "").await;
    let plan = platform.plan(LOAD_AWARE).await;
    let unmanaged = "kubectl annotate --overwrite machineconfig 99-openshift-machineconfig-worker-psi-karg \
                     platform.kubevirt.io/mode=unmanaged";
    assert!(plan.notes.iter().any(|note| note.ends_with(unmanaged)), "{:?}", plan.notes);
    config["metadata"]["annotations"] = json!({"platform.kubevirt.io/mode": "unmanaged"});
    platform.apply("kubectl-annotate", &config, "").await;
    assert_eq!(names(&platform.plan(LOAD_AWARE).await), [PSI_ITEM, DESCHEDULER], "opted out before any node has it");

    // All nodes run with it: whoever set it, there is nothing to do.
    platform.roll(&[THEIR_PSI], 3).await;
    for value in [Some("psi-enable"), Some("false"), None] {
        switch(&platform, value).await;
        let plan = platform.plan(LOAD_AWARE).await;
        assert_eq!(names(&plan), [DESCHEDULER], "{value:?}");
        assert!(plan.notes.iter().any(|note| note.starts_with("PSI metrics already effective")), "{:?}", plan.notes);
    }
    forbidden.assert_none().await;
}
