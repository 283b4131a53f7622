//! The life of one configuration, as a person and the machine config operator play it, and what is left in the end.

use std::{cell::Cell, time::Duration};

use serde_json::{Value, json};
use testkit::{
    configs::{config, is_waiting_for_nodes, item},
    platform::{LOAD_AWARE, Platform, descheduler, machine_config},
    rollout::PSI,
};

/// Under this name the action is set to Apply, so that the audit log tells when.
pub(crate) const APPROVER: &str = "approver";

/// However much is broken, and however slow the machine.
const LIFETIME: Duration = Duration::from_secs(300);

/// When to disturb: an edit was made and the operator has just begun to act on it, or it has done so and rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Busy,
    AtRest,
}

/// The workflows that are lived through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// Offered, planned, approved, rolled out, changed by somebody and set back.
    Usual,
    /// A descheduler that somebody else set up is taken over; then what was done to the nodes is undone.
    Takeover,
}

impl Life {
    /// Calls `disturb` after every edit, and again when the operator has come to rest, with the phase that it is heading for
    /// or in.
    pub(crate) async fn live(self, platform: &Platform, disturb: impl AsyncFn(Moment, &str)) {
        let phase = Cell::new("");
        let disturb = async |moment: Moment, next: &'static str| {
            phase.set(next);
            disturb(moment, next).await;
        };
        let life = async {
            match self {
                Life::Usual => usual(platform, disturb).await,
                Life::Takeover => takeover(platform, disturb).await,
            }
        };
        let ended = tokio::time::timeout(LIFETIME, life).await;
        assert!(ended.is_ok(), "a life hangs after {}", phase.get());
    }
}

/// From a spec over its plan and the approval to what is written and on its way to the nodes.
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
}

/// Takes the platform back to where a life begins. No operator may be running.
pub(crate) async fn reset(platform: &Platform) {
    for object in [config(LOAD_AWARE, Value::Null), descheduler(json!({})), machine_config(PSI, json!({}))] {
        platform.delete(&object).await;
    }
    platform.roll(&[], 3).await;
}

/// What a life leaves behind: the status and the targets, without what differs from one life to the next.
pub(crate) async fn outcome(platform: &Platform) -> Value {
    let mut status = platform.config(LOAD_AWARE).await["status"].take();
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

fn mask(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "lastTransitionTime" | "waitingSince" | "time" => *field = "masked".into(),
                    // An item whose write went through unheard is found to be what it should be.
                    "message" if field == "Already in desired state" => *field = "Applied successfully".into(),
                    _ => mask(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(mask),
        _ => {}
    }
}
