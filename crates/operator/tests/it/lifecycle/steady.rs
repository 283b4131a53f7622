//! The requests of an operator when nothing happens.

use std::{collections::BTreeMap, time::Duration};

use advisor::profiles::PROFILES;
use devcluster::AuditedRequest;
use operator::OperatorSettings;
use serde_json::{Value, json};

use super::{PSI_ITEM, catch_up};
use crate::webhook::Gate;
use testkit::{
    configs::{is_waiting_for_nodes, item},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform, hyper_converged},
    rollout::{PSI, SWAP},
    running_operator::RunningOperator,
};

const RECHECKS: usize = 4;

/// How often each object was read.
fn reads(requests: &[AuditedRequest]) -> BTreeMap<String, usize> {
    let mut reads = BTreeMap::new();
    for request in requests {
        *reads.entry(format!("{} {} {}", request.verb, request.resource, request.name)).or_default() += 1;
    }
    reads
}

/// W38 (cluster in memory), W40 (ignored status errors), D7 (regular comparison): every recheck reads what the plan
/// names, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn two_plans_in_effect_cost_one_read_per_named_object_and_recheck_and_no_write() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::rechecking_every(&platform, Duration::from_secs(1)).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.complete(DENSITY, json!({}), &[PSI, SWAP]).await;
    let versions = async || {
        let version = async |profile| platform.config(profile).await["metadata"]["resourceVersion"].clone();
        (version(LOAD_AWARE).await, version(DENSITY).await)
    };
    let before = versions().await;
    let mark = platform.mark().await;

    // Each of these is read by only one of the two plans: their reads are the number of rechecks.
    let (of_load_aware, of_density) = ("get kubedeschedulers cluster", "get machineconfigs 90-worker-kubelet-swap");
    let count = |reads: &BTreeMap<String, usize>, name: &str| reads.get(name).copied().unwrap_or_default();
    let requests = eventually("several rechecks", async || {
        let requests = platform.requests_since(mark).await;
        let seen = reads(&requests);
        (count(&seen, of_load_aware).min(count(&seen, of_density)) >= RECHECKS).then_some(requests)
    })
    .await;

    let writes: Vec<_> = requests.iter().filter(|request| request.is_write() || request.dry_run).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert_eq!(versions().await, before, "not even a status");

    let reads = reads(&requests);
    // The log may begin or end in the middle of a recheck.
    let (load_aware, density) = (count(&reads, of_load_aware) + 1, count(&reads, of_density) + 1);
    // It is named after its content.
    let rendered =
        reads.keys().find(|read| read.starts_with("get machineconfigs rendered-")).cloned().unwrap_or_default();
    let allowed = BTreeMap::from([
        (of_load_aware.to_owned(), load_aware),
        ("get customresourcedefinitions kubedeschedulers.operator.openshift.io".to_owned(), load_aware),
        (format!("get machineconfigs {PSI}"), load_aware),
        ("get deployments descheduler-operator".to_owned(), load_aware),
        (rendered, load_aware + density),
        (of_density.to_owned(), density),
        ("get machineconfigurations cluster".to_owned(), density),
        ("get hyperconvergeds kubevirt-hyperconverged".to_owned(), load_aware + density),
        ("list machineconfigpools ".to_owned(), load_aware + density),
    ]);
    for (what, times) in &reads {
        let most = count(&allowed, what);
        assert!(*times <= most, "{what}: {times} times, at most {most} expected: {reads:#?}");
    }
    operator.stop().await;
}

/// The operator of HyperConverged updates its status often; that causes no request.
/// W38 (cluster in memory): generations tell what matters.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_others_report_causes_no_request_at_all() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.complete(DENSITY, json!({}), &[PSI, SWAP]).await;
    let mark = platform.mark().await;

    let uri = "/apis/hco.kubevirt.io/v1beta1/namespaces/openshift-cnv/hyperconvergeds/kubevirt-hyperconverged/status";
    let before = platform.get(&hyper_converged(Value::Null)).await;
    for beat in 0..10 {
        let status = json!({"status": {"observedGeneration": beat, "systemHealthStatus": format!("beat-{beat}")}});
        platform.request("PATCH", uri, Some("application/merge-patch+json"), status).await;
    }
    let after = platform.get(&hyper_converged(Value::Null)).await;
    assert_ne!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"], "something was written");
    assert_eq!(before["metadata"]["generation"], after["metadata"]["generation"], "and it was no spec");

    catch_up(&platform).await;
    let requests = platform.requests_since(mark).await;
    let requests: Vec<_> = requests.iter().map(|request| format!("{} {}", request.verb, request.resource)).collect();
    assert_eq!(requests, ["get kubedeschedulers"]);
    operator.stop().await;
}

/// Offer, plan, approval, rollout in steps, Completed.
#[tokio::test(flavor = "multi_thread")]
async fn one_life_of_a_plan_costs_at_most_32_requests_two_of_them_for_its_record() {
    let platform = Platform::shared().await;
    let mark = platform.mark().await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    for updated in 1..=3 {
        platform.roll(&[PSI], updated).await;
        let told = format!("{updated}");
        let followed = |config: &Value| item(config, PSI_ITEM)["message"].as_str().unwrap_or_default().contains(&told);
        platform.until(LOAD_AWARE, "followed", followed).await;
    }
    platform.until_phase(LOAD_AWARE, "Completed").await;
    // The record is closed after the status says so.
    crate::records::finished(&platform, 1).await;
    let of_other = |request: &AuditedRequest| request.name == DENSITY;
    let requests: Vec<_> = platform.requests_since(mark).await.into_iter().filter(|it| !of_other(it)).collect();
    let lines: Vec<_> = requests.iter().map(ToString::to_string).collect();
    // A profile without a configuration may have left a record open: one look each, when the operator starts.
    let is_look =
        |request: &&AuditedRequest| request.verb == "list" && request.resource.starts_with("virtplatformplanrecords");
    let looks = requests.iter().filter(is_look).count();
    assert!(looks <= PROFILES.len(), "{looks}: {lines:#?}");
    let requests: Vec<_> = requests.iter().filter(|request| !is_look(request)).collect();
    // The other profile is offered too.
    assert!(requests.len() <= 32, "{}: {lines:#?}", requests.len());
    assert_eq!(of_records(&requests), ["create virtplatformplanrecords", "patch virtplatformplanrecords"]);
    operator.stop().await;
}

/// What was requested of records.
fn of_records(requests: &[&AuditedRequest]) -> Vec<String> {
    let ours = requests.iter().filter(|request| request.resource.starts_with("virtplatformplanrecords"));
    ours.map(|request| format!("{} {}", request.verb, request.resource)).collect()
}

/// When there are as many records as are kept, each plan also costs a deletion; and one list in the life of a process.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_not_kept_costs_its_deletion_and_the_others_are_listed_once() {
    let platform = Platform::shared().await;
    let settings = OperatorSettings { records_kept: 1, ..OperatorSettings::default() };
    let operator = RunningOperator::start_with(&platform, settings).await;
    let (create, close) = ("create virtplatformplanrecords", "patch virtplatformplanrecords");
    let (list, delete) = ("list virtplatformplanrecords", "delete virtplatformplanrecords");
    let lives: [&[&str]; 4] =
        [&[create, close], &[create, close, list], &[create, close, delete], &[create, close, delete]];
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    for (life, expected) in lives.iter().enumerate() {
        let mark = platform.mark().await;
        let options = json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 100 + life}});
        platform.complete(LOAD_AWARE, json!({"options": options}), &[]).await;
        let requested = eventually(format!("{expected:?} in life {}", life + 1), async || {
            let requests = platform.requests_since(mark).await;
            let requested = of_records(&requests.iter().collect::<Vec<_>>());
            (requested.len() >= expected.len()).then_some(requested)
        });
        assert_eq!(requested.await, *expected, "life {}", life + 1);
    }
    operator.stop().await;
}

/// The pools are already watched for one plan when another begins to wait for them.
#[tokio::test(flavor = "multi_thread")]
async fn what_happens_while_a_plan_joins_a_watch_is_not_missed() {
    let platform = Platform::shared().await;
    let gate = Gate::closed().await;
    gate.webhook.protect(&platform, &hyper_converged(json!({}))).await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.configure(DENSITY, json!({"action": "Apply"})).await;
    gate.reached().await;
    // Swap is written, and the other item is in progress.
    platform.roll(&[PSI, SWAP], 3).await;
    gate.open();
    platform.until_phase(DENSITY, "Completed").await;
    operator.stop().await;
}
