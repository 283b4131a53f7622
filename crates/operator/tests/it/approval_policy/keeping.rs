//! `--approval-policy`: the operator keeps policies and bindings itself.

use std::collections::BTreeSet;

use advisor::{
    access::{self, NAMESPACE, SERVICE_ACCOUNT},
    admission::{self, PolicyMode},
};
use devcluster::Cluster;
use operator::OperatorSettings;
use serde_json::{Value, json};
use testkit::{
    eventually,
    files::{documents, root},
    platform::{LOAD_AWARE, Platform},
    rbac::permissions,
    running_operator::{OPERATOR, RunningOperator},
};

use super::{MERGE, put, shipped, until_enforced};

const KEPT: usize = 4;

/// Gives the rights of `config/approval-policy` to the operator under test.
async fn grant(platform: &Platform) {
    platform.operator().await;
    for mut object in documents(&root().join("config/approval-policy/role.yaml")) {
        if object.get("subjects").is_some() {
            object["subjects"][0]["name"] = SERVICE_ACCOUNT.into();
            assert_eq!(object["subjects"][0]["namespace"], NAMESPACE);
        }
        platform.apply("installer", &object, "").await;
    }
    for permission in permissions(&[access::policy_manager()]) {
        eventually("the rights count", async || platform.may(OPERATOR, &permission).await.then_some(())).await;
    }
}

async fn start(platform: &Platform, mode: PolicyMode) -> RunningOperator {
    let settings = OperatorSettings { approval_policy: Some(mode), ..OperatorSettings::default() };
    RunningOperator::start_with(platform, settings).await
}

async fn find(platform: &Platform, path: &str) -> Option<Value> {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    platform.client.request(request).await.ok()
}

/// What there is of policies and bindings.
async fn found(platform: &Platform) -> Vec<Value> {
    let mut found = Vec::new();
    for path in admission::paths() {
        found.extend(find(platform, &path).await);
    }
    found
}

async fn until_kept(platform: &Platform, mode: PolicyMode) {
    let wanted = admission::kept(mode, OPERATOR, "");
    eventually(format!("{mode:?} is kept"), async || {
        for object in &wanted {
            let found = find(platform, &admission::path(object)).await?;
            (found["spec"] == object["spec"] && admission::is_kept(&found)).then_some(())?;
        }
        Some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_keeps_the_policy_undoes_what_others_do_to_it_and_removes_it() {
    let platform = Platform::with(&[]).await;
    platform.install().await;
    grant(&platform).await;
    let mark = platform.mark().await;
    let operator = start(&platform, PolicyMode::Enforce).await;
    until_kept(&platform, PolicyMode::Enforce).await;
    until_enforced(&platform).await;
    // It knows itself as the one who writes statuses, and goes on doing so.
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "PrerequisiteFailed").await;

    // Whatever somebody does to it, there is more than one way to switch it off.
    let [approval, status, policy, _] = admission::paths();
    let never = json!({"name": "never", "expression": "false"});
    let conditions = find(&platform, &policy).await.unwrap()["spec"]["matchConditions"].clone();
    let disturbances = [
        (&approval, json!({"spec": {"validationActions": ["Audit"]}})),
        (&approval, json!({"spec": {"matchResources": {"objectSelector": {"matchLabels": {"a": "b"}}}}})),
        (&policy, json!({"spec": {"matchConditions": [conditions[0], never]}})),
        (&policy, json!({"spec": {"failurePolicy": "Ignore"}})),
        (&status, Value::Null),
        (&policy, Value::Null),
    ];
    for (path, patch) in disturbances {
        match patch {
            Value::Null => platform.request("DELETE", path, None, Value::Null).await,
            patch => platform.request("PATCH", path, Some(MERGE), patch).await,
        };
        until_kept(&platform, PolicyMode::Enforce).await;
    }
    operator.stop().await;

    let operator = start(&platform, PolicyMode::Audit).await;
    until_kept(&platform, PolicyMode::Audit).await;
    operator.stop().await;

    // What somebody else installed is theirs.
    let foreign = shipped("policies.yaml").swap_remove(0);
    platform.request("DELETE", &policy, None, Value::Null).await;
    put(&platform, &foreign).await;
    let operator = start(&platform, PolicyMode::Off).await;
    eventually("what it kept is gone", async || (found(&platform).await.len() == 1).then_some(())).await;
    assert!(find(&platform, &policy).await.is_some());
    operator.stop().await;

    // Each right was used. An apply that creates is authorized as a creation and logged as a patch.
    let requests = platform.cluster.audit().since(mark, &platform.client).await.unwrap();
    let own = requests.iter().filter(|request| request.user == OPERATOR && request.succeeded());
    let used: BTreeSet<(&str, &str)> = own
        .flat_map(|request| {
            let created = (request.code == 201).then_some((request.resource.as_str(), "create"));
            [Some((request.resource.as_str(), request.verb.as_str())), created]
        })
        .flatten()
        .collect();
    let unused: Vec<String> = permissions(&[access::policy_manager()])
        .iter()
        .filter(|permission| !used.contains(&(permission.resource, permission.verb)))
        .map(ToString::to_string)
        .collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_was_told_nothing_asks_for_no_policy() {
    let platform = Platform::with(&[]).await;
    platform.install().await;
    let mark = platform.mark().await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    operator.stop().await;
    let requests = platform.cluster.audit().since(mark, &platform.client).await.unwrap();
    let about: Vec<String> = requests
        .iter()
        .filter(|request| request.user == OPERATOR && request.group == "admissionregistration.k8s.io")
        .map(ToString::to_string)
        .collect();
    assert!(about.is_empty(), "{about:?}");
}

/// A policy about a kind that is not there would be in nobody's way, but nobody would remove it either.
#[tokio::test(flavor = "multi_thread")]
async fn the_policy_goes_with_the_definition() {
    let cluster = Cluster::builder().controllers(&["garbage-collector-controller"]).start().await.unwrap();
    let platform = Platform::on(cluster).await;
    platform.install().await;
    grant(&platform).await;
    let operator = start(&platform, PolicyMode::Enforce).await;
    until_kept(&platform, PolicyMode::Enforce).await;
    assert_eq!(found(&platform).await.len(), KEPT);
    operator.stop().await;
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", admission::DEFINITION);
    platform.request("DELETE", &definition, None, Value::Null).await;
    eventually("all of it is gone", async || found(&platform).await.is_empty().then_some(())).await;
}
