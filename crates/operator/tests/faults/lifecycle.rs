//! The life cycle of one configuration: the edits of an administrator, the rollouts of a pool, and the outcome.

use std::{cell::Cell, time::Duration};

use serde_json::{Value, json};
use testkit::{
    configs::{config, is_waiting_for_nodes, item},
    platform::{LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::PSI,
};

/// The field manager that sets the action to Apply: the audit log shows when.
pub(crate) const APPROVER: &str = "approver";

/// Generous: faults and slow machines cost time.
const TIME_LIMIT: Duration = Duration::from_secs(300);

/// When a test interferes: right after an edit, or when the operator has acted on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Busy,
    AtRest,
}

/// The life cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    /// Offer, plan, approval, rollout, drift and its end.
    Usual,
    /// The takeover of a KubeDescheduler of somebody else; then the machine config is removed, and everything is restored.
    Takeover,
}

impl Lifecycle {
    /// Calls `disturb` after every edit and again when the operator has acted on it, with the expected phase.
    pub(crate) async fn run(self, platform: &Platform, disturb: impl AsyncFn(Moment, &str)) {
        let phase = Cell::new("");
        let disturb = async |moment: Moment, next: &'static str| {
            phase.set(next);
            disturb(moment, next).await;
        };
        let lifecycle = async {
            match self {
                Lifecycle::Usual => usual(platform, disturb).await,
                Lifecycle::Takeover => takeover(platform, disturb).await,
            }
        };
        let ended = tokio::time::timeout(TIME_LIMIT, lifecycle).await;
        assert!(ended.is_ok(), "the life cycle hangs after {}", phase.get());
    }
}

/// From a new spec to its plan, the approval, the writes and the beginning of the rollout.
async fn until_nodes_are_waited_for(platform: &Platform, spec: Value, disturb: &impl AsyncFn(Moment, &'static str)) {
    platform.configure(LOAD_AWARE, spec).await;
    disturb(Moment::Busy, "ReviewRequired").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    disturb(Moment::AtRest, "ReviewRequired").await;
    platform.patch(APPROVER, &config(LOAD_AWARE, json!({"action": "Apply"}))).await;
    disturb(Moment::Busy, "Waiting").await;
    platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
    disturb(Moment::AtRest, "Waiting").await;
}

async fn usual(platform: &Platform, disturb: impl AsyncFn(Moment, &'static str)) {
    let busy = async |phase| disturb(Moment::Busy, phase).await;
    let at_rest = async |phase| disturb(Moment::AtRest, phase).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    at_rest("Ignored").await;
    until_nodes_are_waited_for(platform, json!({"action": "DryRun"}), &disturb).await;
    platform.roll(&[PSI], 1).await;
    busy("InProgress").await;
    let message = "MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)";
    platform.until(LOAD_AWARE, "rolling", |config| item(config, "enable-psi-metrics")["message"] == message).await;
    at_rest("InProgress").await;
    platform.roll(&[PSI], 3).await;
    busy("Completed").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    at_rest("Completed").await;
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 180}))).await;
    busy("Drifted").await;
    platform.until_phase(LOAD_AWARE, "Drifted").await;
    at_rest("Drifted").await;
    platform.patch("kubectl-edit", &descheduler(json!({"deschedulingIntervalSeconds": 60}))).await;
    busy("Restored").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    at_rest("Restored").await;
}

async fn takeover(platform: &Platform, disturb: impl AsyncFn(Moment, &'static str)) {
    let busy = async |phase| disturb(Moment::Busy, phase).await;
    let at_rest = async |phase| disturb(Moment::AtRest, phase).await;
    let spec =
        json!({"managementState": "Managed", "deschedulingIntervalSeconds": 3600, "profiles": ["LongLifecycle"]});
    platform.apply("somebody", &descheduler(spec), "").await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    at_rest("Ignored").await;
    let without = json!({"loadAware": {"enablePSIMetrics": false}});
    for (options, configs) in [(Value::Null, &[PSI][..]), (without, &[])] {
        let spec = json!({"action": "DryRun", "options": options});
        until_nodes_are_waited_for(platform, spec, &disturb).await;
        platform.roll(configs, 3).await;
        busy("Completed").await;
        platform.until_phase(LOAD_AWARE, "Completed").await;
        at_rest("Completed").await;
    }
    platform.configure(LOAD_AWARE, json!({"action": "DryRun", "restore": {"record": "original"}})).await;
    busy("ReviewRequired").await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    at_rest("ReviewRequired").await;
    platform.patch(APPROVER, &config(LOAD_AWARE, json!({"action": "Apply"}))).await;
    busy("Restored").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;
    at_rest("Restored").await;
}

/// Removes what a life cycle leaves. No operator may be running.
pub(crate) async fn reset(platform: &Platform) {
    for object in [config(LOAD_AWARE, Value::Null), descheduler(json!({})), machine_config(PSI, json!({}))] {
        platform.delete(&object).await;
    }
    // The next operator would close what is open of them.
    platform.request("DELETE", "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords", None, Value::Null).await;
    platform.roll(&[], 3).await;
}

/// The status and the targets, without times and what else differs from run to run.
pub(crate) async fn outcome(platform: &Platform) -> Value {
    let mut status = platform.config(LOAD_AWARE).await["status"].take();
    // Records outlive the configuration, so their numbers go on from run to run. What the record says counts.
    let name = status["record"]["name"].take();
    status["record"] = record(platform, name.as_str().unwrap_or_default()).await;
    mask(&mut status);
    let target = async |object: Value| {
        let live = platform.find(&object).await.unwrap_or_default();
        json!({"labels": live["metadata"]["labels"], "spec": live["spec"]})
    };
    json!({
        "status": status,
        "descheduler": target(descheduler(json!({}))).await,
        "machineConfig": target(machine_config(PSI, json!({}))).await,
    })
}

/// How many records there are.
pub(crate) async fn records(platform: &Platform) -> usize {
    let uri = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformplanrecords";
    let list = platform.request("GET", uri, None, Value::Null).await;
    list["items"].as_array().map_or(0, Vec::len)
}

/// The values before and after, and how the plan ended.
async fn record(platform: &Platform, name: &str) -> Value {
    let object = json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord", "metadata": {"name": name},
    });
    let found = if name.is_empty() { Value::Null } else { platform.find(&object).await.unwrap_or_default() };
    let items = found["spec"]["items"].as_array().into_iter().flatten();
    let values: Vec<&Value> = items.map(|item| &item["leaves"]).collect();
    json!({"planDigest": found["spec"]["planDigest"], "values": values, "outcome": found["status"]["outcome"]})
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "lastTransitionTime" | "waitingSince" | "time" => *field = "masked".into(),
                    // The answer of the write was lost: the item was found as desired.
                    "message" if field == "Already in desired state" => *field = "Applied successfully".into(),
                    _ => mask(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}
