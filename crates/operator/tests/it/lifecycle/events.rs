//! Events for `kubectl describe`: every phase, the end of every item, and who changed what.

use serde_json::{Value, json};

use super::{DESCHEDULER, PSI_ITEM, interval};
use crate::webhook::Webhook;
use testkit::{
    eventually,
    platform::{LOAD_AWARE, Platform},
    rollout::PSI,
    running_operator::RunningOperator,
};

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// The events about the configuration, in their order.
async fn events(platform: &Platform) -> Vec<Value> {
    let list = platform.request("GET", EVENTS, None, Value::Null).await;
    let about = |event: &&Value| event["regarding"]["name"] == LOAD_AWARE;
    let mut events: Vec<Value> = list["items"].as_array().unwrap().iter().filter(about).cloned().collect();
    events.sort_by_key(|event| event["eventTime"].as_str().unwrap().to_owned());
    events
}

/// `Normal Reason: note`.
fn line(event: &Value) -> String {
    let text = |field: &str| event[field].as_str().unwrap();
    format!("{} {}: {}", text("type"), text("reason"), text("note"))
}

/// Waits for an event about the configuration. Events are sent asynchronously.
pub(super) async fn until_event(platform: &Platform, expected: &str) {
    let is_told = async || events(platform).await.iter().any(|event| line(event) == expected).then_some(());
    eventually(expected, is_told).await;
}

/// W34 (no events or columns): for `kubectl describe`.
#[tokio::test(flavor = "multi_thread")]
async fn events_tell_every_phase_every_item_and_who_changed_what() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    platform.patch("kubectl-edit", &interval(60)).await;
    let config = platform.until_phase(LOAD_AWARE, "Completed").await;

    let psi = "MachineConfig '99-worker-psi-karg'";
    let descheduler = "KubeDescheduler 'cluster'";
    let phases = [
        "Normal Ignored: Ignored: Configuration is ignored - no management actions will be performed.",
        "Normal Pending: Pending (was Ignored): Action changed from Ignore, regenerating plan",
        "Normal Drafting: Drafting (was Pending): Generating plan from profile",
        "Normal ReviewRequired: ReviewRequired (was Drafting): Plan ready for review. Change action to 'Apply' to ",
        "Normal InProgress: InProgress (was ReviewRequired): Applying plan configuration",
        "Normal Completed: Completed (was InProgress): Configuration successfully applied and in sync",
        "Warning DriftDetected: Drifted (was Completed): Configuration has drifted from desired state",
        "Normal Completed: Completed (was Drifted): Configuration successfully applied and in sync",
    ];
    let items = [
        format!("Normal ItemApplying: {PSI_ITEM}: {psi}: Applying configuration..."),
        format!("Normal ItemApplying: {DESCHEDULER}: {descheduler}: Applying configuration..."),
        format!("Normal ItemCompleted: {DESCHEDULER}: {descheduler}: Applied successfully"),
        format!("Normal ItemCompleted: {PSI_ITEM}: {psi}: MachineConfigPool 'worker' is ready (all 3 nodes updated)"),
        format!("Warning ItemDrifted: {descheduler} was changed by kubectl-edit at "),
    ];
    // Events are sent asynchronously.
    let last = phases[phases.len() - 1];
    let events = eventually("the last event", async || {
        let events = events(&platform).await;
        events.iter().any(|event| line(event) == last).then_some(events)
    })
    .await;
    let (of_items, of_phases): (Vec<_>, Vec<_>) = events.iter().map(line).partition(|line| line.contains(" Item"));
    let check = |told: &[String], expected: &[&str]| {
        assert_eq!(told.len(), expected.len(), "everything is told, once: {told:#?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}\ninstead of {expected}");
        }
    };
    check(&of_phases, &phases);
    check(&of_items, &items.each_ref().map(String::as_str));
    for event in &events {
        let expected = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1",
            "kind": "VirtPlatformConfig",
            "name": LOAD_AWARE,
            "uid": config["metadata"]["uid"],
        });
        assert_eq!(event["regarding"], expected);
        assert_eq!(event["reportingController"], "virt-advisor-operator");
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_refused_stop_nothing() {
    let platform = Platform::shared().await;
    let webhook = Webhook::start("no events here").await;
    let probe = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "probe", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Probe",
        "action": "Probe",
        "regarding": {"kind": "Namespace", "name": "default", "namespace": "default"},
        "reportingController": "probe",
        "reportingInstance": "probe",
    });
    webhook.protect(&platform, &probe).await;
    let operator = RunningOperator::start(&platform).await;
    platform.complete(LOAD_AWARE, json!({}), &[PSI]).await;
    platform.patch("kubectl-edit", &interval(180)).await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    assert_eq!(events(&platform).await, [Value::Null; 0]);
    webhook.lift(&platform, &probe).await;
    operator.stop().await;
}
