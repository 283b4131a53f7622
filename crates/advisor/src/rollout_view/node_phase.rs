//! The phase of one node in a rollout: from its MachineConfigNode where that is served, else from the annotations of the node.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blast_radius::Node;

use super::NodeReport;

/// Ordered from the one to look at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NodePhase {
    Degraded,
    Draining,
    Cordoned,
    Updating,
    Rebooting,
    /// Nothing tells what its machine configuration is.
    Unknown,
    Waiting,
    Updated,
}

impl NodePhase {
    pub fn word(self) -> &'static str {
        match self {
            NodePhase::Degraded => "degraded",
            NodePhase::Draining => "draining",
            NodePhase::Cordoned => "cordoned",
            NodePhase::Updating => "updating",
            NodePhase::Rebooting => "rebooting",
            NodePhase::Unknown => "unknown",
            NodePhase::Waiting => "waiting",
            NodePhase::Updated => "updated",
        }
    }
}

/// A node of a pool that is rolled out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeProgress {
    pub name: String,
    pub phase: NodePhase,
    /// Absent if nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    /// Why it is degraded, or why the pool does not begin with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether virtual machines on it keep it from going on.
    #[serde(skip)]
    pub(super) holds_guests: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) phase: NodePhase,
    pub(super) since: Option<Timestamp>,
    pub(super) reason: Option<String>,
    pub(super) holds_guests: bool,
}

impl State {
    pub(super) fn new(phase: NodePhase, since: Option<Timestamp>) -> Self {
        State { phase, since, reason: None, holds_guests: false }
    }

    fn because(self, reason: &str) -> Self {
        State { reason: Some(reason.to_owned()), ..self }
    }

    pub(super) fn named(self, name: &str) -> NodeProgress {
        let State { phase, since, reason, holds_guests } = self;
        NodeProgress { name: name.to_owned(), phase, since, reason, holds_guests }
    }
}

/// The state of a node in a rollout of a config. A report tells more of an update, and the node more of its rest.
pub(super) fn state(node: Option<&Node>, report: Option<&NodeReport>, target: Option<&str>) -> State {
    let reported = report.and_then(|report| report.state(target));
    let at_rest = |state: &State| matches!(state.phase, NodePhase::Waiting | NodePhase::Updated);
    match (reported, node.map(|node| of_node(node, target))) {
        (Some(reported), Some(seen)) if at_rest(&reported) => {
            let since = reported.since.filter(|_| seen.phase == reported.phase).or(seen.since);
            State { since, ..seen }
        }
        (Some(reported), _) => reported,
        (None, Some(seen)) => seen,
        (None, None) => State::new(NodePhase::Unknown, None),
    }
}

fn of_node(node: &Node, target: Option<&str>) -> State {
    let daemon = &node.daemon;
    let (Some(current), Some(desired)) = (&daemon.current, &daemon.desired) else {
        return State::new(NodePhase::Unknown, None).because("it has no machine configuration yet");
    };
    let is_at_rest = current == desired && daemon.state.as_deref().is_none_or(|state| state == "Done");
    let phase = match daemon.state.as_deref() {
        _ if daemon.is_degraded() => NodePhase::Degraded,
        _ if is_at_rest => return at_rest(node, target.is_none_or(|target| current == target)),
        Some("Rebooting") => NodePhase::Rebooting,
        _ if current == desired => NodePhase::Updating,
        // Older daemons do not announce their reboot.
        _ if daemon.is_drained() && !node.is_ready => NodePhase::Rebooting,
        _ if daemon.is_drained() => NodePhase::Updating,
        _ if daemon.waits_for_drain() => NodePhase::Draining,
        _ if node.is_cordoned => NodePhase::Cordoned,
        _ => NodePhase::Updating,
    };
    let is_away = phase == NodePhase::Rebooting && !node.is_ready;
    let since = node.ready_since.filter(|_| is_away).or(daemon.since);
    let holds_guests = match phase {
        NodePhase::Draining | NodePhase::Cordoned => true,
        NodePhase::Degraded => daemon.waits_for_drain(),
        _ => false,
    };
    let reason = daemon.reason.clone().filter(|_| phase == NodePhase::Degraded);
    State { phase, since, reason, holds_guests }
}

fn at_rest(node: &Node, is_updated: bool) -> State {
    match (is_updated, node.is_cordoned, node.is_ready) {
        (true, true, _) => State::new(NodePhase::Updated, node.daemon.since).because("cordoned by somebody"),
        (true, false, false) => State::new(NodePhase::Updated, node.daemon.since).because("not ready"),
        (true, false, true) => State::new(NodePhase::Updated, node.daemon.since),
        (false, true, _) => {
            State::new(NodePhase::Cordoned, None).because("by somebody; the pool does not begin with it")
        }
        (false, false, false) => {
            State::new(NodePhase::Waiting, None).because("not ready; the pool does not begin with it")
        }
        (false, false, true) => State::new(NodePhase::Waiting, None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const READY_SINCE: &str = "2026-01-01T09:00:00Z";
    const WRITTEN: &str = "2026-01-01T10:00:00Z";

    /// A node that should run `new`, unless something else is said.
    fn node(annotations: &Value, cordoned: bool, ready: bool) -> Node {
        let prefix = "machineconfiguration.openshift.io/";
        let mut all = serde_json::Map::new();
        for defaults in [&json!({"currentConfig": "old", "desiredConfig": "new", "state": "Working"}), annotations] {
            for (name, value) in defaults.as_object().unwrap() {
                all.insert(format!("{prefix}{name}"), value.clone());
            }
        }
        let fields = json!({"f:metadata": {"f:annotations": {"f:machineconfiguration.openshift.io/state": {}}}});
        let others = json!({"f:status": {}});
        let managers = json!([
            {"manager": "machine-config-daemon", "time": WRITTEN, "fieldsV1": fields},
            {"manager": "kubelet", "time": "2026-01-01T11:00:00Z", "fieldsV1": others},
        ]);
        let status = if ready { "True" } else { "Unknown" };
        Node::of(&json!({
            "metadata": {"name": "a", "annotations": all, "managedFields": managers},
            "spec": {"unschedulable": cordoned},
            "status": {"conditions": [{"type": "Ready", "status": status, "lastTransitionTime": READY_SINCE}]},
        }))
        .unwrap()
    }

    #[test]
    fn the_annotations_of_a_node_tell_its_phase() {
        use NodePhase::*;
        let done = json!({"currentConfig": "new", "state": "Done"});
        let waiting = json!({"desiredConfig": "old", "state": "Done"});
        let asked = json!({"desiredDrain": "drain-new"});
        let drained = json!({"desiredDrain": "drain-new", "lastAppliedDrain": "drain-new"});
        let earlier = json!({"desiredDrain": "uncordon-old", "lastAppliedDrain": "uncordon-old"});
        let rebooting = json!({"state": "Rebooting", "desiredDrain": "drain-new", "lastAppliedDrain": "drain-new"});
        let degraded = json!({"state": "Degraded", "reason": "disk full", "desiredDrain": "drain-new"});
        let cases = [
            ("runs the config", &done, false, true, Updated, Some(WRITTEN), None, false),
            ("runs it, cordoned", &done, true, true, Updated, Some(WRITTEN), Some("cordoned by somebody"), false),
            ("runs it, not ready", &done, false, false, Updated, Some(WRITTEN), Some("not ready"), false),
            ("not its turn", &waiting, false, true, Waiting, None, None, false),
            (
                "not its turn, not ready",
                &waiting,
                false,
                false,
                Waiting,
                None,
                Some("not ready; the pool does not begin with it"),
                false,
            ),
            (
                "not its turn, cordoned",
                &waiting,
                true,
                true,
                Cordoned,
                None,
                Some("by somebody; the pool does not begin with it"),
                false,
            ),
            ("chosen", &json!({"state": "Done"}), false, true, Updating, Some(WRITTEN), None, false),
            ("cordoned for it", &earlier, true, true, Cordoned, Some(WRITTEN), None, true),
            ("drain asked for", &asked, false, true, Draining, Some(WRITTEN), None, true),
            ("being drained", &asked, true, true, Draining, Some(WRITTEN), None, true),
            ("drained", &drained, true, true, Updating, Some(WRITTEN), None, false),
            ("drained and away", &drained, true, false, Rebooting, Some(READY_SINCE), None, false),
            ("about to reboot", &rebooting, true, true, Rebooting, Some(WRITTEN), None, false),
            ("away", &rebooting, true, false, Rebooting, Some(READY_SINCE), None, false),
            ("degraded in its drain", &degraded, true, true, Degraded, Some(WRITTEN), Some("disk full"), true),
            ("finishing", &json!({"currentConfig": "new"}), true, true, Updating, Some(WRITTEN), None, false),
        ];
        for (case, annotations, cordoned, ready, phase, since, reason, holds_guests) in cases {
            let expected = State {
                phase,
                since: since.map(|time| time.parse().unwrap()),
                reason: reason.map(str::to_owned),
                holds_guests,
            };
            assert_eq!(state(Some(&node(annotations, cordoned, ready)), None, Some("new")), expected, "{case}");
        }
        let nothing = Node::of(&json!({"metadata": {"name": "a"}})).unwrap();
        assert_eq!(state(Some(&nothing), None, Some("new")).phase, Unknown);
        assert_eq!(state(None, None, Some("new")).phase, Unknown);
    }

    #[test]
    fn a_report_goes_before_annotations_and_the_node_tells_why_it_waits() {
        let report = |current: &str, updated: &str, drained: &str| {
            let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-01-01T12:00:00Z"});
            NodeReport::of(&json!({
                "metadata": {"name": "a"},
                "status": {
                    "configVersion": {"current": current},
                    "conditions": [condition("Updated", updated), condition("Drained", drained)],
                },
            }))
            .unwrap()
        };
        let noon = Some("2026-01-01T12:00:00Z".parse().unwrap());
        let working = node(&json!({}), false, true);
        let draining = state(Some(&working), Some(&report("old", "False", "Unknown")), Some("new"));
        assert_eq!((draining.phase, draining.since), (NodePhase::Draining, noon));
        let done = node(&json!({"currentConfig": "new", "state": "Done"}), true, true);
        let updated = state(Some(&done), Some(&report("new", "True", "False")), Some("new"));
        assert_eq!((updated.phase, updated.since), (NodePhase::Updated, noon), "the report knows when");
        assert_eq!(updated.reason.as_deref(), Some("cordoned by somebody"), "the node knows more");
        let alone = state(None, Some(&report("old", "True", "False")), Some("new"));
        assert_eq!(alone.phase, NodePhase::Waiting, "nodes may be unreadable");
    }

    #[test]
    fn phases_are_ordered_from_the_one_to_look_at_first() {
        use NodePhase::*;
        let all = [Degraded, Draining, Cordoned, Updating, Rebooting, Unknown, Waiting, Updated];
        assert!(all.is_sorted());
        assert_eq!(all.map(NodePhase::word).first(), Some(&"degraded"));
    }
}
