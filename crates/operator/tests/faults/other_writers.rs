//! Other writers: clocks that are an hour off, a thousand edits in a row, somebody else who writes the status.

use std::time::{Duration, Instant};

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use operator::OperatorSettings;
use serde_json::{Value, json};
use testkit::{
    configs::{condition, is_waiting_for_nodes, item},
    eventually,
    platform::{LOAD_AWARE, Platform, descheduler},
    rollout::PSI,
};

use crate::{control_plane::everything, lifecycle::outcome, supervisor::Supervised};

const STATUS: &str = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/load-aware-rebalancing/status";
const PSI_ITEM: &str = "enable-psi-metrics";

async fn patch_status(platform: &Platform, status: &Value) {
    let body = json!({"status": status});
    platform.request("PATCH", STATUS, Some("application/merge-patch+json"), body).await;
}

/// Moves all times of a value.
fn shift(value: &mut Value, by: SignedDuration) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(|field| shift(field, by)),
        Value::Array(values) => values.iter_mut().for_each(|value| shift(value, by)),
        Value::String(text) => {
            if let Ok(time) = text.parse::<Timestamp>() {
                *text = (time + by).to_string();
            }
        }
        _ => {}
    }
}

/// Rewrites the status as an operator with another clock would have. A conflict with the operator is retried.
async fn shift_status(platform: &Platform, by: SignedDuration) {
    eventually("the status is shifted", async || {
        let mut config = platform.config(LOAD_AWARE).await;
        config["metadata"].as_object_mut().unwrap().remove("managedFields");
        shift(&mut config["status"], by);
        let body = config.to_string().into_bytes();
        let request = http::Request::put(STATUS).header("content-type", "application/json").body(body).unwrap();
        platform.client.request::<Value>(request).await.ok()
    })
    .await;
}

/// Waits until the operator makes no request for a while. Returns how many it has made in all.
async fn until_quiet(operator: &Supervised) -> usize {
    const QUIET: Duration = Duration::from_millis(500);
    const LIMIT: Duration = Duration::from_secs(60);
    let count = || operator.proxy.record().requests.len();
    let start = Instant::now();
    let (mut last, mut since) = (count(), start);
    while since.elapsed() < QUIET {
        assert!(start.elapsed() < LIMIT, "the operator does not rest: {:#?}", operator.proxy.record().requests);
        tokio::time::sleep(Duration::from_millis(10)).await;
        if count() != last {
            (last, since) = (count(), Instant::now());
        }
    }
    last
}

async fn prepare() -> (Platform, Supervised) {
    let platform = Platform::shared().await;
    let operator = Supervised::start(&platform, OperatorSettings::default()).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    (platform, operator)
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_a_clock_that_is_an_hour_off_disturb_neither_waiting_nor_rest() {
    for by in [SignedDuration::from_hours(1), SignedDuration::from_hours(-1)] {
        let (platform, operator) = prepare().await;
        platform.configure(LOAD_AWARE, json!({"action": "Apply", "waitTimeout": "2h"})).await;
        platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
        shift_status(&platform, by).await;
        platform.roll(&[PSI], 1).await;
        let rolling = "MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)";
        platform.until(LOAD_AWARE, "rolling", |config| item(config, PSI_ITEM)["message"] == rolling).await;
        platform.roll(&[PSI], 3).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        until_quiet(&operator).await;

        let (before, mark) = (outcome(&platform).await, platform.mark().await);
        shift_status(&platform, by).await;
        until_quiet(&operator).await;
        assert_eq!(outcome(&platform).await, before);
        platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 180}))).await;
        platform.until_phase(LOAD_AWARE, "Drifted").await;
        shift_status(&platform, by).await;
        platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 60}))).await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        assert_eq!(platform.changes_since(mark).await, [""; 0]);
        operator.stop().await;
    }
}

/// A wait counts from the time in the status; from now, if that time is in the future.
#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_began_an_hour_ago_by_another_clock_is_over_and_one_that_begins_in_an_hour_begins_now() {
    let (platform, operator) = prepare().await;
    platform.configure(LOAD_AWARE, json!({"action": "Apply", "waitTimeout": "30m"})).await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    shift_status(&platform, SignedDuration::from_hours(1)).await;
    until_quiet(&operator).await;
    let waiting = platform.config(LOAD_AWARE).await;
    assert_eq!(item(&waiting, PSI_ITEM)["state"], "InProgress");
    let since: Timestamp = item(&waiting, PSI_ITEM)["waitingSince"].as_str().unwrap().parse().unwrap();
    assert!(since <= Timestamp::now(), "{since}");
    shift_status(&platform, SignedDuration::from_hours(-1)).await;
    let over = platform.until_phase(LOAD_AWARE, "Failed").await;
    let message = item(&over, PSI_ITEM)["message"].as_str().unwrap();
    assert!(message.starts_with("Timeout waiting for resource to become healthy (waited 1h0m"), "{message}");
    operator.stop().await;
}

/// A thousand edits with `FAULTS=all`; otherwise fewer.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_edits_in_a_row_end_in_one_plan_and_no_write() {
    let edits = if everything() { 1000 } else { 250 };
    let (platform, operator) = prepare().await;
    let mark = platform.mark().await;
    let start = Instant::now();
    for number in 1..=edits {
        let options = json!({"loadAware": {"enablePSIMetrics": number % 2 == 0}});
        let action = if number % 3 == 0 { "Ignore" } else { "DryRun" };
        platform.configure(LOAD_AWARE, json!({"action": action, "options": options})).await;
    }
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let (took, requests) = (start.elapsed(), until_quiet(&operator).await);
    println!("{edits} edits in {took:.1?}: {requests} requests");
    let config = platform.config(LOAD_AWARE).await;
    assert_ne!(item(&config, PSI_ITEM), &Value::Null, "the last edit asked for it");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    // An edit that is seen alone causes a plan; most are seen together with others.
    assert!(requests <= 10 * edits, "{requests}");
    operator.stop().await;
}

/// Somebody else writes the status as fast as the API server allows, with phases that would mean to apply.
#[tokio::test(flavor = "multi_thread")]
async fn a_status_that_somebody_else_writes_all_the_time_orders_nothing_and_is_set_right() {
    const FIGHT: Duration = Duration::from_secs(2);
    let (platform, operator) = prepare().await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let (before, mark) = (outcome(&platform).await, platform.mark().await);
    let requests = until_quiet(&operator).await;
    let (start, mut writes) = (Instant::now(), 0);
    while start.elapsed() < FIGHT {
        for phase in ["InProgress", "Completed", "Failed"] {
            patch_status(
                &platform,
                &json!({"phase": phase, "observedGeneration": 2, "planDigest": writes.to_string()}),
            )
            .await;
            writes += 1;
        }
    }
    let fought = start.elapsed();
    let during = operator.proxy.record().requests.len() - requests;
    println!("{writes} foreign writes in {fought:.1?}: {during} requests");
    // At worst each of them is seen alone and causes a plan.
    assert!(during <= 15 * writes, "{during} requests");
    // The operator corrects the status by itself: the conditions do not fit the phase.
    let config = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    until_quiet(&operator).await;
    assert_eq!(condition(&config, "ReviewRequired")["status"], "True");
    assert_eq!(outcome(&platform).await["status"]["items"], before["status"]["items"]);
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}
