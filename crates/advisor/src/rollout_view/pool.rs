//! How far a MachineConfigPool is, and its nodes.

use std::collections::{BTreeMap, HashMap};

use api::virt_platform_config::{Item, ItemState, PoolRollout, RolloutState};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use crate::blast_radius::{Estimate, MachinePool, Node, members};

use super::{
    Cluster, NodePhase, NodeProgress, NodeReport,
    eta::Pace,
    node_phase::{State, state},
};

/// The state of a pool that has the change on all of its nodes.
const DONE: &str = "Updated";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PoolProgress {
    pub name: String,
    /// As in `status.items[].rollout[].state`, or Updated.
    pub state: &'static str,
    /// How many nodes have the change, and how many there are. Absent if nothing tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub last_progress: Option<Timestamp>,
    /// Why it does not get on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The time until all nodes have the change.
    pub remaining: Estimate,
    /// The worst first. Empty if they could not be read.
    pub nodes: Vec<NodeProgress>,
}

impl PoolProgress {
    pub fn is_done(&self) -> bool {
        self.state == DONE
    }

    /// Whether it does not get on by itself.
    pub fn is_in_trouble(&self) -> bool {
        const TROUBLE: [RolloutState; 4] =
            [RolloutState::RenderDegraded, RolloutState::Degraded, RolloutState::Paused, RolloutState::NoProgress];
        TROUBLE.iter().any(|trouble| trouble.as_str() == self.state)
    }
}

/// What the items of a plan say about a pool.
#[derive(Debug, Clone)]
struct Wait<'a> {
    /// None if the pool is done, or has not been looked at.
    rollout: Option<&'a PoolRollout>,
    is_done: bool,
    /// How many nodes the pool has by the plan.
    planned: Option<i32>,
    begin: Option<Timestamp>,
}

impl Wait<'_> {
    /// The one that is furthest from the end, and that people have to look at first.
    fn rank(&self) -> usize {
        use RolloutState::*;
        let order = [RenderDegraded, Degraded, Paused, NoProgress, Pending, Updating];
        match self.rollout {
            Some(rollout) => order.iter().position(|known| *known == rollout.state).unwrap_or(order.len()),
            None if self.is_done => order.len() + 1,
            None => 4,
        }
    }

    fn state(&self) -> &'static str {
        match self.rollout {
            Some(rollout) => rollout.state.as_str(),
            None if self.is_done => DONE,
            None => RolloutState::Pending.as_str(),
        }
    }
}

/// The pools of a plan that is carried out.
pub(super) fn pools(items: &[Item], cluster: &Cluster, now: Timestamp) -> Vec<PoolProgress> {
    let members = Members::of(cluster);
    waits(items).into_iter().map(|(name, wait)| members.progress(name, &wait, now)).collect()
}

fn waits(items: &[Item]) -> BTreeMap<&str, Wait<'_>> {
    let mut found: BTreeMap<&str, Wait<'_>> = BTreeMap::new();
    for item in items.iter().filter(|item| item.state != ItemState::Completed) {
        let planned = item.impact_detail.iter().filter(|detail| detail.reboot).flat_map(|detail| &detail.pools);
        let planned: BTreeMap<&str, Option<i32>> = planned.map(|pool| (pool.name.as_str(), pool.nodes)).collect();
        for name in planned.keys().copied().chain(item.rollout.iter().map(|known| known.pool.as_str())) {
            let rollout = item.rollout.iter().find(|known| known.pool == name);
            // Of pools that the item has, those that are waited for are listed.
            let is_done = rollout.is_none() && !item.rollout.is_empty();
            let begin = item.waiting_since.as_ref().map(|time| time.0);
            let wait = Wait { rollout, is_done, planned: planned.get(name).copied().flatten(), begin };
            match found.get_mut(name) {
                Some(known) if known.rank() <= wait.rank() => {}
                Some(known) => *known = wait,
                None => drop(found.insert(name, wait)),
            }
        }
    }
    found
}

/// Which node is in which pool, and what is reported about it.
struct Members<'a> {
    pools: HashMap<&'a str, &'a MachinePool>,
    nodes: BTreeMap<String, Vec<&'a Node>>,
    reports: HashMap<&'a str, &'a NodeReport>,
}

impl<'a> Members<'a> {
    fn of(cluster: &'a Cluster) -> Self {
        let (mut nodes, _) = members(cluster.pools.items(), cluster.nodes.items());
        nodes
            .values_mut()
            .for_each(|nodes| nodes.sort_by(|one, other| one.rollout_order().cmp(&other.rollout_order())));
        Members {
            pools: cluster.pools.items().iter().map(|pool| (pool.name.as_str(), pool)).collect(),
            nodes,
            reports: cluster.reports.items().iter().map(|report| (report.node.as_str(), report)).collect(),
        }
    }

    fn progress(&self, name: &str, wait: &Wait<'_>, now: Timestamp) -> PoolProgress {
        let state = wait.state();
        let has_begun = state != RolloutState::Pending.as_str();
        let nodes = self.nodes(name, has_begun);
        let counted = |count: Option<i32>| count.and_then(|count| usize::try_from(count).ok());
        let told = wait.rollout;
        let (updated, total) = match nodes.as_slice() {
            [] if told.is_none() => (counted(wait.planned), counted(wait.planned)),
            [] => (told.and_then(|told| counted(told.updated)), told.and_then(|told| counted(told.total))),
            nodes => (Some(nodes.iter().filter(|node| is_updated(node)).count()), Some(nodes.len())),
        };
        let updated = if has_begun { updated } else { total.map(|_| 0) };
        let mut progress = PoolProgress {
            name: name.to_owned(),
            state,
            updated,
            total,
            since: told.and_then(|told| told.since.as_ref()).map(|time| time.0),
            last_progress: told.and_then(|told| told.last_progress.as_ref()).map(|time| time.0),
            cause: told.and_then(|told| told.cause.clone()),
            remaining: Estimate::UNKNOWN,
            nodes,
        };
        progress.remaining = self.remaining(&progress, wait.begin, now);
        progress
    }

    fn nodes(&self, pool: &str, has_begun: bool) -> Vec<NodeProgress> {
        let target = self.pools.get(pool).and_then(|pool| pool.target.as_deref());
        let known = self.nodes.get(pool).map_or(&[][..], Vec::as_slice);
        let report = |name: &str| self.reports.get(name).copied();
        let mut found: Vec<NodeProgress> =
            known.iter().map(|node| state(Some(node), report(&node.name), target).named(&node.name)).collect();
        if known.is_empty() {
            let reported = self.reports.values().filter(|report| report.pool.as_deref() == Some(pool));
            found.extend(reported.map(|report| state(None, Some(report), target).named(&report.node)));
            found.sort_by(|one, other| one.name.cmp(&other.name));
        }
        // Until the pool has the change, its nodes run what was before.
        for node in found.iter_mut().filter(|node| !has_begun && is_updated(node)) {
            *node = State::new(NodePhase::Waiting, None).named(&node.name);
        }
        found.sort_by_key(|node| node.phase);
        found
    }

    fn remaining(&self, pool: &PoolProgress, begin: Option<Timestamp>, now: Timestamp) -> Estimate {
        let (Some(begin), Some(updated), Some(total)) = (begin, pool.updated, pool.total) else {
            return if pool.is_done() { Estimate::NONE } else { Estimate::UNKNOWN };
        };
        if pool.is_done() {
            return Estimate::NONE;
        }
        if pool.state != RolloutState::Updating.as_str() {
            return Estimate::UNKNOWN;
        }
        let at_a_time = self.pools.get(pool.name.as_str()).map_or(1, |known| known.max_unavailable(total));
        let left = total.saturating_sub(updated);
        let times: Option<Vec<Timestamp>> =
            pool.nodes.iter().filter(|node| is_updated(node)).map(|node| node.since).collect();
        let pace = match (times.filter(|times| !times.is_empty()), pool.last_progress) {
            (Some(done), _) => Pace { begin, done, left, at_a_time },
            (None, Some(last)) => Pace::even(begin, last, updated, left, at_a_time),
            (None, None) => return Estimate::UNKNOWN,
        };
        pace.remaining(now)
    }
}

fn is_updated(node: &NodeProgress) -> bool {
    node.phase == NodePhase::Updated
}

#[cfg(test)]
mod tests {
    use api::virt_platform_config::{ImpactDetail, PoolImpact};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;
    use crate::blast_radius::Reading;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn node(name: &str, current: &str, desired: &str, state: &str) -> Node {
        let annotations = json!({
            "machineconfiguration.openshift.io/currentConfig": current,
            "machineconfiguration.openshift.io/desiredConfig": desired,
            "machineconfiguration.openshift.io/state": state,
            "machineconfiguration.openshift.io/reason": "disk full",
        });
        Node::of(&json!({
            "metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}, "annotations": annotations},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }))
        .unwrap()
    }

    fn cluster(nodes: Vec<Node>) -> Cluster {
        let selector = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
        let spec = json!({"nodeSelector": selector, "configuration": {"name": "new"}});
        let pool = MachinePool::of(&json!({"metadata": {"name": "worker"}, "spec": spec})).unwrap();
        Cluster { nodes: Reading::Read(nodes), pools: Reading::Read(vec![pool]), reports: Reading::NotServed }
    }

    fn item(state: RolloutState) -> Item {
        let pool = |name: &str| PoolImpact { name: name.into(), nodes: Some(2), ..PoolImpact::default() };
        let rollout = PoolRollout {
            pool: "worker".into(),
            state,
            updated: Some(1),
            total: Some(3),
            last_progress: Some(Time(at(100))),
            ..PoolRollout::default()
        };
        Item {
            state: ItemState::InProgress,
            impact_detail: Some(ImpactDetail { reboot: true, pools: vec![pool("infra"), pool("worker")] }),
            waiting_since: Some(Time(at(0))),
            rollout: vec![rollout],
            ..Item::default()
        }
    }

    /// `pool State 1/3 3m–4m`
    fn of(items: &[Item]) -> Vec<String> {
        let number = |count: Option<usize>| count.map_or("-".into(), |count| count.to_string());
        let told = |PoolProgress { name, state, updated, total, remaining, .. }: PoolProgress| {
            format!("{name} {state} {}/{} {}", number(updated), number(total), remaining.text())
        };
        pools(items, &Cluster::default(), at(100)).into_iter().map(told).collect()
    }

    #[test]
    fn nodes_are_counted_and_listed_with_the_worst_first() {
        let nodes = vec![
            node("a", "new", "new", "Done"),
            node("b", "old", "old", "Done"),
            node("c", "old", "new", "Degraded"),
            node("d", "old", "new", "Rebooting"),
        ];
        let found = pools(&[item(RolloutState::Degraded)], &cluster(nodes), at(100));
        let names: Vec<_> = found[1].nodes.iter().map(|node| (node.name.as_str(), node.phase)).collect();
        use NodePhase::*;
        assert_eq!(names, [("c", Degraded), ("d", Rebooting), ("b", Waiting), ("a", Updated)]);
        assert_eq!((found[1].updated, found[1].total), (Some(1), Some(4)));
        assert_eq!(found[1].nodes[0].reason.as_deref(), Some("disk full"));
        assert!(found[1].is_in_trouble() && found[0].is_done(), "{found:#?}");
    }

    #[test]
    fn without_nodes_the_status_of_the_configuration_tells_how_far_a_pool_is() {
        for (state, expected) in [
            (RolloutState::Updating, "worker Updating 1/3 3m–4m"),
            (RolloutState::Paused, "worker Paused 1/3 ?"),
            (RolloutState::Pending, "worker Pending 0/3 ?"),
        ] {
            assert_eq!(of(&[item(state)]), ["infra Updated 2/2 up to 0s", expected]);
        }
    }

    #[test]
    fn nodes_of_a_pool_that_has_not_begun_wait_whatever_they_run() {
        let nodes = vec![node("a", "new", "new", "Done"), node("b", "new", "new", "Done")];
        let found = pools(&[item(RolloutState::Pending)], &cluster(nodes), at(100));
        assert!(found[1].nodes.iter().all(|node| node.phase == NodePhase::Waiting));
        assert_eq!(found[1].updated, Some(0));
    }

    #[test]
    fn of_several_items_the_one_furthest_from_its_end_counts() {
        let pending = Item { state: ItemState::Pending, rollout: Vec::new(), ..item(RolloutState::Updating) };
        let done = Item { state: ItemState::Completed, ..item(RolloutState::Degraded) };
        for (case, items, expected) in [
            ("one that is not applied", vec![item(RolloutState::Updating), pending.clone()], "worker Pending 0/2 ?"),
            ("in any order", vec![pending, item(RolloutState::Updating)], "worker Pending 0/2 ?"),
            ("trouble", vec![item(RolloutState::Updating), item(RolloutState::NoProgress)], "worker NoProgress 1/3 ?"),
            ("and none that is done", vec![done, item(RolloutState::Updating)], "worker Updating 1/3 3m–4m"),
        ] {
            assert_eq!(of(&items)[1], expected, "{case}");
        }
        assert_eq!(of(&[]), [""; 0]);
    }
}
