//! The usual life cycle: offer, plan, approval, rollout, recheck.

use advisor::kstatus::kstatus;
use serde_json::json;
use testkit::{
    configs::{condition, item},
    platform::{LOAD_AWARE, Platform, descheduler},
    rollout::PSI,
    running_operator::RunningOperator,
};

/// W4 (pool done too early), D23 (items in order), D29 (drift by watch): a pool that says it is updated of what was
/// before is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_offered_planned_approved_rolled_out_and_watched() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;

    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(planned["status"]["items"].as_array().unwrap().len(), 2);

    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let applying = platform
        .until(LOAD_AWARE, "waiting for nodes", |config| {
            item(config, "enable-psi-metrics")["message"].as_str().unwrap_or_default().contains("processing changes")
        })
        .await;
    assert_eq!(item(&applying, "enable-load-aware-descheduling")["state"], "Completed");
    platform.roll(&[PSI], 1).await;
    let rolling = platform
        .until(LOAD_AWARE, "rolling", |config| {
            item(config, "enable-psi-metrics")["message"]
                == "MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)"
        })
        .await;
    assert_eq!(kstatus(&rolling), "InProgress");
    let awaited = "enable-psi-metrics: MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)";
    assert_eq!(condition(&rolling, "Reconciling")["message"], awaited);
    platform.roll(&[PSI], 3).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(
        item(&done, "enable-psi-metrics")["message"],
        "MachineConfigPool 'worker' is ready (all 3 nodes updated)"
    );

    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 180}))).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, "enable-load-aware-descheduling")["driftedBy"]["manager"], "kubectl-edit");
    assert_eq!((&condition(&drifted, "Drifted")["status"], kstatus(&drifted)), (&json!("True"), "Failed"));
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 60}))).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}
