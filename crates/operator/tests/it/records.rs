//! Every applied plan leaves a record: before its first write, and final at its end.

use operator::OperatorSettings;
use serde_json::{Value, json};
use testkit::{
    configs::config,
    platform::{LOAD_AWARE, Platform, descheduler, path},
    running_operator::RunningOperator,
};

fn record(number: u32) -> Value {
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
        "metadata": {"name": format!("{LOAD_AWARE}-{number}")},
    })
}

fn interval(seconds: i32) -> Value {
    json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": seconds}})
}

/// The record of load-aware-rebalancing with this number, once it is closed.
pub(crate) async fn finished(platform: &Platform, number: u32) -> Value {
    testkit::eventually("the record is closed", async || {
        let record = platform.find(&record(number)).await?;
        record.pointer("/status/finishedAt").is_some().then_some(record)
    })
    .await
}

/// The names of all records.
async fn names(platform: &Platform) -> Vec<String> {
    let uri = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords";
    let list = platform.request("GET", uri, None, Value::Null).await;
    let name = |record: &Value| record["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_is_made_before_the_first_write_and_nobody_can_change_it() {
    let platform = Platform::shared().await;
    platform.apply("kubectl", &descheduler(json!({"deschedulingIntervalSeconds": 3600})), "").await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "options": interval(120)})).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(names(&platform).await, [""; 0], "nothing was applied");
    let digest = planned["status"]["planDigest"].as_str().unwrap();
    let mark = platform.mark().await;
    let approval = json!({"planDigest": digest, "approvedBy": "jane", "reason": "CHG-42"});
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "approval": approval})).await;
    let completed = platform.until_phase(LOAD_AWARE, "Completed").await;
    let reference = json!({"name": "load-aware-rebalancing-1", "planDigest": digest, "created": true});
    assert_eq!(completed["status"]["record"], reference);

    let found = finished(&platform, 1).await;
    let spec = &found["spec"];
    assert_eq!((&spec["planDigest"], &spec["first"], &spec["original"]), (&json!(digest), &json!(true), &json!(true)));
    let granted = &spec["approval"];
    let told = (&granted["approvedBy"], &granted["reason"], &granted["mode"]);
    assert_eq!(told, (&json!("jane"), &json!("CHG-42"), &json!("Reviewed")));
    let item = &spec["items"][0];
    assert_eq!(item["diff"], planned["status"]["items"][0]["diff"], "the diff that was read");
    let leaf = |name: &str| {
        let leaves = item["leaves"].as_array().unwrap();
        leaves.iter().find(|leaf| leaf["path"].as_array().unwrap().last() == Some(&json!(name))).unwrap()
    };
    let seconds = leaf("f:deschedulingIntervalSeconds");
    assert_eq!((&seconds["before"], &seconds["after"]), (&json!("3600"), &json!("120")));
    assert_eq!(seconds["formerOwners"], json!(["kubectl"]));
    let status = &found["status"];
    assert_eq!((&status["outcome"], &status["items"][0]["applied"]), (&json!("Completed"), &json!(true)));

    let requests = platform.requests_since(mark).await;
    let ours = |resource: &str, verb: &str| {
        requests.iter().position(|it| it.resource == resource && it.verb == verb && it.is_write())
    };
    let (created, written) = (ours("virtplatformplanrecords", "create"), ours("kubedeschedulers", "patch"));
    assert!(created.unwrap() < written.unwrap(), "{requests:?}");
    let of_records: Vec<_> = requests.iter().filter(|it| it.resource.starts_with("virtplatformplanrecords")).collect();
    assert_eq!(of_records.len(), 2, "one to create it and one to close it: {of_records:?}");

    let kubernetes = platform.client.clone();
    for (subresource, patch, rule) in [
        ("", json!({"spec": {"approval": {"approvedBy": "bob"}}}), "A record is immutable"),
        ("/status", json!({"status": {"outcome": "Failed"}}), "its record is final"),
    ] {
        let request = http::Request::patch(format!("{}{subresource}", path(&found)))
            .header("content-type", "application/merge-patch+json")
            .body(patch.to_string().into_bytes())
            .unwrap();
        let error = kubernetes.request::<Value>(request).await.unwrap_err().to_string();
        assert!(error.contains(rule), "{error}");
    }
    operator.stop().await;
}

/// A configuration that is created again does not know the last number.
#[tokio::test(flavor = "multi_thread")]
async fn records_outlive_the_configuration_and_their_numbers_go_on() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": interval(120)}), &[]).await;
    finished(&platform, 1).await;
    platform.complete(LOAD_AWARE, json!({"options": interval(180)}), &[]).await;
    let second = finished(&platform, 2).await;
    assert_eq!(second["spec"]["first"], false);
    platform.delete(&config(LOAD_AWARE, json!({}))).await;
    platform.until(LOAD_AWARE, "offered again", |config| config["spec"]["action"] == "Ignore").await;
    platform.complete(LOAD_AWARE, json!({"options": interval(240)}), &[]).await;
    let third = finished(&platform, 3).await;
    assert_ne!(third["spec"]["configUid"], second["spec"]["configUid"]);
    assert_eq!(names(&platform).await.len(), 3);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_records_are_kept_as_the_operator_is_told_and_those_that_a_restore_needs() {
    let platform = Platform::shared().await;
    let settings = OperatorSettings { records_kept: 2, ..OperatorSettings::default() };
    let operator = RunningOperator::start_with(&platform, settings).await;
    for (number, seconds) in (1..=5).zip([100, 110, 120, 130, 140]) {
        platform.complete(LOAD_AWARE, json!({"options": interval(seconds)}), &[]).await;
        finished(&platform, number).await;
    }
    let kept = ["load-aware-rebalancing-1", "load-aware-rebalancing-5"];
    testkit::eventually("the others are deleted", async || (names(&platform).await == kept).then_some(())).await;
    operator.stop().await;
}

/// A plan that is given up leaves a record that says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_given_up_is_superseded() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", testkit::configs::is_waiting_for_nodes).await;
    assert_eq!(platform.get(&record(1)).await.pointer("/status/finishedAt"), None, "it is not finished");
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let closed = finished(&platform, 1).await;
    assert_eq!(closed["status"]["outcome"], "Superseded");
    let states = closed["status"]["items"].as_array().unwrap();
    assert!(states.iter().any(|item| item["applied"] == true), "{states:?}");
    operator.stop().await;
}

/// The process dies after the write and before it has closed the record.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_not_closed_is_closed_by_the_next_operator() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", testkit::configs::is_waiting_for_nodes).await;
    operator.stop().await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    let operator = RunningOperator::start(&platform).await;
    assert_eq!(finished(&platform, 1).await["status"]["outcome"], "Superseded");
    operator.stop().await;
    // One that is closed already is left alone.
    let before = platform.get(&record(1)).await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({"options": interval(77)}), &[]).await;
    finished(&platform, 2).await;
    assert_eq!(platform.get(&record(1)).await, before);
    operator.stop().await;
}
