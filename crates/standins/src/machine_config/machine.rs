//! A node as the machine config operator sees it: its current and desired config, its state, its availability.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;

use super::names;

/// The state of a node's machine config daemon, from its annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DaemonState {
    Done,
    Working,
    Rebooting,
    Degraded,
    Unreconcilable,
}

impl DaemonState {
    pub fn as_str(self) -> &'static str {
        match self {
            DaemonState::Done => "Done",
            DaemonState::Working => "Working",
            DaemonState::Rebooting => "Rebooting",
            DaemonState::Degraded => "Degraded",
            DaemonState::Unreconcilable => "Unreconcilable",
        }
    }
}

impl fmt::Display for DaemonState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A view of one node.
#[derive(Debug, Clone, Copy)]
pub struct Machine<'a>(&'a Node);

impl<'a> Machine<'a> {
    pub fn of(node: &'a Node) -> Self {
        Machine(node)
    }

    pub fn name(self) -> String {
        self.0.name_any()
    }

    /// The rendered config that it runs. None if it has no annotation yet.
    pub fn current(self) -> Option<&'a str> {
        self.annotation(names::CURRENT_CONFIG)
    }

    /// The rendered config that it should run.
    pub fn desired(self) -> Option<&'a str> {
        self.annotation(names::DESIRED_CONFIG)
    }

    /// An unknown state counts as Working.
    pub fn state(self) -> DaemonState {
        match self.annotation(names::STATE) {
            None | Some("Done") => DaemonState::Done,
            Some("Rebooting") => DaemonState::Rebooting,
            Some("Degraded") => DaemonState::Degraded,
            Some("Unreconcilable") => DaemonState::Unreconcilable,
            Some(_) => DaemonState::Working,
        }
    }

    pub fn reason(self) -> &'a str {
        self.annotation(names::REASON).unwrap_or_default()
    }

    /// When the stand-in last changed the state.
    pub fn since(self) -> Option<Timestamp> {
        self.annotation(names::SINCE)?.parse().ok()
    }

    pub fn is_cordoned(self) -> bool {
        self.0.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false)
    }

    /// Whether it was drained for its desired config.
    pub fn is_drained(self) -> bool {
        self.desired().is_some_and(|desired| self.annotation(names::LAST_APPLIED_DRAIN) == Some(&drain_for(desired)))
    }

    /// Its Ready condition. None if it has none, because no kubelet has ever reported.
    pub fn ready(self) -> Option<bool> {
        let conditions = self.0.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == "Ready").map(|condition| condition.status == "True")
    }

    /// Whether KWOK acts as its kubelet. KWOK then owns the Ready condition, and the stand-in does not write it.
    pub fn is_managed_by_kwok(self) -> bool {
        self.annotation(names::KWOK_NODE).is_some()
    }

    /// Whether nobody acts as its kubelet, so that it would never become ready.
    pub fn lacks_kubelet(self) -> bool {
        self.ready().is_none() && !self.is_managed_by_kwok()
    }

    /// Ready and schedulable.
    pub fn is_in_service(self) -> bool {
        self.ready() == Some(true) && !self.is_cordoned()
    }

    /// Whether it runs its desired config.
    pub fn is_done(self) -> bool {
        self.current().is_some() && self.current() == self.desired() && self.state() == DaemonState::Done
    }

    pub fn is_done_with(self, config: &str) -> bool {
        self.is_done() && self.current() == Some(config)
    }

    pub fn is_degraded(self) -> bool {
        self.desired().is_some() && matches!(self.state(), DaemonState::Degraded | DaemonState::Unreconcilable)
    }

    /// Degraded during the update to another config.
    pub fn is_failing(self) -> bool {
        self.is_degraded() && self.current() != self.desired()
    }

    /// Whether it counts against `maxUnavailable`: it is not in service, or its update has begun.
    /// A failing node that is still in service does not count.
    pub fn is_unavailable(self) -> bool {
        !self.is_in_service() || !(self.is_done() || self.is_failing())
    }

    /// Whether it has the taint of nodes that are to be updated.
    pub fn is_update_in_progress(self) -> bool {
        self.taints().iter().any(|taint| taint.key == names::UPDATE_IN_PROGRESS)
    }

    pub(super) fn taints(self) -> &'a [Taint] {
        self.0.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
    }

    /// The sort key of rollouts: zone by zone, nodes without a zone last, in a zone the oldest node first.
    pub fn rollout_order(self) -> (bool, String, Option<Timestamp>, String) {
        let zone = self.0.labels().get(names::ZONE).cloned();
        let created = self.0.creation_timestamp().map(|time| time.0);
        (zone.is_none(), zone.unwrap_or_default(), created, self.name())
    }

    fn annotation(self, name: &str) -> Option<&'a str> {
        self.0.annotations().get(name).map(String::as_str).filter(|text| !text.is_empty())
    }
}

/// The value of the drain annotations for the update to a config.
pub(super) fn drain_for(config: &str) -> String {
    format!("drain-{config}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::NodeBuilder;

    #[test]
    fn a_node_is_unavailable_when_it_is_out_of_service_or_its_update_has_begun() {
        let node = |current: &str, desired: &str, state: &str| NodeBuilder::new("a").annotated(current, desired, state);
        let cases = [
            ("done", node("x", "x", "Done"), false),
            ("cordoned by somebody", node("x", "x", "Done").cordoned(), true),
            ("not ready", node("x", "x", "Done").ready(false), true),
            ("without a Ready condition", node("x", "x", "Done").without_ready(), true),
            ("with another desired config", node("x", "y", "Done"), true),
            ("being updated", node("x", "y", "Working"), true),
            ("rebooting", node("x", "y", "Rebooting"), true),
            ("in an unknown state", node("x", "y", "Resting"), true),
            ("degraded before it was cordoned", node("x", "y", "Degraded"), false),
            ("that cannot be updated", node("x", "y", "Unreconcilable"), false),
            ("degraded and cordoned", node("x", "y", "Degraded").cordoned(), true),
            ("without annotations", NodeBuilder::new("a"), true),
        ];
        for (case, node, expected) in cases {
            assert_eq!(Machine::of(&node.build()).is_unavailable(), expected, "{case}");
        }
    }

    #[test]
    fn a_drain_counts_only_for_the_config_it_was_made_for() {
        let node = NodeBuilder::new("a").annotated("x", "y", "Working");
        assert!(!Machine::of(&node.clone().build()).is_drained());
        assert!(Machine::of(&node.clone().drained("y").build()).is_drained());
        assert!(!Machine::of(&node.drained("z").build()).is_drained());
    }
}
