//! The way back, on the real API server: a plan like any other, after which everything is as it was.

use advisor::object_text;
use serde_json::{Value, json};
use testkit::{
    configs::{condition, item, phase, reason},
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, machine_config},
    running_operator::RunningOperator,
};

const DESCHEDULER: &str = "enable-load-aware-descheduling";

fn interval(seconds: i32) -> Value {
    json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": seconds}})
}

/// An object as people see it, without what the API server maintains.
pub(crate) async fn seen(platform: &Platform, object: &Value) -> Option<Value> {
    platform.find(object).await.map(|found| {
        let mut found = object_text::sanitized(&found);
        found.as_object_mut().unwrap().remove("status");
        found
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_is_reviewed_applied_and_then_manages_nothing() {
    let platform = Platform::shared().await;
    let original = descheduler(json!({"deschedulingIntervalSeconds": 3600, "profiles": ["AffinityAndTaints"]}));
    platform.apply("kubectl", &original, "").await;
    let before = seen(&platform, &original).await;
    let operator = RunningOperator::start(&platform).await;
    for seconds in [120, 180] {
        platform.complete(LOAD_AWARE, json!({"options": interval(seconds)}), &[]).await;
    }
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"restore": {"record": "original"}})).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(reason(&review, "InputDependencyDrift"), "RestoreChanged", "it is not applied unread");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    let diff = item(&review, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  deschedulingIntervalSeconds: 180\n"), "{diff}");
    assert!(diff.contains("+  deschedulingIntervalSeconds: 3600\n"), "{diff}");

    platform.configure(LOAD_AWARE, json!({"approval": {"planDigest": review["status"]["planDigest"]}})).await;
    let restored = platform.until_phase(LOAD_AWARE, "Completed").await;
    let message = condition(&restored, "Completed")["message"].as_str().unwrap();
    assert!(message.contains("The configuration manages nothing"), "{message}");
    assert_eq!(seen(&platform, &original).await, before, "field by field");
    let managers = platform.get(&original).await["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("virt-advisor-operator"), "{managers}");

    // What others do now is not drift.
    platform.patch("admin", &descheduler(json!({"deschedulingIntervalSeconds": 999}))).await;
    platform.configure(DENSITY, json!({"action": "DryRun"})).await;
    platform.until_phase(DENSITY, "ReviewRequired").await;
    assert_eq!(phase(&platform.config(LOAD_AWARE).await), "Completed");

    // Without it, the profile is planned again and waits for a review.
    platform.configure(LOAD_AWARE, json!({"restore": null, "approval": null})).await;
    let again = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&again, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("+  deschedulingIntervalSeconds: 180\n"), "{diff}");
    platform.configure(LOAD_AWARE, json!({"approval": {"planDigest": again["status"]["planDigest"]}})).await;
    let applied = platform.until_phase(LOAD_AWARE, "Completed").await;
    let name = applied["status"]["record"]["name"].as_str().unwrap();
    let record = platform
        .get(&json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord", "metadata": {"name": name},
        }))
        .await;
    assert_eq!((name, &record["spec"]["first"]), ("load-aware-rebalancing-4", &json!(true)));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_changed_since_is_only_overwritten_if_an_approver_accepts_it() {
    let platform = Platform::shared().await;
    platform.apply("kubectl", &descheduler(json!({"deschedulingIntervalSeconds": 3600})), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": interval(120)}), &[]).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    platform.patch("admin", &descheduler(json!({"deschedulingIntervalSeconds": 999}))).await;
    platform.configure(LOAD_AWARE, json!({"restore": {"record": "load-aware-rebalancing-1"}})).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(item(&review, DESCHEDULER)["changedSince"], json!(["spec.deschedulingIntervalSeconds"]));
    let digest = review["status"]["planDigest"].clone();
    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": {"planDigest": digest}})).await;
    let refused =
        platform.until(LOAD_AWARE, "refused", |config| reason(config, "ReviewRequired") == "NotAccepted").await;
    let message = condition(&refused, "ReviewRequired")["message"].as_str().unwrap();
    assert!(message.contains(DESCHEDULER) && message.contains("acceptedItems"), "{message}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    platform.configure(LOAD_AWARE, json!({"approval": {"acceptedItems": [DESCHEDULER]}})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    let found = platform.get(&descheduler(json!({}))).await;
    assert_eq!(found["spec"]["deschedulingIntervalSeconds"], 3600);
    operator.stop().await;
}

/// Nodes are waited for as after any plan.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_that_did_not_exist_is_deleted_and_its_rollout_followed() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let psi = machine_config(testkit::rollout::PSI, json!({}));
    platform.complete(LOAD_AWARE, json!({}), &[testkit::rollout::PSI]).await;
    platform.configure(LOAD_AWARE, json!({"restore": {"record": "original"}})).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(review["status"]["impactSeverity"], "High", "nodes reboot");
    platform.configure(LOAD_AWARE, json!({"approval": {"planDigest": review["status"]["planDigest"]}})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", testkit::configs::is_waiting_for_nodes).await;
    assert_eq!(platform.find(&psi).await, None);
    platform.roll(&[], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(platform.find(&descheduler(json!({}))).await, None, "it did not exist either");
    operator.stop().await;
}

/// Approves the plan that is in review.
async fn approve(platform: &Platform, profile: &str) {
    let review = platform.until_phase(profile, "ReviewRequired").await;
    platform.configure(profile, json!({"approval": {"planDigest": review["status"]["planDigest"]}})).await;
    platform.until(profile, "waiting for nodes", testkit::configs::is_waiting_for_nodes).await;
}

/// Found by reading: the pool was expected to have what the restore had taken out, and was waited for without end.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_that_loses_fields_is_completed_when_the_nodes_have_lost_them() {
    let platform = Platform::shared().await;
    let config = json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": []}}});
    let existing = machine_config(testkit::rollout::SWAP, config);
    platform.apply("admin", &existing, "").await;
    let before = seen(&platform, &existing).await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(DENSITY, json!({}), &[testkit::rollout::SWAP]).await;
    platform.configure(DENSITY, json!({"restore": {"record": "original"}})).await;
    approve(&platform, DENSITY).await;
    assert_eq!(seen(&platform, &existing).await, before);
    platform.roll(&[testkit::rollout::SWAP], 3).await;
    platform.until_phase(DENSITY, "Completed").await;
    operator.stop().await;
}

/// The operator created it, and somebody has added to it since. What is left has no role, so no pool takes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_that_others_use_loses_what_was_ours_and_leaves_its_pool() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let psi = machine_config(testkit::rollout::PSI, json!({"extensions": ["usbguard"]}));
    platform.complete(LOAD_AWARE, json!({}), &[testkit::rollout::PSI]).await;
    platform.patch("kubectl-edit", &psi).await;
    platform.roll(&[testkit::rollout::PSI], 3).await;
    platform.configure(LOAD_AWARE, json!({"restore": {"record": "original"}})).await;
    approve(&platform, LOAD_AWARE).await;
    let left = platform.get(&psi).await;
    assert_eq!((&left["spec"], &left["metadata"]["labels"]), (&json!({"extensions": ["usbguard"]}), &Value::Null));
    platform.roll(&[], 3).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}

/// The operator created it, and somebody has edited it since. The definition requires `spec`, and fields of it have defaults.
#[tokio::test(flavor = "multi_thread")]
async fn a_descheduler_that_others_have_edited_loses_what_was_ours_and_stays() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": interval(60)}), &[]).await;
    // It takes the ownership, and the value is as before.
    for seconds in [180, 60] {
        platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": seconds}))).await;
    }
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "restore": {"record": "original"}})).await;
    platform.until(LOAD_AWARE, "restoring", |config| config["status"]["restore"].is_object()).await;
    let review = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&review, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  mode: Automatic\n") && diff.contains("+  mode: Predictive\n"), "{diff}");
    let approval = json!({"planDigest": review["status"]["planDigest"]});
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": approval})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    let left = platform.get(&descheduler(json!({}))).await;
    let defaults = json!({"logLevel": "Normal", "mode": "Predictive", "operatorLogLevel": "Normal"});
    assert_eq!(left["spec"], defaults);
    let managers = left["metadata"]["managedFields"].to_string();
    assert!(!managers.contains("virt-advisor-operator"), "{managers}");
    operator.stop().await;
}
