//! Edits of the options before the approval, after it, and after completion.

use serde_json::{Value, json};

use super::{DESCHEDULER, SWAP_ITEM, interval, no_psi, no_swap};
use testkit::{
    configs::{is_waiting_for_nodes, item, reason},
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

fn load_aware(options: Value) -> Value {
    json!({"options": {"loadAware": options}})
}

fn density(options: Value) -> Value {
    json!({"options": {"virtHigherDensity": options}})
}

/// W7 (applied unlike reviewed): nor is one applied that nobody read.
#[tokio::test(flavor = "multi_thread")]
async fn options_edited_during_the_review_lead_to_another_plan_and_the_old_one_is_never_applied() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let first = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;

    platform.configure(LOAD_AWARE, load_aware(json!({"deschedulingIntervalSeconds": 120}))).await;
    let second = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_ne!(first["status"]["planDigest"], second["status"]["planDigest"]);
    let seconds = |config: &Value| {
        item(config, DESCHEDULER).pointer("/desiredState/spec/deschedulingIntervalSeconds").cloned().unwrap_or_default()
    };
    assert_eq!((seconds(&first), seconds(&second)), (json!(60), json!(120)));
    assert_eq!(second.pointer("/status/appliedOptions/loadAware/deschedulingIntervalSeconds"), Some(&json!(120)));

    // Edited and approved in one write, with the digest of the former plan: a mistake.
    let mark = platform.mark().await;
    let mut edit = load_aware(json!({"deschedulingIntervalSeconds": 240}));
    edit["action"] = "Apply".into();
    edit["approval"] = json!({"planDigest": second["status"]["planDigest"]});
    platform.configure(LOAD_AWARE, edit).await;
    let refused = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(reason(&refused, "ReviewRequired"), "ApprovalMismatch");
    assert_eq!(seconds(&refused), 240, "the plan is that of the new options");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    platform.configure(LOAD_AWARE, json!({"approval": {"planDigest": refused["status"]["planDigest"]}})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.get(&descheduler(Value::Null)).await["spec"]["deschedulingIntervalSeconds"], 240);
    assert_eq!(platform.changes_since(mark).await, ["patch kubedeschedulers cluster"], "one plan, one write");
    operator.stop().await;
}

/// W8 (ignored options), D2 (descheduler mode): the mode and the limits, too.
#[tokio::test(flavor = "multi_thread")]
async fn every_option_of_load_aware_rebalancing_takes_effect_after_completion() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    for (option, value, path, expected) in [
        ("deschedulingIntervalSeconds", json!(120), "/spec/deschedulingIntervalSeconds", json!(120)),
        ("mode", json!("Predictive"), "/spec/mode", json!("Predictive")),
        ("devDeviationThresholds", json!("High"), "/spec/profileCustomizations/devDeviationThresholds", json!("High")),
        ("evictionLimitTotal", json!(7), "/spec/evictionLimits/total", json!(7)),
        ("evictionLimitNode", json!(3), "/spec/evictionLimits/node", json!(3)),
        ("evictionLimitTotal", Value::Null, "/spec/evictionLimits/total", json!(5)),
    ] {
        platform.configure(LOAD_AWARE, load_aware(json!({option: value}))).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        let live = platform.get(&descheduler(Value::Null)).await;
        assert_eq!(live.pointer(path), Some(&expected), "{option}: {value}");
    }
    platform.complete(LOAD_AWARE, load_aware(json!({"enablePSIMetrics": true})), &[PSI]).await;
    let config = platform.get(&machine_config(PSI, Value::Null)).await;
    assert_eq!(config["spec"]["kernelArguments"], json!(["psi=1"]));
    operator.stop().await;
}

/// W8 (ignored options), W14 (leftover MachineConfig), D3 (swap removal): and without swap its MachineConfig goes.
#[tokio::test(flavor = "multi_thread")]
async fn every_option_of_higher_density_takes_effect_after_completion() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(DENSITY, json!({"options": no_swap()}), &[]).await;
    let (ratio, selector) =
        ("/spec/higherWorkloadDensity/memoryOvercommitPercentage", "/spec/ksmConfiguration/nodeLabelSelector");
    let some_nodes = json!({"matchLabels": {"ksm": "true"}});
    for (options, path, expected) in [
        (json!({"memoryToRequestRatio": 110}), ratio, Some(json!(110))),
        (json!({"ksmConfiguration": {}}), selector, Some(json!({}))),
        (json!({"ksmConfiguration": {"nodeLabelSelector": some_nodes}}), selector, Some(some_nodes.clone())),
        (json!({"ksmConfiguration": {"enabled": false}}), selector, None),
        (json!({"memoryToRequestRatio": Value::Null}), ratio, Some(json!(120))),
    ] {
        platform.configure(DENSITY, density(options.clone())).await;
        platform.until_phase(DENSITY, "Completed").await;
        let live = platform.get(&hyper_converged(Value::Null)).await;
        assert_eq!(live.pointer(path), expected.as_ref(), "{options}");
    }
    platform.complete(DENSITY, density(json!({"enableSwap": true})), &[SWAP]).await;
    assert_eq!(platform.get(&hyper_converged(Value::Null)).await.pointer(ratio), Some(&json!(150)));

    platform.configure(DENSITY, density(json!({"enableSwap": false}))).await;
    let leaving = platform.until(DENSITY, "waiting for nodes", is_waiting_for_nodes).await;
    assert_eq!(item(&leaving, SWAP_ITEM)["operation"], "Delete");
    assert_eq!(platform.find(&machine_config(SWAP, Value::Null)).await, None);
    platform.roll(&[], 3).await;
    platform.until_phase(DENSITY, "Completed").await;
    operator.stop().await;
}

/// W30 (DryRun after completion), D11 (DryRun writes nothing): also when something has drifted.
#[tokio::test(flavor = "multi_thread")]
async fn after_completion_a_dry_run_plans_and_writes_nothing() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    platform.configure(LOAD_AWARE, load_aware(json!({"mode": "Predictive"}))).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&planned, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  mode: Automatic\n+  mode: Predictive\n"), "{diff}");
    platform.configure(LOAD_AWARE, load_aware(json!({"mode": "Automatic"}))).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    // Drift under DryRun: any edit of the spec leads to a new plan.
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&planned, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  deschedulingIntervalSeconds: 180\n+  deschedulingIntervalSeconds: 60\n"), "{diff}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.get(&descheduler(Value::Null)).await["spec"]["deschedulingIntervalSeconds"], 60);
    operator.stop().await;
}
