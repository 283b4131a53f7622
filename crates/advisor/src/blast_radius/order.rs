//! The order in which a pool takes its nodes, and how many of them at a time.

use super::{MachinePool, Node};

/// The nodes of a pool that a plan reboots.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order<'a> {
    /// In the order in which they are taken.
    pub(super) candidates: Vec<&'a Node>,
    /// Out of service: the pool takes them when they are back.
    pub(super) held_back: Vec<&'a Node>,
    /// How many the rollout has behind it already.
    pub(super) done: usize,
    pub(super) max_unavailable: usize,
    pub(super) is_paused: bool,
    /// How many are taken at a time as things stand. None are if others than the pool keep too many nodes out of service.
    pub(super) at_a_time: usize,
    /// The nodes that use up places: others than the pool keep them out of service, or their update fails.
    pub(super) out_of_service: Vec<&'a Node>,
}

impl<'a> Order<'a> {
    /// `begun` says whether the pool is on its way to the plan already. `last` is a node that the operator leaves for the end.
    pub(super) fn of(pool: &MachinePool, nodes: &[&'a Node], begun: bool, last: Option<&str>) -> Self {
        let target = pool.target.as_deref().filter(|_| begun);
        let is_done = |node: &&Node| target.is_some_and(|target| node.is_done_with(target));
        // The operator itself has cordoned such a node, and it comes back by itself.
        let is_ours = |node: &&Node| target.is_some_and(|target| node.is_taken_for(target)) && !is_done(node);
        let (done, mut left): (Vec<&Node>, Vec<&Node>) = nodes.iter().copied().partition(is_done);
        left.sort_by(|one, other| {
            // What is being updated comes before everything else.
            let turn = |node: &&Node| (!is_ours(node), last == Some(node.name.as_str()));
            turn(one).cmp(&turn(other)).then_with(|| one.rollout_order().cmp(&other.rollout_order()))
        });
        let is_held_back = |node: &&Node| node.held_back().is_some() && !is_ours(node);
        let (held_back, candidates) = left.into_iter().partition(is_held_back);
        let is_unavailable = |node: &&Node| node.is_unavailable() && !is_ours(node);
        let unavailable = nodes.iter().filter(|node| is_unavailable(node)).count();
        let failing = nodes.iter().filter(|node| node.is_failing()).count();
        let out_of_service = nodes.iter().copied().filter(|node| is_unavailable(node) || node.is_failing()).collect();
        let max_unavailable = pool.max_unavailable(nodes.len());
        let at_a_time = max_unavailable.saturating_sub(unavailable + failing);
        let (done, is_paused) = (done.len(), pool.is_paused);
        Order { candidates, held_back, done, max_unavailable, is_paused, at_a_time, out_of_service }
    }

    /// The number of the wave in which a candidate is taken, from 0 on.
    pub(super) fn wave(&self, position: usize) -> usize {
        position / self.at_a_time.max(1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(name: &str, zone: &str, status: &Value) -> Node {
        let labels = json!({"topology.kubernetes.io/zone": zone});
        let config = |field: &str| status[field].as_str().unwrap_or("old").to_owned();
        Node::of(&json!({
            "metadata": {"name": name, "labels": labels, "annotations": {
                "machineconfiguration.openshift.io/currentConfig": config("current"),
                "machineconfiguration.openshift.io/desiredConfig": config("desired"),
                "machineconfiguration.openshift.io/state": status["state"].as_str().unwrap_or("Done"),
            }},
            "spec": {"unschedulable": status["cordoned"]},
            "status": {"conditions": [{"type": "Ready", "status": status["ready"].as_str().unwrap_or("True")}]},
        }))
        .unwrap()
    }

    fn pool(max_unavailable: u64) -> MachinePool {
        let spec = json!({"maxUnavailable": max_unavailable, "configuration": {"name": "new"}});
        MachinePool::of(&json!({"metadata": {"name": "worker"}, "spec": spec})).unwrap()
    }

    /// Candidates, nodes held back, nodes that are done, how many at a time.
    fn order(nodes: &[Node], max_unavailable: u64, begun: bool) -> (Vec<&str>, Vec<&str>, usize, usize) {
        let members: Vec<&Node> = nodes.iter().collect();
        let order = Order::of(&pool(max_unavailable), &members, begun, None);
        let names = |nodes: &[&Node]| -> Vec<String> { nodes.iter().map(|node| node.name.clone()).collect() };
        let (candidates, held_back) = (names(&order.candidates), names(&order.held_back));
        let find = |names: Vec<String>| -> Vec<&str> {
            names
                .iter()
                .filter_map(|name| nodes.iter().find(|node| node.name == *name))
                .map(|n| n.name.as_str())
                .collect()
        };
        (find(candidates), find(held_back), order.done, order.at_a_time)
    }

    #[test]
    fn nodes_out_of_service_wait_and_use_up_what_may_be_unavailable() {
        let at_rest = json!({});
        let nodes = [
            node("c", "2", &at_rest),
            node("b", "1", &json!({"cordoned": true})),
            node("a", "1", &at_rest),
            node("d", "3", &at_rest),
        ];
        assert_eq!(order(&nodes, 1, false), (vec!["a", "c", "d"], vec!["b"], 0, 0), "the pool stands still");
        assert_eq!(order(&nodes, 2, false), (vec!["a", "c", "d"], vec!["b"], 0, 1));
        let nodes = [node("a", "1", &json!({"ready": "False"})), node("b", "1", &at_rest)];
        assert_eq!(order(&nodes, 2, false), (vec!["b"], vec!["a"], 0, 1));
    }

    #[test]
    fn a_node_that_failed_uses_up_a_place_too() {
        let failed = json!({"current": "old", "desired": "new", "state": "Degraded"});
        let nodes = [node("a", "1", &failed), node("b", "1", &json!({})), node("c", "1", &json!({}))];
        assert_eq!(order(&nodes, 1, false).3, 0);
        assert_eq!(order(&nodes, 2, false).3, 1);
    }

    #[test]
    fn a_rollout_that_has_begun_leaves_out_what_is_done_and_its_own_nodes_count_for_nothing() {
        let nodes = [
            node("a", "1", &json!({"current": "new", "desired": "new"})),
            node("b", "1", &json!({"current": "old", "desired": "new", "state": "Working", "cordoned": true})),
            node("c", "2", &json!({})),
        ];
        assert_eq!(order(&nodes, 1, true), (vec!["b", "c"], vec![], 1, 1));
        let later = [node("a", "1", &json!({})), node("b", "2", &json!({"desired": "new", "state": "Working"}))];
        assert_eq!(order(&later, 1, true).0, ["b", "a"], "what is being updated is first, whatever its zone");
        assert_eq!(order(&nodes, 1, false).2, 0, "before, what the pool runs says nothing about the plan");
    }

    #[test]
    fn waves_have_as_many_nodes_as_may_be_unavailable() {
        let nodes: Vec<Node> = (0..5).map(|number| node(&format!("n{number}"), "1", &json!({}))).collect();
        let members: Vec<&Node> = nodes.iter().collect();
        let order = Order::of(&pool(2), &members, false, None);
        assert_eq!((0..5).map(|position| order.wave(position)).collect::<Vec<_>>(), [0, 0, 1, 1, 2]);
        let last = Order::of(&pool(2), &members, false, Some("n0"));
        assert_eq!(last.candidates.last().unwrap().name, "n0", "the node that the operator is on");
    }
}
