//! What happens to the nodes of a scenario: they are cordoned, drained, fail, and come back.
//! A node that fails is deleted, and the VM controller starts its VMs on other nodes. A node that is drained is cordoned, and
//! its VMs are evicted in every step as long as some are left, as `kubectl drain` does.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Node, NodeStatus, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, EvictParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
};
use kube_io::Class;
use serde_json::json;
use sim::ClusterModel;

use super::CONCURRENCY;
use crate::{
    Error,
    error::Context,
    kwok::{self, by_number},
    launcher,
};

/// What is done to a node of the lab, which is given by its name.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeAction {
    Cordon(String),
    Uncordon(String),
    /// The VMs that are left on the node are evicted.
    Evict(String),
    Fail(String),
    /// The node is created, unless it exists.
    Add(Box<Node>),
}

impl fmt::Display for NodeAction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeAction::Cordon(node) => write!(formatter, "node {node} is closed"),
            NodeAction::Uncordon(node) => write!(formatter, "node {node} is open"),
            NodeAction::Evict(node) => write!(formatter, "VMs leave node {node}"),
            NodeAction::Fail(node) => write!(formatter, "node {node} is lost"),
            NodeAction::Add(node) => write!(formatter, "node {} is there", node.name_any()),
        }
    }
}

/// The nodes of a cluster model that is played on a lab, and the events that are still to come.
#[derive(Debug)]
pub struct NodeSchedule<'w> {
    model: &'w ClusterModel,
    /// The nodes that exist from the beginning, as they were created.
    existing: Vec<Node>,
    /// By time.
    to_come: VecDeque<(u64, sim::NodeEvent)>,
    draining: BTreeSet<String>,
    cordoned: BTreeSet<String>,
    failed: BTreeSet<u32>,
}

impl<'w> NodeSchedule<'w> {
    pub async fn of(model: &'w ClusterModel, client: &Client) -> Result<Self, Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut found = nodes.list(&ListParams::default()).await.context(|| "listing nodes".into())?.items;
        found.sort_by_key(|node| by_number(&node.name_any()));
        NodeSchedule::new(model, &found)
    }

    /// The first node of the model is the first of these, and so on. Nodes that join keep the name in the scenario.
    fn new(model: &'w ClusterModel, nodes: &[Node]) -> Result<Self, Error> {
        let to_come: VecDeque<_> = model.node_events().into();
        let joining = to_come.iter().filter(|(_, event)| matches!(event, sim::NodeEvent::Join(_))).count();
        let present = model.node_count() - joining;
        if !to_come.is_empty() && nodes.len() < present {
            return Err(Error::Asset(format!(
                "scenario {} tells what happens to {present} nodes and the lab has {}: start it with --nodes {present}",
                model.name(),
                nodes.len()
            )));
        }
        let existing = nodes.iter().take(present).map(as_created).collect();
        Ok(NodeSchedule {
            model,
            existing,
            to_come,
            draining: BTreeSet::new(),
            cordoned: BTreeSet::new(),
            failed: BTreeSet::new(),
        })
    }

    /// Whether any event is still to come.
    pub fn is_eventful(&self) -> bool {
        !self.to_come.is_empty() || !self.draining.is_empty()
    }

    /// The events up to a step. Each is returned once, except evictions.
    pub fn due(&mut self, step: u64) -> Vec<NodeAction> {
        let mut due = Vec::new();
        while let Some((_, event)) = self.to_come.pop_front_if(|(at, _)| *at <= step) {
            match event {
                sim::NodeEvent::Cordon(node) => due.push(self.cordon(node)),
                sim::NodeEvent::Drain(node) => {
                    due.push(self.cordon(node));
                    self.draining.insert(self.name(node));
                }
                sim::NodeEvent::Uncordon(node) => {
                    self.draining.remove(&self.name(node));
                    self.cordoned.remove(&self.name(node));
                    due.push(NodeAction::Uncordon(self.name(node)));
                }
                sim::NodeEvent::Fail(node) => {
                    self.draining.remove(&self.name(node));
                    self.cordoned.remove(&self.name(node));
                    self.failed.insert(node);
                    due.push(NodeAction::Fail(self.name(node)));
                }
                sim::NodeEvent::Recover(node) | sim::NodeEvent::Join(node) => {
                    self.failed.remove(&node);
                    due.push(self.add(node));
                }
            }
        }
        due.extend(self.draining.iter().cloned().map(NodeAction::Evict));
        due
    }

    /// Drops the events to come. Returns those that make all nodes exist and take pods again.
    pub fn restore(&mut self) -> Vec<NodeAction> {
        self.to_come.clear();
        self.draining.clear();
        let open = std::mem::take(&mut self.cordoned).into_iter().map(NodeAction::Uncordon);
        let back = std::mem::take(&mut self.failed).into_iter().map(|node| self.add(node));
        open.chain(back).collect()
    }

    /// The nodes that are cordoned, and those that have failed.
    pub fn left_behind(&self) -> [Vec<String>; 2] {
        [self.cordoned.iter().cloned().collect(), self.failed.iter().map(|node| self.name(*node)).collect()]
    }

    fn cordon(&mut self, node: u32) -> NodeAction {
        self.cordoned.insert(self.name(node));
        NodeAction::Cordon(self.name(node))
    }

    fn add(&self, node: u32) -> NodeAction {
        let (cores, memory_bytes) = self.model.node_size(node);
        let new = || kwok::node(self.model.node_name(node), cores.ceil() as u32, memory_bytes);
        NodeAction::Add(Box::new(self.existing.get(node as usize).cloned().unwrap_or_else(new)))
    }

    fn name(&self, node: u32) -> String {
        let existing = self.existing.get(node as usize).map(ResourceExt::name_any);
        existing.unwrap_or_else(|| self.model.node_name(node).to_owned())
    }
}

impl NodeAction {
    /// Returns whether the event changed anything.
    pub async fn apply(&self, client: &Client) -> Result<bool, Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        match self {
            NodeAction::Cordon(node) => set_cordoned(&nodes, node, true).await,
            NodeAction::Uncordon(node) => set_cordoned(&nodes, node, false).await,
            NodeAction::Evict(node) => evict(client, node).await,
            NodeAction::Fail(node) => {
                let deleted = nodes.delete(node, &DeleteParams::default()).await.map(drop);
                unless(Class::is_absent, deleted).context(|| format!("deleting Node {node}"))
            }
            NodeAction::Add(node) => {
                let created = nodes.create(&PostParams::default(), node).await.map(drop);
                unless(|class| *class == Class::Conflict, created)
                    .context(|| format!("creating Node {}", node.name_any()))
            }
        }
    }
}

/// The node as it was when it was created.
fn as_created(node: &Node) -> Node {
    let ObjectMeta { name, labels, annotations, .. } = node.metadata.clone();
    let size = node.status.clone().unwrap_or_default();
    Node {
        metadata: ObjectMeta { name, labels, annotations, ..ObjectMeta::default() },
        status: Some(NodeStatus { capacity: size.capacity, allocatable: size.allocatable, ..NodeStatus::default() }),
        ..Node::default()
    }
}

/// Whether the request changed anything. `is_done` tells errors that mean that nothing was to be changed.
fn unless(is_done: fn(&Class) -> bool, answer: kube::Result<()>) -> kube::Result<bool> {
    match answer {
        Err(error) if is_done(&Class::of(&error)) => Ok(false),
        answer => answer.map(|()| true),
    }
}

async fn set_cordoned(nodes: &Api<Node>, node: &str, is_cordoned: bool) -> Result<bool, Error> {
    let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned.then_some(true)}}));
    let patched = nodes.patch_metadata(node, &PatchParams::default(), &patch).await.map(drop);
    unless(Class::is_absent, patched).context(|| format!("closing or opening Node {node}"))
}

/// Requests the eviction of every VM on a node. The webhook denies the request, and the VM migrates.
async fn evict(client: &Client, node: &str) -> Result<bool, Error> {
    let all: Api<Pod> = Api::all(client.clone());
    let labels = format!("{}={}", launcher::APP.0, launcher::APP.1);
    let here = ListParams::default().fields(&format!("spec.nodeName={node}")).labels(&labels);
    let pods = all.list_metadata(&here).await.context(|| format!("listing the pods on Node {node}"))?;
    let is_staying = |pod: &&PartialObjectMeta<Pod>| !pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS);
    let evict = async |pod: &PartialObjectMeta<Pod>| {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        let evicted = pods.evict(&pod.name_any(), &EvictParams::default()).await.map(drop);
        // The pod is gone, or the VM migrates, or the next step asks again.
        let is_expected = |class: &Class| {
            class.is_absent() || matches!(class, Class::WebhookDenied | Class::PolicyDenied | Class::Busy)
        };
        unless(is_expected, evicted).map(drop).context(|| format!("evicting Pod {}", pod.name_any()))
    };
    let staying: Vec<_> = pods.iter().filter(is_staying).collect();
    stream::iter(&staying).map(|pod| evict(pod)).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    Ok(!staying.is_empty())
}

#[cfg(test)]
mod tests {
    use sim::scenario::parse;

    use super::*;

    const TEXT: &str = "{name: t, step: 10s, duration: 100s, nodes: [{name: a, count: 2}, {name: c, cordoned: true}], vms: [{name: v}],
        events: [{at: 15s, drain: a-1}, {at: 30s, uncordon: a-1}, {at: 30s, fail: a-2}, {at: 50s, recover: a-2},
        {at: 50s, add: {name: d, cores: 8, memory: 4Gi}}, {at: 60s, cordon: d}]}";

    fn existing(count: usize) -> Vec<Node> {
        (1..=count).map(|number| kwok::node(&format!("kwok-node-{number}"), 16, 1 << 30)).collect()
    }

    fn words(events: Vec<NodeAction>) -> Vec<String> {
        events.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_happens_to_a_node_happens_to_the_one_with_its_number() {
        let model = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let mut nodes = NodeSchedule::new(&model, &existing(5)).unwrap();
        assert_eq!(words(nodes.due(0)), ["node kwok-node-3 is closed"]);
        assert_eq!(words(nodes.due(1)), [""; 0]);
        assert_eq!(words(nodes.due(2)), ["node kwok-node-1 is closed", "VMs leave node kwok-node-1"]);
        assert_eq!(words(nodes.due(3)), ["node kwok-node-1 is open", "node kwok-node-2 is lost"]);
        assert_eq!(nodes.left_behind(), [["kwok-node-3"], ["kwok-node-2"]]);
        assert!(nodes.is_eventful());
        // Events of steps that were skipped are due as well.
        let late = nodes.due(9);
        assert_eq!(words(late.clone()), ["node kwok-node-2 is there", "node d is there", "node d is closed"]);
        let added =
            [NodeAction::Add(Box::new(existing(2).remove(1))), NodeAction::Add(Box::new(kwok::node("d", 8, 4 << 30)))];
        assert_eq!(late[..2], added, "the lab's own with the size that they had, new ones as the scenario says");
        assert!(!nodes.is_eventful());
    }

    #[test]
    fn a_node_is_drained_until_it_is_opened_and_restoring_puts_back_what_has_changed() {
        let model = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let mut nodes = NodeSchedule::new(&model, &existing(3)).unwrap();
        nodes.due(2);
        assert_eq!(words(nodes.due(2)), ["VMs leave node kwok-node-1"]);
        assert_eq!(words(nodes.restore()), ["node kwok-node-1 is open", "node kwok-node-3 is open"]);
        assert!(!nodes.is_eventful());
        let mut nodes = NodeSchedule::new(&model, &existing(3)).unwrap();
        nodes.due(3);
        assert_eq!(words(nodes.restore()), ["node kwok-node-3 is open", "node kwok-node-2 is there"]);
    }

    #[test]
    fn a_lab_with_too_few_nodes_is_told_what_it_needs() {
        let model = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let problem = NodeSchedule::new(&model, &existing(2)).unwrap_err().to_string();
        assert_eq!(problem, "scenario t tells what happens to 3 nodes and the lab has 2: start it with --nodes 3");
        let quiet = "{name: t, nodes: [{name: a, count: 9}], vms: [{name: v}]}";
        let quiet = ClusterModel::new(&parse(quiet).unwrap()[0]).unwrap();
        assert!(
            !NodeSchedule::new(&quiet, &existing(2)).unwrap().is_eventful(),
            "nothing happens to nodes that are not there"
        );
    }

    #[test]
    fn a_node_comes_back_with_its_size_and_labels_only() {
        let mut node = kwok::node("n", 32, 128 << 30);
        let original = node.clone();
        node.metadata.uid = Some("u".into());
        node.metadata.resource_version = Some("7".into());
        node.spec = Some(Default::default());
        assert_eq!(as_created(&node), original);
    }
}
