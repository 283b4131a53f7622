//! Every version of the descheduler's operator × new or existing objects × both profiles: each is completed, stays so with
//! the requests of its rechecks only, and reports drift.

use std::time::Duration;

use serde_json::{Value, json};

use super::{DENSITY_ITEM, DESCHEDULER};
use testkit::{
    configs::{condition, item, reason},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged, machine_config},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

const RECHECK: Duration = Duration::from_millis(300);

/// Objects of an administrator, in every version of the definitions.
async fn configured_by_hand(platform: &Platform) {
    let spec = json!({
        "managementState": "Unmanaged",
        "deschedulingIntervalSeconds": 3600,
        "profiles": ["AffinityAndTaints", "LifecycleAndUtilization"],
    });
    platform.apply("admin", &descheduler(spec), "").await;
    platform.apply("admin", &machine_config(PSI, json!({"kernelArguments": ["quiet", "psi=0"]})), "").await;
    let other = json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": []}}});
    platform.apply("admin", &machine_config(SWAP, other), "").await;
    let density = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 130}});
    platform.apply("admin", &hyper_converged(density), "").await;
}

/// Edits a target, which is reported as drift, and reverts the edit.
async fn drifts_and_recovers(platform: &Platform, profile: &str, name: &str, there: Value, back: Value, case: &str) {
    platform.patch("kubectl-edit", &there).await;
    let drifted = platform.until_phase(profile, "Drifted").await;
    assert_eq!(item(&drifted, name)["driftedBy"]["manager"], "kubectl-edit", "{case}");
    assert_eq!(reason(&drifted, "Drifted"), "DriftDetected", "{case}");
    let diff = item(&drifted, name)["diff"].as_str().unwrap();
    assert!(diff.contains("\n-") && diff.contains("\n+"), "{case}: {diff}");
    assert_eq!(platform.get(&there).await["spec"], platform.patch("nobody", &there).await["spec"], "{case}: untouched");

    platform.patch("kubectl-edit", &back).await;
    let completed = platform.until_phase(profile, "Completed").await;
    assert_eq!(item(&completed, name)["driftedBy"], Value::Null, "{case}");
    assert!(item(&completed, name)["diff"].as_str().unwrap().ends_with("(no changes)\n"), "{case}");
    assert_eq!(condition(&completed, "Drifted")["status"], "False", "{case}");
}

/// Completed: only rechecks, as many as the time allows, and no writes.
async fn stays_quiet(platform: &Platform, case: &str) {
    let (mark, before) = (platform.mark().await, platform.config(LOAD_AWARE).await);
    let requests = eventually("two rechecks", async || {
        let requests = platform.requests_since(mark).await;
        let rechecks = requests.iter().filter(|request| request.resource == "kubedeschedulers").count();
        (rechecks >= 2).then_some(requests)
    })
    .await;
    let writes: Vec<_> = requests.iter().filter(|request| request.is_write()).map(ToString::to_string).collect();
    assert!(writes.is_empty(), "{case}: {writes:?}");
    // Two plans, up to three rechecks each, of at most six objects.
    assert!(requests.len() <= 2 * 3 * 6, "{case}: {} requests: {requests:#?}", requests.len());
    assert_eq!(platform.config(LOAD_AWARE).await, before, "{case}");
}

/// W1 (endless updates), D32 (all descheduler releases): not a write more, whatever limits a version has.
#[tokio::test(flavor = "multi_thread")]
async fn every_descheduler_version_comes_into_force_and_is_watched_without_a_loop() {
    let platform = Platform::at_rest().await;
    platform.install().await;
    for (version, profile) in [
        ("4.17", "LongLifecycle"),
        ("4.18", "DevKubeVirtRelieveAndMigrate"),
        ("4.19", "DevKubeVirtRelieveAndMigrate"),
        ("4.20", "KubeVirtRelieveAndMigrate"),
        ("4.21", "KubeVirtRelieveAndMigrate"),
        ("5.1", "KubeVirtRelieveAndMigrate"),
    ] {
        for existing in [false, true] {
            let case = format!("{version}, {}", if existing { "existing objects" } else { "fresh" });
            platform.tidy_up().await;
            platform.define(&format!("kubedescheduler-{version}.yaml")).await;
            platform.populate().await;
            if existing {
                configured_by_hand(&platform).await;
            }
            let operator = RunningOperator::rechecking_every(&platform, RECHECK).await;
            platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
            // An edit of what the options fix is ordinary drift.
            let options = json!({"virtHigherDensity": {"memoryToRequestRatio": 150, "ksmConfiguration": {}}});
            let density = platform.complete(DENSITY, json!({"options": options}), &[PSI, SWAP]).await;
            let load_aware = platform.until_phase(LOAD_AWARE, "Completed").await;
            for config in [&load_aware, &density] {
                assert_eq!(reason(config, "Completed"), "Completed", "{case}");
                assert_eq!(condition(config, "InputDependencyDrift"), &Value::Null, "{case}");
            }
            let live = platform.get(&descheduler(Value::Null)).await;
            let expected = if existing { json!(["AffinityAndTaints", profile]) } else { json!([profile]) };
            assert_eq!(live["spec"]["profiles"], expected, "{case}");
            let state = if existing { "Unmanaged" } else { "Managed" };
            assert_eq!(live["spec"]["managementState"], state, "{case}");

            stays_quiet(&platform, &case).await;
            let interval = |seconds: i32| descheduler(json!({"deschedulingIntervalSeconds": seconds}));
            drifts_and_recovers(&platform, LOAD_AWARE, DESCHEDULER, interval(180), interval(60), &case).await;
            let ratio = |percent: i32| {
                hyper_converged(json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": percent}}))
            };
            drifts_and_recovers(&platform, DENSITY, DENSITY_ITEM, ratio(130), ratio(150), &case).await;
            operator.stop().await;
        }
    }
}
