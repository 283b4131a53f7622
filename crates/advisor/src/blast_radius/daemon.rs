//! What the machine config daemon of a node has written to it.

use jiff::Timestamp;
use serde_json::Value;

use super::node::timestamp;
use crate::selector::texts;

const PREFIX: &str = "machineconfiguration.openshift.io/";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Daemon {
    /// The rendered config that the node runs, and the one that it should run.
    pub(crate) current: Option<String>,
    pub(crate) desired: Option<String>,
    pub(crate) state: Option<String>,
    /// Why it is degraded.
    pub(crate) reason: Option<String>,
    /// The request to drain or to uncordon the node, and the last one that was met.
    desired_drain: Option<String>,
    last_applied_drain: Option<String>,
    /// When the daemon last changed one of these.
    pub(crate) since: Option<Timestamp>,
}

impl Daemon {
    pub(super) fn of(node: &Value) -> Self {
        let annotations = texts(node.pointer("/metadata/annotations"));
        let text = |name: &str| annotations.get(&format!("{PREFIX}{name}")).filter(|text| !text.is_empty()).cloned();
        Daemon {
            current: text("currentConfig"),
            desired: text("desiredConfig"),
            state: text("state"),
            reason: text("reason"),
            desired_drain: text("desiredDrain"),
            last_applied_drain: text("lastAppliedDrain"),
            since: since(node),
        }
    }

    pub(super) fn is_updating(&self) -> bool {
        self.current != self.desired || self.state.as_deref().is_some_and(|state| state != "Done")
    }

    pub(crate) fn is_degraded(&self) -> bool {
        matches!(self.state.as_deref(), Some("Degraded" | "Unreconcilable"))
    }

    /// Whether it has asked for a drain for the config that the node should run, and waits for its end.
    pub(crate) fn waits_for_drain(&self) -> bool {
        self.drain().is_some_and(|drain| self.desired_drain.as_ref() == Some(&drain)) && !self.is_drained()
    }

    /// Whether the node was drained for the config that it should run.
    pub(crate) fn is_drained(&self) -> bool {
        self.drain().is_some_and(|drain| self.last_applied_drain.as_ref() == Some(&drain))
    }

    fn drain(&self) -> Option<String> {
        self.desired.as_ref().map(|config| format!("drain-{config}"))
    }
}

/// When the manager of the state last wrote to the node.
fn since(node: &Value) -> Option<Timestamp> {
    let state = format!("f:{PREFIX}state");
    let owns = |entry: &&Value| entry["fieldsV1"]["f:metadata"]["f:annotations"].get(&state).is_some();
    let entries = node.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    entries.iter().filter(owns).filter_map(|entry| timestamp(entry.get("time"))).max()
}
