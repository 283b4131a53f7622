//! Approvals of a plan, and plans that are stale.

use serde_json::{Value, json};

use super::{DENSITY_ITEM, DESCHEDULER, interval, no_psi, no_swap};
use testkit::{
    configs::{condition, item, phase, reason},
    platform::{DENSITY, LOAD_AWARE, Platform, descheduler, hyper_converged},
    running_operator::RunningOperator,
};

const STALE: &str = "Plan is stale: target resources have been modified since plan generation. Please regenerate the \
                     plan by changing action to DryRun, then review and re-approve.";

fn digest(config: &Value) -> &str {
    config["status"]["planDigest"].as_str().unwrap()
}

fn is_mismatched(config: &Value) -> bool {
    reason(config, "ReviewRequired") == "ApprovalMismatch"
        && config["status"]["observedGeneration"] == config["metadata"]["generation"]
}

/// W7 (applied unlike reviewed): read and approved by its digest.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_plan_that_the_approval_names_is_applied() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let another = "0".repeat(64);
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let mark = platform.mark().await;

    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": {"planDigest": another}})).await;
    let refused = platform.until(LOAD_AWARE, "refused", is_mismatched).await;
    assert_eq!(phase(&refused), "ReviewRequired");
    let message = condition(&refused, "ReviewRequired")["message"].as_str().unwrap();
    assert!(message.contains(&another) && message.contains(digest(&planned)), "{message}");
    assert_eq!(digest(&refused), digest(&planned), "the plan is the same");

    // The same for an approval before there was a plan.
    let approval = json!({"action": "Apply", "approval": {"planDigest": another}, "options": no_swap()});
    platform.configure(DENSITY, approval).await;
    let refused = platform.until(DENSITY, "refused", is_mismatched).await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    for (profile, config) in [(LOAD_AWARE, &planned), (DENSITY, &refused)] {
        platform.configure(profile, json!({"approval": {"planDigest": digest(config)}})).await;
        platform.until_phase(profile, "Completed").await;
    }
    let changes = platform.changes_since(mark).await;
    assert_eq!(changes, ["patch kubedeschedulers cluster", "patch hyperconvergeds kubevirt-hyperconverged"]);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_given_beforehand_applies_at_once() {
    let platform = Platform::shared().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": no_psi()})).await;
    let operator = RunningOperator::start(&platform).await;
    let applied = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(applied["metadata"]["generation"], 1, "nobody had to say anything else");
    assert_eq!(item(&applied, DESCHEDULER)["message"], "Applied successfully");
    operator.stop().await;
}

/// D15 (first phases): under DryRun, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_without_changes_is_in_effect_at_once_and_writes_nothing() {
    let platform = Platform::shared().await;
    let as_wanted = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 120}});
    platform.apply("admin", &hyper_converged(as_wanted), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(DENSITY, "Ignored").await;
    let mark = platform.mark().await;
    for action in ["DryRun", "Apply"] {
        platform.configure(DENSITY, json!({"action": action, "options": no_swap()})).await;
        let done = platform.until_phase(DENSITY, "Completed").await;
        let item = item(&done, DENSITY_ITEM);
        assert_eq!((&item["state"], &item["message"]), (&json!("Completed"), &json!("Already in desired state")));
        assert_eq!(item["impactSeverity"], "Low", "nothing changes, so nothing is disturbed");
        assert_eq!(reason(&done, "Completed"), "Completed");
    }
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}

/// W24 (race before the write), W32 (wrong diffs): whoever reads it is told that it is old.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_whose_target_has_moved_says_so_and_is_not_applied_unless_told_to() {
    let platform = Platform::shared().await;
    platform.apply("admin", &descheduler(json!({"deschedulingIntervalSeconds": 3600, "profiles": []})), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;

    platform.patch("kubectl-edit", &interval(600)).await;
    let stale = |config: &Value| reason(config, "ReviewRequired") == "PlanStale";
    let outdated = platform.until(LOAD_AWARE, "out of date", stale).await;
    let message = condition(&outdated, "ReviewRequired")["message"].as_str().unwrap();
    assert!(message.contains("KubeDescheduler 'cluster' was changed by kubectl-edit. "), "{message}");
    assert_eq!(outdated["status"]["items"], planned["status"]["items"], "whoever reads the plan keeps it");

    let mark = platform.mark().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    let failed = platform.until_phase(LOAD_AWARE, "Failed").await;
    assert_eq!((reason(&failed, "Failed"), &condition(&failed, "Failed")["message"]), ("PlanStale", &json!(STALE)));
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let redrawn = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&redrawn, DESCHEDULER)["diff"].as_str().unwrap();
    assert!(diff.contains("-  deschedulingIntervalSeconds: 600\n"), "{diff}");

    platform.patch("kubectl-edit", &interval(700)).await;
    platform.until(LOAD_AWARE, "out of date again", stale).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "bypassOptimisticLock": true})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    let live = platform.get(&descheduler(Value::Null)).await;
    assert_eq!(live["spec"]["deschedulingIntervalSeconds"], 60);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_that_moved_and_moved_back_leaves_the_plan_as_good_as_it_was() {
    let platform = Platform::shared().await;
    platform.apply("admin", &descheduler(json!({"deschedulingIntervalSeconds": 3600, "profiles": []})), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": no_psi()})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    platform.patch("admin", &interval(600)).await;
    platform.until(LOAD_AWARE, "out of date", |config| reason(config, "ReviewRequired") == "PlanStale").await;
    platform.patch("admin", &interval(3600)).await;
    let good = |config: &Value| reason(config, "ReviewRequired") == "ReviewRequired";
    platform.until(LOAD_AWARE, "good again", good).await;
    let named = json!({"planDigest": digest(&planned)});
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": named})).await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    operator.stop().await;
}
