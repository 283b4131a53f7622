//! The user agent in the audit log: the program and its version.

use std::collections::BTreeSet;

use advisor::access::NAMESPACE;
use operator::{LeaseSettings, OperatorSettings};
use serde_json::json;

use super::{DESCHEDULER, interval};
use testkit::{
    configs::item,
    platform::{LOAD_AWARE, Platform},
    rollout::PSI,
    running_operator::{OPERATOR, RunningOperator},
};

#[tokio::test(flavor = "multi_thread")]
async fn every_request_of_the_operator_says_that_it_is_the_operators_and_of_which_version() {
    let platform = Platform::shared().await;
    let mark = platform.mark().await;
    let lease = Some(LeaseSettings::new(NAMESPACE.to_owned()));
    let operator =
        RunningOperator::start_with(&platform, OperatorSettings { lease, ..OperatorSettings::default() }).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.patch("kubectl-edit", &interval(180)).await;
    let drifted = platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(item(&drifted, DESCHEDULER)["driftedBy"]["manager"], "kubectl-edit");
    super::events::until_event(&platform, DRIFTED).await;
    operator.stop().await;

    let all = platform.cluster.audit().since(mark, &platform.client).await.unwrap();
    let requests: Vec<_> = all.iter().filter(|request| request.user == OPERATOR).collect();
    let agents: BTreeSet<&str> = requests.iter().map(|request| &*request.user_agent).collect();
    assert_eq!(agents.into_iter().collect::<Vec<_>>(), [api::user_agent("operator")]);
    let made: BTreeSet<String> =
        requests.iter().map(|request| format!("{} {}", request.verb, request.resource)).collect();
    for expected in [
        "watch virtplatformconfigs",
        "watch kubedeschedulers",
        "update virtplatformconfigs",
        "patch kubedeschedulers",
        "create events",
        "get machineconfigs",
        "update leases",
    ] {
        assert!(made.contains(expected), "{expected} is not among {made:#?}");
    }
}

const DRIFTED: &str = "Warning DriftDetected: Drifted (was Completed): Configuration has drifted from desired state";
