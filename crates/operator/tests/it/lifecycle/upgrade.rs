//! A new version of the operator: adopted silently if it changes nothing, and offered to a person otherwise.

use operator::OperatorSettings;
use serde_json::{Value, json};

use super::{DESCHEDULER, catch_up, interval, no_psi};
use testkit::{
    configs::{condition, item, phase, reason},
    platform::{LOAD_AWARE, Platform, descheduler},
    running_operator::RunningOperator,
};

const UPGRADE: &str = "UpgradeAvailable";

async fn version(platform: &Platform, version: &str) -> RunningOperator {
    RunningOperator::start_with(platform, OperatorSettings { version: version.into(), ..OperatorSettings::default() })
        .await
}

/// The applied plan of version v0.0.1, which runs the descheduler every two minutes, where this version runs it every
/// minute; the spec does not fix the interval.
async fn left_by_an_older_version(platform: &Platform) {
    let older = version(platform, "v0.0.1").await;
    let options =
        |seconds: i32| json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": seconds}});
    platform.complete(LOAD_AWARE, json!({"options": options(120)}), &[]).await;
    older.stop().await;
    let edited = platform.configure(LOAD_AWARE, json!({"options": options(60)})).await;
    let status = json!({
        "observedGeneration": edited["metadata"]["generation"],
        "appliedOptions": edited["spec"]["options"],
    });
    let uri = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{LOAD_AWARE}/status");
    platform.request("PATCH", &uri, Some("application/merge-patch+json"), json!({"status": status})).await;
}

async fn live_interval(platform: &Platform) -> Value {
    platform.get(&descheduler(Value::Null)).await["spec"]["deschedulingIntervalSeconds"].clone()
}

/// W25 (unresolved upgrade): one status, no question.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_changes_nothing_is_adopted_silently() {
    let platform = Platform::shared().await;
    let older = version(&platform, "v0.0.1").await;
    let before = platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    assert_eq!(before["status"]["operatorVersion"], "v0.0.1");
    older.stop().await;
    let mark = platform.mark().await;
    let newer = version(&platform, "v0.0.2").await;
    let adopted = |config: &Value| config["status"]["operatorVersion"] == "v0.0.2";
    let after = platform.until(LOAD_AWARE, "adopted", adopted).await;
    for part in ["phase", "items", "planDigest", "inputs"] {
        assert_eq!(after["status"][part], before["status"][part], "{part}");
    }
    assert_ne!(condition(&after, UPGRADE)["status"], "True");
    catch_up(&platform).await;
    let requests = platform.requests_since(mark).await;
    let writes: Vec<_> = requests.iter().filter(|it| it.is_write() && it.name == LOAD_AWARE).collect();
    assert_eq!(writes.len(), 1, "{writes:?}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    newer.stop().await;
}

/// W25 (unresolved upgrade): with the diff, and with an eye on drift.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_would_do_it_differently_says_how_and_waits() {
    let platform = Platform::shared().await;
    left_by_an_older_version(&platform).await;
    let mark = platform.mark().await;
    let newer = version(&platform, "v0.0.2").await;
    let offered = platform.until_phase(LOAD_AWARE, "CompletedWithUpgrade").await;
    assert_eq!(reason(&offered, UPGRADE), "LogicChanged");
    assert_eq!(
        condition(&offered, UPGRADE)["message"],
        "Operator upgraded from v0.0.1 to v0.0.2 with profile logic changes. Regenerate plan (action=DryRun) to review \
         proposed changes."
    );
    assert_eq!(
        condition(&offered, "CompletedWithUpgrade")["message"],
        "Operator upgraded from v0.0.1 to v0.0.2 - profile logic changes detected"
    );
    assert_eq!(reason(&offered, "Completed"), "Completed", "what was applied is in effect");
    let diff = item(&offered, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  deschedulingIntervalSeconds: 120\n+  deschedulingIntervalSeconds: 60\n"), "{diff}");
    assert_eq!(offered["status"]["operatorVersion"], "v0.0.1", "the plan in effect is that of the older one");

    // Drift of the applied plan is reported all the same.
    platform.patch("kubectl-edit", &descheduler(json!({"mode": "Predictive"}))).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], "kubectl-edit");
    platform.patch("kubectl-edit", &descheduler(json!({"mode": "Automatic"}))).await;
    platform.until_phase(LOAD_AWARE, "CompletedWithUpgrade").await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    // A person reviews the new plan and approves it.
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(planned["status"]["operatorVersion"], "v0.0.2");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(live_interval(&platform).await, 60);
    let settled = condition(&done, UPGRADE);
    assert_eq!((&settled["status"], &settled["reason"]), (&json!("False"), &json!("Applied")));
    assert_eq!(condition(&done, "CompletedWithUpgrade")["status"], "False");
    newer.stop().await;
}

/// W25 (unresolved upgrade): compared with the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_that_is_done_by_hand_is_no_longer_offered() {
    let platform = Platform::shared().await;
    left_by_an_older_version(&platform).await;
    let newer = version(&platform, "v0.0.2").await;
    platform.until_phase(LOAD_AWARE, "CompletedWithUpgrade").await;
    let mark = platform.mark().await;
    platform.patch("kubectl-edit", &interval(60)).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    let settled = condition(&done, UPGRADE);
    assert_eq!((&settled["status"], &settled["reason"]), (&json!("False"), &json!("ManuallyAligned")));
    assert_eq!(settled["message"], "Cluster manually aligned with new operator logic - upgrade no longer needed");
    assert_eq!(done["status"]["operatorVersion"], "v0.0.2");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    // From now on, the new plan is rechecked.
    platform.patch("kubectl-edit", &interval(120)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    newer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_version_is_adopted_without_a_person_even_where_drift_is_reverted() {
    let platform = Platform::shared().await;
    left_by_an_older_version(&platform).await;
    let newer = version(&platform, "v0.0.2").await;
    platform.until_phase(LOAD_AWARE, "CompletedWithUpgrade").await;
    let mark = platform.mark().await;
    newer.stop().await;
    // In the status from the beginning: an edit of the spec would count as the answer of the person.
    let uri = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{LOAD_AWARE}");
    let merge = Some("application/merge-patch+json");
    let edited = platform.request("PATCH", &uri, merge, json!({"spec": {"bypassOptimisticLock": true}})).await;
    let status = json!({"status": {"observedGeneration": edited["metadata"]["generation"]}});
    platform.request("PATCH", &format!("{uri}/status"), merge, status).await;
    let newer = version(&platform, "v0.0.2").await;
    catch_up(&platform).await;
    catch_up(&platform).await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    assert_eq!(
        (phase(&platform.config(LOAD_AWARE).await), live_interval(&platform).await),
        ("CompletedWithUpgrade", json!(120))
    );
    newer.stop().await;
}

/// A second new version may differ from the first: the status shows what would be done now.
#[tokio::test(flavor = "multi_thread")]
async fn the_version_after_the_one_that_was_offered_is_told_too() {
    let platform = Platform::shared().await;
    left_by_an_older_version(&platform).await;
    let newer = version(&platform, "v0.0.2").await;
    platform.until_phase(LOAD_AWARE, "CompletedWithUpgrade").await;
    newer.stop().await;
    let newest = version(&platform, "v0.0.3").await;
    let told = "Operator upgraded from v0.0.1 to v0.0.3 with profile logic changes. Regenerate plan (action=DryRun) to \
                review proposed changes.";
    platform.until(LOAD_AWARE, "told", |config| condition(config, UPGRADE)["message"] == told).await;
    newest.stop().await;
}
