//! MachineConfigNodes: how far each node is with its update, step by step, as the machine config daemon tells it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use kube_io::RequestError;
use serde_json::{Value, json};

use super::{DaemonState, Machine, names::FIELD_MANAGER};
use crate::{STAND_IN_LABEL, Time};

/// The conditions of an update, in the order in which they become true. The last one is true at rest, the others are false then.
const STEPS: [&str; 10] = [
    "UpdatePrepared",
    "Cordoned",
    "Drained",
    "AppliedFilesAndOS",
    "UpdateExecuted",
    "RebootedNode",
    "UpdatePostActionComplete",
    "Uncordoned",
    "UpdateComplete",
    "Updated",
];
const DEGRADED: &str = "NodeDegraded";

/// How many steps a node has behind it, or all at rest.
fn steps_done(machine: Machine<'_>) -> usize {
    let is_working = matches!(machine.state(), DaemonState::Working | DaemonState::Degraded);
    let last = match machine.state() {
        _ if machine.is_done() => "Updated",
        DaemonState::Rebooting => "UpdateExecuted",
        _ if is_working && machine.is_drained() => "Drained",
        _ if is_working && machine.is_cordoned() => "Cordoned",
        _ => return usize::from(machine.desired() != machine.current()),
    };
    STEPS.iter().position(|step| *step == last).map_or(0, |position| position + 1)
}

/// Type, status, reason and message of each condition. The step under way is Unknown.
fn conditions(machine: Machine<'_>) -> Vec<[String; 4]> {
    let (node, done) = (machine.name(), steps_done(machine));
    let is_at_rest = done == STEPS.len();
    let state = |position: usize| match position {
        _ if is_at_rest => position + 1 == STEPS.len(),
        position => position < done,
    };
    let step = |(position, name): (usize, &&str)| {
        let (status, message) = match state(position) {
            true => ("True", format!("Node {node} has reached {name}")),
            false if position == done => ("Unknown", format!("Node {node} is on its way to {name}")),
            false => ("False", format!("Node {node} has not reached {name}")),
        };
        [(*name).to_owned(), status.to_owned(), (*name).to_owned(), message]
    };
    let mut conditions: Vec<[String; 4]> = STEPS.iter().enumerate().map(step).collect();
    let (status, reason, message) = match machine.is_degraded() {
        true => ("True", "NodeDegraded", machine.reason().to_owned()),
        false => ("False", "AllIsWell", format!("Node {node} is not degraded")),
    };
    conditions.push([DEGRADED, status, reason, &message].map(str::to_owned));
    conditions
}

/// A condition as it was written, and since when it has its status.
type Told = BTreeMap<String, ([String; 4], Timestamp)>;

/// Writes what has changed. It forgets when conditions began to hold if it is restarted.
pub(super) struct MachineConfigNodes {
    api: Api<DynamicObject>,
    time: Time,
    written: BTreeMap<String, (Told, Value)>,
}

impl MachineConfigNodes {
    pub(super) fn new(client: Client, time: &Time) -> Self {
        let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigNode");
        let api = Api::all_with(client, &ApiResource::from_gvk(&kind));
        MachineConfigNodes { api, time: time.clone(), written: BTreeMap::new() }
    }

    /// Tells of one node. A node without a config is not told of yet.
    pub(super) async fn tell(&mut self, machine: Machine<'_>, pool: &str, now: Timestamp) -> Result<(), RequestError> {
        let (Some(current), Some(desired)) = (machine.current(), machine.desired()) else { return Ok(()) };
        let node = machine.name();
        let before = self.written.get(&node);
        let since = |condition: &[String; 4]| {
            let known = before.and_then(|(told, _)| told.get(&condition[0]));
            known.filter(|(known, _)| known[1] == condition[1]).map_or(now, |(_, since)| *since)
        };
        let told: Told = conditions(machine)
            .into_iter()
            .map(|condition| (condition[0].clone(), (condition.clone(), since(&condition))))
            .collect();
        let versions = json!({"current": current, "desired": desired});
        if before.is_some_and(|known| *known == (told.clone(), versions.clone())) {
            return Ok(());
        }
        let header = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigNode",
            "metadata": {"name": node, "labels": {STAND_IN_LABEL: "true"}},
        });
        let with = |field: &str, value: Value| {
            let mut object = header.clone();
            object[field] = value;
            object
        };
        let spec = json!({"node": {"name": node}, "pool": {"name": pool}, "configVersion": {"desired": desired}});
        let status =
            json!({"configVersion": versions, "conditions": told.values().map(as_written).collect::<Vec<_>>()});
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let doing = || format!("telling the progress of Node {node}");
        self.time.write(doing(), self.api.patch(&node, &params, &Patch::Apply(with("spec", spec)))).await?;
        self.time.write(doing(), self.api.patch_status(&node, &params, &Patch::Apply(with("status", status)))).await?;
        self.written.insert(node, (told, versions));
        Ok(())
    }
}

fn as_written(([kind, status, reason, message], since): &([String; 4], Timestamp)) -> Value {
    let since = Timestamp::from_second(since.as_second()).unwrap_or(*since).to_string();
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::NodeBuilder;

    /// The conditions that are True, and the one that is Unknown.
    fn told(node: NodeBuilder) -> (Vec<String>, Option<String>) {
        let node = node.build();
        let all = conditions(Machine::of(&node));
        let with = |status: &str| all.iter().filter(|it| it[1] == status).map(|it| it[0].clone()).collect::<Vec<_>>();
        (with("True"), with("Unknown").pop())
    }

    #[test]
    fn the_step_under_way_is_unknown_and_those_before_it_are_true() {
        let node = || NodeBuilder::new("a").annotated("x", "y", "Done");
        let working = || node().state("Working").cordoned();
        for (case, node, last, current) in [
            ("at rest", node().annotated("y", "y", "Done"), "Updated", None),
            ("told to change", node(), "UpdatePrepared", Some("Cordoned")),
            ("cordoned", working(), "Cordoned", Some("Drained")),
            ("drained", working().drained("y"), "Drained", Some("AppliedFilesAndOS")),
            ("rebooting", working().drained("y").state("Rebooting"), "UpdateExecuted", Some("RebootedNode")),
        ] {
            let (is_true, unknown) = told(node);
            assert_eq!((is_true.last().map(String::as_str), unknown.as_deref()), (Some(last), current), "{case}");
        }
        assert_eq!(told(node().annotated("y", "y", "Done")).0, ["Updated"], "at rest the steps are over");
        let (is_true, unknown) = told(working().state("Degraded"));
        assert_eq!(
            (is_true, unknown.as_deref()),
            (["UpdatePrepared", "Cordoned", "NodeDegraded"].map(str::to_owned).to_vec(), Some("Drained"))
        );
    }
}
