//! The header of the screen: where a configuration stands, who approved what, and what it waits for.

use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, Item, ItemState, MaintenanceWindow, Phase, VirtPlatformConfigStatus},
};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    blast_radius::{MachinePool, Node, Reading, timestamp},
    waiting,
};

use super::{GuestState, NodeReport, PoolProgress, pool::pools};

/// What was read of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cluster {
    pub nodes: Reading<Vec<Node>>,
    pub pools: Reading<Vec<MachinePool>>,
    /// MachineConfigNodes.
    pub reports: Reading<Vec<NodeReport>>,
}

/// Everything about one configuration that the night shift wants to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigStatus {
    pub profile: String,
    /// Null before the operator has seen it.
    pub phase: Option<Phase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    pub action: Action,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_before: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub not_after: Option<Timestamp>,
    /// In words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    pub pools: Vec<PoolProgress>,
    /// The virtual machines that still hold a node.
    pub guests: Vec<GuestState>,
    /// The newest last.
    pub events: Vec<Notice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approved {
    /// Absent if nobody is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Absent before the operator has acted on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The condition that tells what a configuration waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Stalled: a person has to look. Reconciling: work is under way. Ready: all is as the spec asks.
    pub condition: String,
    pub reason: String,
    pub message: String,
    #[schemars(with = "String")]
    pub since: Timestamp,
}

impl Health {
    fn of(status: &VirtPlatformConfigStatus) -> Option<Self> {
        let found = ["Stalled", "Reconciling", "Ready"].into_iter().find_map(|kind| status.true_condition(kind))?;
        Some(Health {
            condition: found.type_.clone(),
            reason: found.reason.clone(),
            message: found.message.clone(),
            since: found.last_transition_time.0,
        })
    }

    pub fn is_stalled(&self) -> bool {
        self.condition == "Stalled"
    }
}

/// An Event about a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    #[serde(skip)]
    pub profile: String,
    #[schemars(with = "String")]
    pub time: Timestamp,
    pub warning: bool,
    pub reason: String,
    pub message: String,
}

impl Notice {
    /// None unless it is an Event about a configuration, with a time.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let times = ["lastTimestamp", "eventTime", "firstTimestamp"];
        (text("/involvedObject/kind")? == "VirtPlatformConfig").then_some(())?;
        Some(Notice {
            profile: text("/involvedObject/name")?,
            time: times.into_iter().find_map(|field| timestamp(object.get(field)))?,
            warning: object["type"] == "Warning",
            reason: text("/reason").unwrap_or_default(),
            message: text("/message").unwrap_or_default(),
        })
    }
}

impl ConfigStatus {
    /// Without guests and events, which depend on what this says.
    pub fn of(config: &VirtPlatformConfig, cluster: &Cluster, now: Timestamp) -> Self {
        let none = VirtPlatformConfigStatus::default();
        let status = config.status.as_ref().unwrap_or(&none);
        let approval = config.spec.approval.as_ref();
        let time = |time: Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>| time.map(|time| time.0);
        ConfigStatus {
            profile: config.spec.profile.as_str().to_owned(),
            phase: status.phase,
            since: waiting::since(status),
            action: config.spec.action,
            plan_digest: status.plan_digest.clone(),
            approved: approved(config, status),
            not_before: time(approval.and_then(|approval| approval.not_before.as_ref())),
            not_after: time(approval.and_then(|approval| approval.not_after.as_ref())),
            window: approval.and_then(|approval| approval.window.as_ref()).map(window),
            health: Health::of(status),
            pools: if is_rolling_out(config) { pools(&status.items, cluster, now) } else { Vec::new() },
            guests: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Whether a plan is being carried out, or hangs.
    pub fn is_in_progress(&self) -> bool {
        self.phase == Some(Phase::InProgress) || !self.pools.is_empty()
    }

    /// The nodes on which virtual machines are waited for.
    pub fn draining(&self) -> Vec<String> {
        let nodes = self.pools.iter().flat_map(|pool| &pool.nodes);
        nodes.filter(|node| node.holds_guests).map(|node| node.name.clone()).collect()
    }

    /// Lower numbers need somebody sooner.
    pub fn urgency(&self) -> u8 {
        let stalled = self.health.as_ref().is_some_and(Health::is_stalled);
        match self.phase {
            _ if stalled || self.pools.iter().any(PoolProgress::is_in_trouble) => 0,
            Some(Phase::ReviewRequired) => 1,
            Some(Phase::InProgress) => 2,
            Some(Phase::Scheduled) => 3,
            Some(Phase::Completed | Phase::Ignored) => 5,
            _ => 4,
        }
    }
}

/// Whether nodes have to be looked at. Drift of one item does not end the rollout of another one.
pub fn is_rolling_out(config: &VirtPlatformConfig) -> bool {
    let Some(status) = &config.status else { return false };
    let is_awaited = |item: &Item| item.state == ItemState::InProgress && !item.rollout.is_empty();
    match status.phase {
        Some(Phase::InProgress) => true,
        Some(Phase::Ignored) | None => false,
        Some(_) => status.items.iter().any(is_awaited),
    }
}

/// Who approved the current plan.
fn approved(config: &VirtPlatformConfig, status: &VirtPlatformConfigStatus) -> Option<Approved> {
    let digest = status.plan_digest.as_ref()?;
    if let Some(granted) = status.approval.as_ref().filter(|granted| granted.plan_digest == *digest) {
        return Some(Approved {
            by: granted.approved_by.clone(),
            at: Some(granted.time.0),
            reason: granted.reason.clone(),
        });
    }
    let asked = config.spec.approval.as_ref()?;
    let is_named = config.spec.action == Action::Apply && asked.plan_digest.as_ref() == Some(digest);
    is_named.then(|| Approved { by: asked.approved_by.clone(), at: None, reason: asked.reason.clone() })
}

/// `Saturday, Sunday from 22:00 for 6h (Europe/Berlin)`
fn window(window: &MaintenanceWindow) -> String {
    let days: Vec<&str> = window.days.iter().map(|day| day.as_str()).collect();
    let days = if days.is_empty() { "every day".to_owned() } else { days.join(", ") };
    let zone = window.time_zone.as_deref().unwrap_or("UTC");
    format!("{days} from {} for {} ({zone})", window.start, window.duration)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(spec: &Value, status: &Value) -> VirtPlatformConfig {
        let mut all = json!({"profile": "load-aware-rebalancing", "action": "Apply"});
        all.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        serde_json::from_value(json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": "load-aware-rebalancing"}, "spec": all, "status": status,
        }))
        .unwrap()
    }

    fn condition(kind: &str, status: &str, reason: &str) -> Value {
        let time = "2026-01-01T10:00:00Z";
        json!({"type": kind, "status": status, "reason": reason, "message": "text", "lastTransitionTime": time})
    }

    fn of(spec: &Value, status: &Value) -> ConfigStatus {
        ConfigStatus::of(&config(spec, status), &Cluster::default(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_header_says_since_when_who_approved_and_what_is_waited_for() {
        let granted = json!({
            "planDigest": "d1", "mode": "Reviewed", "generation": 3, "time": "2026-01-01T09:00:00Z",
            "approvedBy": "anna", "reason": "CHG-1",
        });
        let window =
            json!({"days": ["Saturday", "Sunday"], "start": "22:00", "duration": "6h", "timeZone": "Europe/Berlin"});
        let spec = json!({"approval": {"planDigest": "d1", "window": window, "notBefore": "2026-01-01T08:00:00Z"}});
        let conditions = json!([
            condition("Completed", "False", "InProgress"),
            condition("InProgress", "True", "InProgress"),
            condition("Ready", "False", "NoProgress"),
            condition("Stalled", "True", "NoProgress"),
        ]);
        let status = json!({"phase": "InProgress", "planDigest": "d1", "approval": granted, "conditions": conditions});
        let found = of(&spec, &status);
        assert_eq!(found.since, Some("2026-01-01T10:00:00Z".parse().unwrap()));
        let approved = found.approved.clone().unwrap();
        assert_eq!((approved.by.as_deref(), approved.reason.as_deref()), (Some("anna"), Some("CHG-1")));
        assert_eq!(found.window.as_deref(), Some("Saturday, Sunday from 22:00 for 6h (Europe/Berlin)"));
        assert!(found.health.as_ref().unwrap().is_stalled() && found.urgency() == 0);
    }

    #[test]
    fn an_approval_of_another_plan_is_none_of_this_one() {
        let granted = json!({"planDigest": "d0", "mode": "Immediate", "generation": 3, "time": "2026-01-01T09:00:00Z"});
        let status = json!({"phase": "Scheduled", "planDigest": "d1", "approval": granted});
        assert_eq!(of(&json!({}), &status).approved, None);
        assert_eq!(of(&json!({"approval": {"planDigest": "d0"}}), &status).approved, None);
        let asked = of(&json!({"approval": {"planDigest": "d1", "approvedBy": "anna"}}), &status).approved.unwrap();
        assert_eq!((asked.by.as_deref(), asked.at), (Some("anna"), None), "it waits for its time");
    }

    #[test]
    fn what_needs_somebody_comes_first() {
        let urgency = |phase: &str, conditions: Value| {
            of(&json!({}), &json!({"phase": phase, "conditions": conditions})).urgency()
        };
        let stalled = json!([condition("Stalled", "True", "Failed")]);
        let all = [
            urgency("Failed", stalled),
            urgency("ReviewRequired", json!([])),
            urgency("InProgress", json!([])),
            urgency("Scheduled", json!([])),
            urgency("Drafting", json!([])),
            urgency("Completed", json!([])),
        ];
        assert_eq!(all, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn events_about_other_objects_are_left_out() {
        let event = |kind: &str| {
            Notice::of(&json!({
                "involvedObject": {"kind": kind, "name": "x"}, "eventTime": "2026-01-01T10:00:00.000001Z",
                "lastTimestamp": null, "type": "Warning", "reason": "RolloutDegraded", "message": "m",
            }))
        };
        assert!(event("VirtPlatformConfig").unwrap().warning);
        assert_eq!(event("Node"), None);
    }
}
