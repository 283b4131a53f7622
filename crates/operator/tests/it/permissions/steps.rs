//! How a task of the operator begins and ends.

use std::time::Duration;

use advisor::{
    access::{self, NAMESPACE},
    machine::Intervals,
};
use operator::{LeaseSettings, OperatorSettings, election::LeaseTimes};
use serde_json::{Value, json};
use testkit::{
    configs::{config, is_waiting_for_nodes, phase},
    eventually,
    platform::{DENSITY, LOAD_AWARE, Platform},
    rbac::Permission,
    rollout::PSI,
    running_operator::RunningOperator,
};

use super::{
    EVENTS,
    purpose::{Task, deployment, some_descheduler},
};
use crate::{lifecycle::no_psi, webhook::Gate};

const MAGIC: &str = "memory-magic";

/// Creates what the task needs, and returns the settings of the operator.
pub(super) async fn prepare(platform: &Platform, task: &Task) -> OperatorSettings {
    let intervals = Intervals { prerequisites: Duration::from_millis(300), ..Intervals::default() };
    let mut settings = OperatorSettings { intervals, ..OperatorSettings::default() };
    match task {
        Task::Describe => {
            let mut older = config(LOAD_AWARE, json!({"action": "Ignore"}));
            older["metadata"]["annotations"] = json!({
                "advisor.kubevirt.io/auto-created": "true",
                "advisor.kubevirt.io/description": "older words",
            });
            let uri = "/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs?fieldManager=virt-advisor-operator";
            platform.request("POST", uri, Some("application/json"), older).await;
        }
        Task::GoOn => {
            // The operator is stopped before its first write: the plan is recorded already.
            let gate = Gate::closed().await;
            gate.webhook.protect(platform, &some_descheduler()).await;
            let mut operator = RunningOperator::start_with(platform, settings.clone()).await;
            platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": no_psi()})).await;
            gate.reached().await;
            operator.end().await;
            gate.webhook.lift(platform, &some_descheduler()).await;
        }
        // The descheduler is looked at only if its operator is deployed.
        Task::Notice(_, object) if object["metadata"]["name"] == "descheduler" => {
            platform.apply("installer", &deployment("descheduler-operator"), "").await;
        }
        Task::PlanBlindly(_) => {
            let unknown = json!({"name": "rendered-worker-unknown", "source": []});
            platform.set_pool(json!({"configuration": unknown}), json!({"configuration": unknown})).await;
        }
        Task::Record { taken: true } => {
            let spec = json!({
                "profile": LOAD_AWARE, "configUid": "another", "generation": 1, "planDigest": "d", "operatorVersion": "v0",
                "startedAt": "2026-01-01T00:00:00Z", "impactSeverity": "Low",
            });
            let mut other = record(1);
            other["metadata"]["labels"] = json!({"advisor.kubevirt.io/profile": LOAD_AWARE});
            other["spec"] = spec;
            platform.apply("somebody", &other, "").await;
        }
        Task::Expire => settings.records_kept = 1,
        Task::Report => {
            let mut object = config(MAGIC, json!({"action": "Apply"}));
            object["metadata"]["uid"] = "00000000-0000-0000-0000-000000000009".into();
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            object["metadata"]["generation"] = 1.into();
            let key = format!("/registry/advisor.kubevirt.io/virtplatformconfigs/{MAGIC}");
            platform.cluster.store(&key, object.to_string().as_bytes()).await.unwrap();
        }
        Task::Lead { given_up } => {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {"name": access::LEASE, "namespace": NAMESPACE},
                "spec": {"holderIdentity": "", "leaseTransitions": 0, "leaseDurationSeconds": 1},
            });
            platform.delete(&lease).await;
            if *given_up {
                platform.apply("somebody", &lease, "").await;
            }
            let times = LeaseTimes {
                lease_duration: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry_period: Duration::from_millis(200),
            };
            settings.lease = Some(LeaseSettings { times, ..LeaseSettings::new(NAMESPACE.to_owned()) });
        }
        _ => {}
    }
    settings
}

fn record(number: u32) -> Value {
    json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord",
        "metadata": {"name": format!("{LOAD_AWARE}-{number}")},
    })
}

async fn apply_with(platform: &Platform, seconds: i32) {
    let mut options = no_psi();
    options["loadAware"]["deschedulingIntervalSeconds"] = seconds.into();
    platform.complete(LOAD_AWARE, json!({"options": options}), &[]).await;
}

/// Gives the operator its task.
pub(super) async fn begin(platform: &Platform, task: &Task) {
    match task {
        Task::Plan(profile) | Task::PlanBlindly(profile) | Task::Notice(profile, _) => {
            platform.configure(profile, json!({"action": "DryRun"})).await;
        }
        Task::Follow => {
            platform.configure(LOAD_AWARE, json!({"action": "Apply"})).await;
        }
        Task::Record { .. } => {
            platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": no_psi()})).await;
        }
        Task::Close => {
            platform.configure(LOAD_AWARE, json!({"action": "Apply", "options": no_psi()})).await;
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Task::Expire => {
            for seconds in [70, 80, 90] {
                apply_with(platform, seconds).await;
            }
        }
        Task::Restore => {
            platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
            platform.configure(LOAD_AWARE, json!({"restore": {"record": "original"}})).await;
        }
        Task::Undo(profile, config) => {
            platform.complete(profile, json!({}), &[config]).await;
            let options = if *profile == DENSITY { crate::lifecycle::no_swap() } else { no_psi() };
            platform.configure(profile, json!({"action": "DryRun", "options": options})).await;
        }
        _ => {}
    }
}

/// Waits until the task is done, without another edit.
pub(super) async fn finish(platform: &Platform, permission: &Permission, task: &Task) {
    match task {
        Task::Offer | Task::Lead { .. } => {
            platform.until_phase(LOAD_AWARE, "Ignored").await;
        }
        Task::Describe => {
            let said =
                |config: &Value| config["metadata"]["annotations"]["advisor.kubevirt.io/description"] != "older words";
            platform.until(LOAD_AWARE, "described", said).await;
        }
        Task::GoOn => {
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Task::Report => {
            platform.until(MAGIC, "told", |config| phase(config) == "Failed").await;
        }
        Task::Plan(profile) | Task::PlanBlindly(profile) | Task::Undo(profile, _) => {
            platform.until_phase(profile, "ReviewRequired").await;
        }
        Task::Notice(_, object) => {
            // The next recheck is minutes away.
            let mut touched = object.clone();
            touched["metadata"]["labels"]["touched"] = "true".into();
            let mark = platform.mark().await;
            platform.apply("somebody", &touched, "").await;
            let name = object["metadata"]["name"].as_str().unwrap();
            eventually(&format!("with the right to {permission}, a change of {name} is noticed"), async || {
                let seen = platform.requests_since(mark).await;
                seen.iter().any(|request| request.verb == "get" && request.name == name).then_some(())
            })
            .await;
        }
        Task::Record { .. } => {
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Task::Restore => {
            platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
        }
        Task::Close => {
            platform.configure(LOAD_AWARE, json!({"waitTimeout": "2h"})).await;
            eventually("the record is closed", async || {
                platform.find(&record(1)).await?.pointer("/status/finishedAt").map(drop)
            })
            .await;
        }
        Task::Expire => {
            apply_with(platform, 100).await;
            eventually("the record is deleted", async || platform.find(&record(2)).await.is_none().then_some(())).await;
        }
        Task::Follow => {
            platform.until(LOAD_AWARE, "waiting for nodes", is_waiting_for_nodes).await;
            platform.roll(&[PSI], 3).await;
            platform.until_phase(LOAD_AWARE, "Completed").await;
        }
        Task::Tell => {
            platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
            eventually("events come again", async || {
                let events = platform.request("GET", EVENTS, None, Value::Null).await;
                (!events["items"].as_array().unwrap().is_empty()).then_some(())
            })
            .await;
        }
    }
}
