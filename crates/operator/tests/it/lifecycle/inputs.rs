//! Inputs of a plan for load-aware rebalancing that change later: the migration limits.

use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM, interval, limits, no_psi};
use testkit::{
    configs::{condition, is_waiting_for_nodes, item, phase, reason},
    platform::{LOAD_AWARE, Platform, descheduler},
    rollout::PSI,
    running_operator::RunningOperator,
};

const DRIFT: &str = "InputDependencyDrift";

/// Waits for a forced review with this reason.
async fn forced_review(platform: &Platform, why: &str) -> Value {
    let message = format!("Input dependency changed: {why}");
    let forced = |config: &Value| {
        let marked = condition(config, DRIFT);
        phase(config) == "ReviewRequired" && marked["status"] == "True" && marked["message"] == message
    };
    let config = platform.until(LOAD_AWARE, &message, forced).await;
    assert_eq!(reason(&config, DRIFT), "InputChanged");
    config
}

async fn live_limits(platform: &Platform) -> Value {
    platform.get(&descheduler(Value::Null)).await["spec"]["evictionLimits"].clone()
}

/// The workflow guide, sections 10 and 11: somebody edited the descheduler, and somebody else the migration limits.
/// W31 (pointless forced review), D5 (changed input): and it does not ask for an action that is set.
#[tokio::test(flavor = "multi_thread")]
async fn changed_migration_limits_lead_to_a_new_plan_that_waits_for_a_person() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    let mark = platform.mark().await;

    platform.patch("admin", &limits(10, 4)).await;
    let review = forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)").await;
    let waiting = condition(&review, "ReviewRequired")["message"].as_str().unwrap().to_owned();
    assert!(waiting.starts_with("Plan ready for review. "), "{waiting}");
    assert!(!waiting.contains("Change action to 'Apply'"), "the action is Apply already: {waiting}");
    for (kind, reason, message) in [
        ("Ignored", "NotIgnored", "Configuration is being managed"),
        ("Drafting", "NotDrafting", "Plan generation completed"),
        ("InProgress", "NotInProgress", "Plan is not being applied"),
        ("Completed", "NotCompleted", "Plan not yet applied"),
        ("Drifted", "NoDrift", "Configuration is in sync with desired state"),
        ("PrerequisiteFailed", "ReviewRequired", &waiting),
        ("Failed", "ReviewRequired", &waiting),
    ] {
        let found = condition(&review, kind);
        let found = (&found["status"], &found["reason"], &found["message"]);
        assert_eq!(found, (&json!("False"), &json!(reason), &json!(message)), "{kind}");
    }
    assert_eq!(review["status"]["impactSeverity"], "Low");
    let psi = item(&review, PSI_ITEM);
    assert_eq!(psi["message"], "PSI metrics already effective in MachineConfigPool 'worker'");
    assert_eq!((&psi["state"], &psi["impactSeverity"]), (&json!("Pending"), &json!("Low")));
    let diff = item(&review, DESCHEDULER)["diff"].as_str().unwrap();
    let hunk = "-  deschedulingIntervalSeconds: 180\n+  deschedulingIntervalSeconds: 60\n   evictionLimits:\n\
                -    node: 2\n-    total: 5\n+    node: 4\n+    total: 10\n";
    assert!(diff.contains(hunk), "{diff}");
    assert_eq!(platform.changes_since(mark).await, [""; 0], "although the action is Apply");

    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let acknowledged = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let marked = condition(&acknowledged, DRIFT);
    assert_eq!((&marked["status"], &marked["reason"]), (&json!("False"), &json!("Acknowledged")));
    assert_eq!(marked["message"], "User acknowledged input dependency change");
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(condition(&done, DRIFT)["reason"], "Acknowledged", "it stays on record");
    assert_eq!(live_limits(&platform).await, json!({"total": 10, "node": 4}));
    assert_eq!(platform.changes_since(mark).await, ["patch kubedeschedulers cluster"]);
    operator.stop().await;
}

/// D22 (acknowledge with options): other options are another plan, and acknowledge nothing.
#[tokio::test(flavor = "multi_thread")]
async fn any_new_generation_acknowledges_a_forced_review_and_nothing_else_does() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    // `bypassOptimisticLock` does not acknowledge it either.
    let spec = json!({"options": no_psi(), "bypassOptimisticLock": true});
    platform.complete(LOAD_AWARE, spec, &[]).await;
    let mark = platform.mark().await;
    platform.patch("admin", &limits(10, 4)).await;
    forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)").await;

    // Other options lead to another plan, which was not reviewed either.
    platform.configure(LOAD_AWARE, json!({"options": {"loadAware": {"mode": "Predictive"}}})).await;
    let again = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(reason(&again, DRIFT), "InputChanged", "still forced");
    assert_eq!(item(&again, DESCHEDULER).pointer("/desiredState/spec/mode"), Some(&json!("Predictive")));
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(condition(&done, DRIFT)["reason"], "Acknowledged");
    let live = platform.get(&descheduler(Value::Null)).await;
    assert_eq!((&live["spec"]["mode"], &live["spec"]["evictionLimits"]["total"]), (&json!("Predictive"), &json!(10)));
    operator.stop().await;
}

/// D5 (changed input): nobody has to do anything.
#[tokio::test(flavor = "multi_thread")]
async fn limits_that_are_set_back_resolve_the_review_by_themselves() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;
    platform.patch("admin", &limits(10, 2)).await;
    forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)").await;
    // Another change during the review leads to another plan.
    platform.patch("admin", &limits(20, 2)).await;
    forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 10 -> 18)").await;
    platform.patch("admin", &limits(5, 2)).await;
    let resolved = platform.until_phase(LOAD_AWARE, "Completed").await;
    let marked = condition(&resolved, DRIFT);
    assert_eq!((&marked["status"], &marked["reason"]), (&json!("False"), &json!("DriftResolved")));
    assert_eq!(marked["message"], "Input dependency drift resolved - external changes reverted");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// W40 (ignored status errors): one status.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_without_consequences_does_nothing_and_is_remembered() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.patch("admin", &limits(10, 2)).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    let mark = platform.mark().await;
    // Ten and eleven migrations both mean ten evictions.
    platform.patch("admin", &limits(11, 2)).await;
    let remembered = |config: &Value| config.pointer("/status/inputs/0/value") == Some(&json!("11"));
    let config = platform.until(LOAD_AWARE, "remembered", remembered).await;
    assert_eq!((phase(&config), condition(&config, DRIFT)), ("Completed", &Value::Null));
    // The record of the plan may be closed meanwhile.
    let of_records = |resource: &str| resource.starts_with("virtplatformplanrecords");
    let writes = platform.requests_since(mark).await.into_iter().filter(|request| request.is_write());
    let statuses = writes.filter(|request| !of_records(&request.resource)).count();
    assert_eq!(statuses, 1, "one status, and nothing else");

    platform.patch("admin", &limits(12, 2)).await;
    forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 10 -> 11)").await;
    operator.stop().await;
}

/// W19 (wrong culprit): each on its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_is_fixed_in_the_options_is_not_followed_and_the_other_is() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let options = json!({"loadAware": {"enablePSIMetrics": false, "evictionLimitTotal": 7}});
    platform.complete(LOAD_AWARE, json!({"options": options}), &[]).await;
    platform.patch("admin", &limits(10, 2)).await;
    platform.patch("admin", &limits(10, 4)).await;
    forced_review(&platform, "HCO parallelOutboundMigrationsPerNode changed (scaled 2 -> 4)").await;
    platform.configure(LOAD_AWARE, json!({"waitTimeout": "1h"})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(live_limits(&platform).await, json!({"total": 7, "node": 4}));
    operator.stop().await;
}

/// W19 (wrong culprit): HyperConverged is not blamed for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_the_limits_themselves_is_drift_and_no_changed_input() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    platform.patch("kubectl-edit", &descheduler(json!({"evictionLimits": {"total": 3}}))).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], "kubectl-edit");
    assert_eq!(condition(&drifted, DRIFT), &Value::Null);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_change_during_a_rollout_are_for_the_next_plan() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    platform.patch("admin", &limits(10, 2)).await;
    platform.roll(&[PSI], 3).await;
    forced_review(&platform, "HCO parallelMigrationsPerCluster changed (scaled 5 -> 10)").await;
    assert_eq!(live_limits(&platform).await, json!({"total": 5, "node": 2}), "as approved");
    operator.stop().await;
}
