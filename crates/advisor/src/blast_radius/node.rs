//! Nodes and MachineConfigPools as the machine config operator sees them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::daemon::Daemon;
use crate::{
    demand::{Resources, Taint},
    selector::{Labels, Selector, labels},
};

/// A time as Kubernetes writes it.
pub(crate) fn timestamp(value: Option<&Value>) -> Option<Timestamp> {
    value?.as_str()?.parse().ok()
}

const ZONE: &str = "topology.kubernetes.io/zone";
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub(super) labels: Labels,
    created: Option<Timestamp>,
    pub(crate) is_cordoned: bool,
    pub(crate) is_ready: bool,
    /// Since when it is ready or not.
    pub(crate) ready_since: Option<Timestamp>,
    pub(super) taints: Vec<Taint>,
    pub(super) allocatable: Resources,
    /// The start of `spec.providerID`, for example `aws`.
    pub(super) provider: Option<String>,
    pub(crate) daemon: Daemon,
}

impl Node {
    /// None if the object has no name.
    pub fn of(object: &Value) -> Option<Self> {
        let mut conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let ready = conditions.find(|known| known["type"] == "Ready");
        let provider = object.pointer("/spec/providerID").and_then(Value::as_str);
        let taints = object.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
        Some(Node {
            name: object.pointer("/metadata/name")?.as_str()?.to_owned(),
            labels: labels(object),
            created: timestamp(object.pointer("/metadata/creationTimestamp")),
            is_cordoned: object.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or(false),
            is_ready: ready.is_some_and(|ready| ready["status"] == "True"),
            ready_since: ready.and_then(|ready| timestamp(ready.get("lastTransitionTime"))),
            taints: taints.map(Taint::of).collect(),
            allocatable: Resources::of(object.pointer("/status/allocatable")),
            provider: provider.and_then(|id| id.split_once(':')).map(|(provider, _)| provider.to_owned()),
            daemon: Daemon::of(object),
        })
    }

    pub fn zone(&self) -> Option<&str> {
        self.labels.get(ZONE).map(String::as_str)
    }

    pub(super) fn is_in_service(&self) -> bool {
        self.is_ready && !self.is_cordoned
    }

    pub(super) fn is_control_plane(&self) -> bool {
        CONTROL_PLANE.iter().any(|label| self.labels.contains_key(*label))
    }

    /// Why the machine config operator does not begin with it.
    pub(super) fn held_back(&self) -> Option<&'static str> {
        match self {
            Node { is_cordoned: true, .. } => Some("cordoned"),
            Node { is_ready: false, .. } => Some("not ready"),
            _ => None,
        }
    }

    /// Why it uses up a place of its pool.
    pub(super) fn out_of_service(&self) -> &'static str {
        match self.held_back() {
            _ if self.is_failing() => "failing",
            Some(held_back) => held_back,
            None => "being updated",
        }
    }

    /// Whether it counts against `maxUnavailable`: out of service for whatever reason, or in the middle of an update.
    pub(super) fn is_unavailable(&self) -> bool {
        !self.is_in_service() || (self.daemon.is_updating() && !self.is_failing())
    }

    /// Whether its daemon has failed on the configuration that it should get.
    pub(super) fn is_failing(&self) -> bool {
        self.daemon.is_degraded() && self.daemon.current != self.daemon.desired
    }

    /// Whether it runs a configuration, with nothing left to do.
    pub(super) fn is_done_with(&self, config: &str) -> bool {
        self.daemon.current.as_deref() == Some(config) && !self.daemon.is_updating()
    }

    /// Whether the machine config operator has begun to give it a configuration, or has given it.
    pub(super) fn is_taken_for(&self, config: &str) -> bool {
        self.daemon.desired.as_deref() == Some(config)
    }

    /// The order in which a pool takes its nodes: by zone, those without a zone last, in a zone the oldest first.
    pub(crate) fn rollout_order(&self) -> impl Ord + use<'_> {
        (self.zone().is_none(), self.zone(), self.created, &self.name)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MaxUnavailable {
    Number(u64),
    Percent(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachinePool {
    pub name: String,
    pub is_paused: bool,
    selector: Option<Selector>,
    max_unavailable: MaxUnavailable,
    /// The rendered config that its nodes are to run.
    pub(crate) target: Option<String>,
}

impl MachinePool {
    /// None if the object has no name.
    pub fn of(object: &Value) -> Option<Self> {
        // A selector without requirements selects no node.
        let selector = Selector::of(object.pointer("/spec/nodeSelector")).filter(|selector| !selector.is_empty());
        let max_unavailable = match object.pointer("/spec/maxUnavailable") {
            Some(Value::Number(number)) => MaxUnavailable::Number(number.as_u64().unwrap_or(0)),
            Some(Value::String(text)) => {
                let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
                percent.map_or(MaxUnavailable::Number(0), MaxUnavailable::Percent)
            }
            _ => MaxUnavailable::Number(1),
        };
        let target = object.pointer("/spec/configuration/name").and_then(Value::as_str);
        Some(MachinePool {
            name: object.pointer("/metadata/name")?.as_str()?.to_owned(),
            is_paused: object.pointer("/spec/paused").and_then(Value::as_bool).unwrap_or(false),
            selector,
            max_unavailable,
            target: target.filter(|name| !name.is_empty()).map(str::to_owned),
        })
    }

    /// How many of its nodes may be unavailable at a time. A share is rounded down, and at least one may.
    pub(crate) fn max_unavailable(&self, nodes: usize) -> usize {
        let allowed = match self.max_unavailable {
            MaxUnavailable::Number(number) => usize::try_from(number).unwrap_or(usize::MAX),
            MaxUnavailable::Percent(percent) => {
                nodes.saturating_mul(usize::try_from(percent).unwrap_or(usize::MAX)) / 100
            }
        };
        allowed.max(1)
    }
}

/// The nodes of each pool, and those that several custom pools select: they get no configuration.
pub(crate) fn members<'a>(
    pools: &[MachinePool],
    nodes: &'a [Node],
) -> (BTreeMap<String, Vec<&'a Node>>, Vec<&'a Node>) {
    let mut members: BTreeMap<String, Vec<&Node>> = BTreeMap::new();
    let mut ambiguous = Vec::new();
    for node in nodes {
        let selects = |pool: &&MachinePool| pool.selector.as_ref().is_some_and(|known| known.matches(&node.labels));
        let selecting: Vec<&MachinePool> = pools.iter().filter(selects).collect();
        let named = |name: &str| selecting.iter().copied().find(|pool| pool.name == name);
        let is_custom = |pool: &&&MachinePool| !["master", "arbiter", "worker"].contains(&pool.name.as_str());
        let custom: Vec<&&MachinePool> = selecting.iter().filter(is_custom).collect();
        let pool = match custom.as_slice() {
            [_, _, ..] => {
                ambiguous.push(node);
                continue;
            }
            custom => named("master").or(named("arbiter")).or(custom.first().map(|pool| **pool)).or(named("worker")),
        };
        if let Some(pool) = pool {
            members.entry(pool.name.clone()).or_default().push(node);
        }
    }
    (members, ambiguous)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, roles: &[&str]) -> Node {
        let labels: BTreeMap<_, _> = roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), "")).collect();
        let metadata = json!({"name": name, "labels": labels, "creationTimestamp": "2026-01-01T00:00:00Z"});
        Node::of(&json!({"metadata": metadata})).unwrap()
    }

    fn pool(name: &str) -> MachinePool {
        let role = format!("node-role.kubernetes.io/{name}");
        let selector = json!({"matchExpressions": [{"key": role, "operator": "Exists"}]});
        MachinePool::of(&json!({"metadata": {"name": name}, "spec": {"nodeSelector": selector}})).unwrap()
    }

    #[test]
    fn a_node_belongs_to_master_before_a_custom_pool_before_worker() {
        let pools = ["gpu", "infra", "master", "worker"].map(pool);
        for (roles, expected) in [
            (&["worker"][..], Some("worker")),
            (&["worker", "infra"], Some("infra")),
            (&["master", "worker"], Some("master")),
            (&["master", "infra"], Some("master")),
            (&["gpu", "infra"], None),
            (&[], None),
        ] {
            let nodes = [node("a", roles)];
            let (members, ambiguous) = members(&pools, &nodes);
            assert_eq!(members.keys().next().map(String::as_str), expected, "{roles:?}");
            assert_eq!(ambiguous.len(), usize::from(roles == ["gpu", "infra"]), "{roles:?}");
        }
    }

    #[test]
    fn a_pool_takes_its_nodes_by_zone_those_without_one_last_and_the_oldest_first() {
        let node = |name: &str, zone: Option<&str>, day: u32| {
            let labels = zone.map_or(json!({}), |zone| json!({ZONE: zone}));
            let created = format!("2026-01-{day:02}T00:00:00Z");
            Node::of(&json!({"metadata": {"name": name, "labels": labels, "creationTimestamp": created}})).unwrap()
        };
        let mut nodes = [
            node("none-old", None, 1),
            node("b-old", Some("b"), 2),
            node("a-new", Some("a"), 9),
            node("a-twin-2", Some("a"), 3),
            node("a-twin-1", Some("a"), 3),
            node("none-new", None, 8),
        ];
        nodes.sort_by(|one, other| one.rollout_order().cmp(&other.rollout_order()));
        let names: Vec<_> = nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["a-twin-1", "a-twin-2", "a-new", "b-old", "none-old", "none-new"]);
    }

    #[test]
    fn max_unavailable_is_a_number_or_a_share_rounded_down_and_at_least_one() {
        for (setting, nodes, expected) in [
            (json!(null), 6, 1),
            (json!(2), 6, 2),
            (json!(0), 6, 1),
            (json!(-3), 6, 1),
            (json!("50%"), 6, 3),
            (json!("50%"), 3, 1),
            (json!("10%"), 6, 1),
            (json!("half"), 6, 1),
        ] {
            let pool = json!({"metadata": {"name": "worker"}, "spec": {"maxUnavailable": setting}});
            assert_eq!(MachinePool::of(&pool).unwrap().max_unavailable(nodes), expected, "{setting} of {nodes}");
        }
    }

    #[test]
    fn a_node_is_unavailable_when_it_is_out_of_service_or_its_update_has_begun() {
        let with = |current: &str, desired: &str, state: &str, ready: &str, cordoned: bool| {
            let annotations = json!({
                "machineconfiguration.openshift.io/currentConfig": current,
                "machineconfiguration.openshift.io/desiredConfig": desired,
                "machineconfiguration.openshift.io/state": state,
            });
            Node::of(&json!({
                "metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations},
                "spec": {"unschedulable": cordoned},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            }))
            .unwrap()
        };
        for (case, node, unavailable) in [
            ("done", with("x", "x", "Done", "True", false), false),
            ("cordoned by somebody", with("x", "x", "Done", "True", true), true),
            ("not ready", with("x", "x", "Done", "Unknown", false), true),
            ("being updated", with("x", "y", "Working", "True", false), true),
            ("failing, and in service", with("x", "y", "Degraded", "True", false), false),
        ] {
            assert_eq!(node.is_unavailable(), unavailable, "{case}");
        }
    }
}
