//! Automatic revert of drift on request, and its end if somebody repeats the edit.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{DESCHEDULER, interval, no_psi};
use testkit::{
    configs::{condition, item, reason},
    eventually,
    platform::{LOAD_AWARE, Platform, descheduler},
    running_operator::RunningOperator,
};

/// Records reverts of so many seconds ago in the status.
async fn reverted(platform: &Platform, seconds_ago: &[i64]) {
    let now = Timestamp::now().as_second();
    let times = seconds_ago.iter().map(|ago| Timestamp::from_second(now - ago).unwrap().to_string());
    let uri = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{LOAD_AWARE}/status");
    let patch = json!({"status": {"reverts": times.collect::<Vec<_>>()}});
    platform.request("PATCH", &uri, Some("application/merge-patch+json"), patch).await;
}

async fn until_interval(platform: &Platform, seconds: i32) {
    eventually("the interval", async || {
        let live = platform.get(&descheduler(Value::Null)).await;
        (live["spec"]["deschedulingIntervalSeconds"] == seconds).then_some(())
    })
    .await;
}

fn reverts(config: &Value) -> usize {
    config["status"]["reverts"].as_array().map_or(0, Vec::len)
}

/// W42 (endless reverts): with a pause before the second.
#[tokio::test(flavor = "multi_thread")]
async fn drift_is_reverted_on_request_and_every_revert_is_counted() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi(), "bypassOptimisticLock": true}), &[]).await;
    let mark = platform.mark().await;
    platform.patch("kubectl-edit", &interval(180)).await;
    until_interval(&platform, 60).await;
    let back = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(reverts(&back), 1);
    assert_eq!(item(&back, DESCHEDULER)["driftedBy"], Value::Null);
    assert_eq!(platform.changes_since(mark).await, ["patch kubedeschedulers cluster"]);

    // The second revert follows half a minute after the first, without an event.
    reverted(&platform, &[28]).await;
    platform.patch("kubectl-edit", &interval(240)).await;
    let waiting = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&waiting, DESCHEDULER)["driftedBy"]["manager"], "kubectl-edit");
    until_interval(&platform, 60).await;
    let back = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(reverts(&back), 2);

    // Reverts of more than ten minutes ago no longer count.
    reverted(&platform, &[1200, 1100, 1000]).await;
    platform.patch("kubectl-edit", &interval(300)).await;
    until_interval(&platform, 60).await;
    let back = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(reverts(&back), 1);
    operator.stop().await;
}

/// W42 (endless reverts): who changes it is named.
#[tokio::test(flavor = "multi_thread")]
async fn after_three_reverts_in_ten_minutes_the_operator_gives_up_until_the_spec_is_edited() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi(), "bypassOptimisticLock": true}), &[]).await;
    reverted(&platform, &[500, 400, 300]).await;
    let mark = platform.mark().await;
    platform.patch("gitops", &interval(180)).await;
    let stalled = |config: &Value| reason(config, "Drifted") == "RemediationStalled";
    let given_up = platform.until(LOAD_AWARE, "given up", stalled).await;
    let message = condition(&given_up, "Drifted")["message"].as_str().unwrap();
    assert!(message.contains("3 times") && message.contains("gitops"), "{message}");

    // More edits change nothing, and rechecks neither.
    reverted(&platform, &[1200, 1100, 1000]).await;
    platform.patch("gitops", &interval(240)).await;
    let shown = |config: &Value| {
        item(config, DESCHEDULER)["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("-  deschedulingIntervalSeconds: 240"))
    };
    let later = platform.until(LOAD_AWARE, "looked at", shown).await;
    assert!(stalled(&later), "{later:#}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(reverts(&done), 0, "a new start");
    until_interval(&platform, 60).await;
    operator.stop().await;
}

/// W6 (reverted by a rollout), D10 (no fighting by default): by default nobody is fought.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_request_or_without_the_approval_nothing_is_reverted() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;
    for spec in [json!({"action": "Apply"}), json!({"action": "DryRun", "bypassOptimisticLock": true})] {
        platform.configure(LOAD_AWARE, spec.clone()).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        for seconds in [180, 240] {
            platform.patch("kubectl-edit", &interval(seconds)).await;
            let shown = format!("-  deschedulingIntervalSeconds: {seconds}");
            let looked_at = |config: &Value| {
                let diff = item(config, DESCHEDULER)["diff"].as_str().unwrap_or_default();
                reason(config, "Drifted") == "DriftDetected" && diff.contains(&shown)
            };
            platform.until(LOAD_AWARE, &shown, looked_at).await;
        }
        platform.patch("kubectl-edit", &interval(60)).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        assert_eq!(platform.changes_since(mark).await, [""; 0], "{spec}");
    }
    operator.stop().await;
}
