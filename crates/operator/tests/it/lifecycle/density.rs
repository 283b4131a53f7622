//! HyperConverged is both target and input of higher density: a change of our defaults leads to a review, a change of what
//! the options fix is drift.

use serde_json::{Value, json};

use super::DENSITY_ITEM;
use testkit::{
    configs::{condition, item, phase, reason},
    platform::{DENSITY, Platform, hyper_converged},
    rollout::SWAP,
    running_operator::RunningOperator,
};

const DRIFT: &str = "InputDependencyDrift";

fn ratio(percent: i32) -> Value {
    hyper_converged(json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": percent}}))
}

/// W3 (missed density changes), D5 (changed input): ratio and page merging.
#[tokio::test(flavor = "multi_thread")]
async fn what_we_set_by_default_and_others_change_is_reviewed_and_resolves_itself_when_set_back() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(DENSITY, json!({}), &[SWAP]).await;
    let mark = platform.mark().await;
    let merging = |ksm: Value| hyper_converged(json!({"ksmConfiguration": ksm}));
    let everywhere = || merging(json!({"nodeLabelSelector": {"matchLabels": null}}));
    for (case, change, back, why, shown) in [
        (
            "another ratio",
            ratio(200),
            ratio(150),
            "HCO memoryOvercommitPercentage changed (150 -> 200)",
            "-    memoryOvercommitPercentage: 200\n+    memoryOvercommitPercentage: 150\n",
        ),
        (
            "page merging on some nodes",
            merging(json!({"nodeLabelSelector": {"matchLabels": {"ksm": "true"}}})),
            everywhere(),
            "HCO KSM configuration changed (other nodes are selected)",
            "+    nodeLabelSelector: {}\n",
        ),
        (
            "no page merging",
            merging(json!({"nodeLabelSelector": null})),
            everywhere(),
            "HCO KSM configuration changed (was true, now false)",
            "+    nodeLabelSelector: {}\n",
        ),
    ] {
        platform.patch("admin", &change).await;
        let review = platform.until_phase(DENSITY, "ReviewRequired").await;
        assert_eq!(reason(&review, DRIFT), "InputChanged", "{case}");
        assert_eq!(condition(&review, DRIFT)["message"], format!("Input dependency changed: {why}"), "{case}");
        let diff = item(&review, DENSITY_ITEM)["diff"].as_str().unwrap();
        assert!(diff.contains(shown), "{case}: {diff}");

        platform.patch("admin", &back).await;
        let resolved = platform.until_phase(DENSITY, "Completed").await;
        assert_eq!(condition(&resolved, DRIFT)["reason"], "DriftResolved", "{case}");
    }
    assert_eq!(platform.changes_since(mark).await, [""; 0], "all the time the action was Apply");

    // After approval it is set again; our own write is no change of an input.
    platform.patch("admin", &ratio(200)).await;
    platform.until_phase(DENSITY, "ReviewRequired").await;
    platform.configure(DENSITY, json!({"waitTimeout": "1h"})).await;
    let done = platform.until_phase(DENSITY, "Completed").await;
    assert_eq!(condition(&done, DRIFT)["reason"], "Acknowledged");
    assert_eq!(platform.changes_since(mark).await, ["patch hyperconvergeds kubevirt-hyperconverged"]);
    operator.stop().await;
}

/// D5 (changed input): the user has the last word.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_options_fix_drifts_the_ordinary_way() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let options = json!({"virtHigherDensity": {
        "enableSwap": false,
        "memoryToRequestRatio": 110,
        "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": "true"}}},
    }});
    let selects = |value: &str| {
        hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"ksm": value}}}}))
    };
    platform.complete(DENSITY, json!({"options": options}), &[]).await;
    for (change, back) in [(ratio(200), ratio(110)), (selects("false"), selects("true"))] {
        platform.patch("kubectl-edit", &change).await;
        let drifted = platform.until_phase(DENSITY, "Drifted").await;
        assert_eq!(item(&drifted, DENSITY_ITEM)["driftedBy"]["manager"], "kubectl-edit", "{change}");
        assert_eq!(condition(&drifted, DRIFT), &Value::Null, "{change}");
        platform.patch("kubectl-edit", &back).await;
        platform.until_phase(DENSITY, "Completed").await;
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_merging_that_the_options_turn_off_and_others_turn_on_is_told() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let merging = hyper_converged(json!({"ksmConfiguration": {"nodeLabelSelector": {}}}));
    for (ksm, told) in [
        (json!({"enabled": false}), "Drifted"),
        // Off by default, not by the options: it is an input.
        (Value::Null, "ReviewRequired"),
    ] {
        let options = json!({"virtHigherDensity": {"enableSwap": false, "ksmConfiguration": ksm}});
        platform.complete(DENSITY, json!({"options": options}), &[]).await;
        platform.patch("kubectl-edit", &merging).await;
        let config = platform.until(DENSITY, told, |config| phase(config) == told).await;
        let is_forced = reason(&config, DRIFT) == "InputChanged";
        assert_eq!(is_forced, told == "ReviewRequired", "{options}");
        platform.configure(DENSITY, json!({"action": "Ignore"})).await;
        platform.until_phase(DENSITY, "Ignored").await;
    }
    operator.stop().await;
}
