//! MachineConfigNode: what the machine config operator reports about the update of one node, step by step.

use jiff::Timestamp;
use serde_json::Value;

use crate::blast_radius::timestamp;

use super::node_phase::{NodePhase, State};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    pub node: String,
    pub(super) pool: Option<String>,
    current: Option<String>,
    conditions: Vec<Step>,
}

/// A condition. It is True after its step, Unknown during it, and False before it and after the whole update.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    kind: String,
    status: String,
    message: String,
    since: Option<Timestamp>,
}

/// The steps from the last to the first, with the phase during each and the phase after it.
const STEPS: [(&str, NodePhase, NodePhase); 11] = [
    ("Uncordoned", NodePhase::Updating, NodePhase::Updating),
    ("UpdateComplete", NodePhase::Updating, NodePhase::Updating),
    ("Resumed", NodePhase::Updating, NodePhase::Updating),
    ("RebootedNode", NodePhase::Rebooting, NodePhase::Updating),
    ("AppliedFilesAndOS", NodePhase::Updating, NodePhase::Updating),
    ("AppliedOSImage", NodePhase::Updating, NodePhase::Updating),
    ("ImagePulledFromRegistry", NodePhase::Updating, NodePhase::Updating),
    ("AppliedFiles", NodePhase::Updating, NodePhase::Updating),
    ("Drained", NodePhase::Draining, NodePhase::Updating),
    ("Cordoned", NodePhase::Cordoned, NodePhase::Cordoned),
    ("UpdatePrepared", NodePhase::Updating, NodePhase::Updating),
];

impl NodeReport {
    /// None if the object has no name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("/spec/node/name").or(text("/metadata/name"))?;
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let step = |condition: &Value| {
            let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
            let since = timestamp(condition.get("lastTransitionTime"));
            Step { kind: text("type"), status: text("status"), message: text("message"), since }
        };
        Some(NodeReport {
            node: name.to_owned(),
            pool: text("/spec/pool/name").map(str::to_owned),
            current: text("/status/configVersion/current").map(str::to_owned),
            conditions: conditions.map(step).collect(),
        })
    }

    /// The state of the node in a rollout of a config. None if the report does not tell.
    pub(super) fn state(&self, target: Option<&str>) -> Option<State> {
        let found = |kind: &str| self.conditions.iter().find(|step| step.kind == kind);
        let updated = found("Updated")?;
        let is_drained = found("Drained").is_some_and(|step| step.status == "True");
        if let Some(degraded) = found("NodeDegraded").filter(|step| step.status == "True") {
            let reason = Some(degraded.message.clone()).filter(|text| !text.is_empty());
            let holds_guests = updated.status != "True" && !is_drained;
            return Some(State { phase: NodePhase::Degraded, since: degraded.since, reason, holds_guests });
        }
        if updated.status == "True" {
            let is_current = target.is_none() || self.current.as_deref() == target;
            let phase = if is_current { NodePhase::Updated } else { NodePhase::Waiting };
            return Some(State::new(phase, updated.since.filter(|_| is_current)));
        }
        let reached = STEPS.iter().find_map(|(kind, during, after)| match found(kind) {
            Some(step) if step.status == "Unknown" => Some((*during, step.since)),
            Some(step) if step.status == "True" => Some((*after, step.since)),
            _ => None,
        });
        let (phase, since) = reached.unwrap_or((NodePhase::Waiting, None));
        let holds_guests = matches!(phase, NodePhase::Draining | NodePhase::Cordoned);
        Some(State { holds_guests, ..State::new(phase, since) })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Conditions as `Type=Status`, a minute apart.
    fn report(current: &str, conditions: &str) -> NodeReport {
        let condition = |(minute, condition): (usize, &str)| {
            let (kind, status) = condition.split_once('=').unwrap();
            let time = format!("2026-01-01T10:{minute:02}:00Z");
            json!({"type": kind, "status": status, "message": "why", "lastTransitionTime": time})
        };
        let conditions: Vec<_> = conditions.split_whitespace().enumerate().map(condition).collect();
        NodeReport::of(&json!({
            "metadata": {"name": "a"},
            "spec": {"pool": {"name": "worker"}},
            "status": {"configVersion": {"current": current}, "conditions": conditions},
        }))
        .unwrap()
    }

    #[test]
    fn each_step_of_a_report_is_a_phase() {
        use NodePhase::*;
        for (case, current, conditions, phase, minute) in [
            ("at rest with the config", "new", "Updated=True", Updated, Some(0)),
            ("at rest with another one", "old", "Updated=True Drained=False", Waiting, None),
            ("nothing has begun", "old", "Updated=False", Waiting, None),
            ("prepared", "old", "Updated=False UpdatePrepared=True", Updating, Some(1)),
            ("cordoned", "old", "Updated=False Cordoned=True Drained=False", Cordoned, Some(1)),
            ("draining", "old", "Updated=False Cordoned=True Drained=Unknown", Draining, Some(2)),
            ("drained", "old", "Updated=False Cordoned=True Drained=True", Updating, Some(2)),
            ("writing", "old", "Updated=False Drained=True AppliedFilesAndOS=Unknown", Updating, Some(2)),
            ("rebooting", "old", "Updated=False AppliedFiles=True RebootedNode=Unknown", Rebooting, Some(2)),
            ("back", "new", "Updated=False RebootedNode=True", Updating, Some(1)),
            ("resumed", "new", "Updated=False RebootedNode=True Resumed=True", Updating, Some(2)),
            ("degraded", "old", "Updated=False NodeDegraded=True Drained=Unknown", Degraded, Some(1)),
        ] {
            let state = report(current, conditions).state(Some("new")).unwrap();
            let since = state.since.map(|time| time.to_zoned(jiff::tz::TimeZone::UTC).minute());
            assert_eq!((state.phase, since), (phase, minute), "{case}");
        }
        let degraded = report("old", "Updated=False NodeDegraded=True").state(None).unwrap();
        assert_eq!(degraded.reason.as_deref(), Some("why"));
        assert!(degraded.holds_guests, "it may hang in its drain");
    }

    #[test]
    fn a_report_without_conditions_says_nothing() {
        assert_eq!(report("old", "").state(Some("new")), None);
        assert_eq!(NodeReport::of(&json!({})), None);
    }
}
