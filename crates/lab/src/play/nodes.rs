//! What a scenario does to nodes: they are closed, drained, lost, and come back.
//!
//! A node is lost as real ones are: it is deleted, and the VM controller starts its VMs elsewhere. One that is drained is
//! closed and its VMs are evicted, again in every step as long as some are left, as `kubectl drain` does.

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
use serde_json::json;
use sim::{ClusterModel, NodeEvent};

use super::doing;
use crate::{
    kwok, launcher,
    up::{Error, by_number},
};

/// How many VMs are evicted at a time.
const AT_ONCE: usize = 16;

/// Something to do to a node, which is given by its name.
#[derive(Debug, Clone, PartialEq)]
pub enum Deed {
    /// No new pods.
    Close(String),
    Open(String),
    /// Evict the VMs that are left on it.
    Empty(String),
    Lose(String),
    /// Make it, unless it is there.
    Bring(Box<Node>),
}

impl fmt::Display for Deed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deed::Close(node) => write!(formatter, "node {node} is closed"),
            Deed::Open(node) => write!(formatter, "node {node} is open"),
            Deed::Empty(node) => write!(formatter, "VMs leave node {node}"),
            Deed::Lose(node) => write!(formatter, "node {node} is lost"),
            Deed::Bring(node) => write!(formatter, "node {} is there", node.name_any()),
        }
    }
}

/// The nodes of a world that is played on a lab, and what is still to happen to them.
#[derive(Debug)]
pub struct Nodes<'w> {
    world: &'w ClusterModel,
    /// Those that are there from the beginning, as they come.
    rooms: Vec<Node>,
    /// In order of time.
    to_come: VecDeque<(u64, NodeEvent)>,
    draining: BTreeSet<String>,
    closed: BTreeSet<String>,
    lost: BTreeSet<u32>,
}

impl<'w> Nodes<'w> {
    /// On the nodes of a running lab.
    pub async fn of(world: &'w ClusterModel, client: &Client) -> Result<Self, Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let mut found = nodes.list(&ListParams::default()).await.map_err(doing("listing nodes".into()))?.items;
        found.sort_by_key(|node| by_number(&node.name_any()));
        Nodes::new(world, &found)
    }

    /// The world's first node is the first of these, and so on. Nodes that join are called what the scenario calls them.
    fn new(world: &'w ClusterModel, nodes: &[Node]) -> Result<Self, Error> {
        let to_come: VecDeque<_> = world.node_events().into();
        let joining = to_come.iter().filter(|(_, happening)| matches!(happening, NodeEvent::Join(_))).count();
        let present = world.node_count() - joining;
        if !to_come.is_empty() && nodes.len() < present {
            return Err(Error::Asset(format!(
                "scenario {} tells what happens to {present} nodes and the lab has {}: start it with --nodes {present}",
                world.name(),
                nodes.len()
            )));
        }
        let rooms = nodes.iter().take(present).map(fresh).collect();
        Ok(Nodes { world, rooms, to_come, draining: BTreeSet::new(), closed: BTreeSet::new(), lost: BTreeSet::new() })
    }

    /// Whether anything is still to happen.
    pub fn is_eventful(&self) -> bool {
        !self.to_come.is_empty() || !self.draining.is_empty()
    }

    /// What is to be done at a step.
    pub fn due(&mut self, step: u64) -> Vec<Deed> {
        let mut due = Vec::new();
        while let Some((_, happening)) = self.to_come.pop_front_if(|(at, _)| *at <= step) {
            match happening {
                NodeEvent::Cordon(node) => due.push(self.close(node)),
                NodeEvent::Drain(node) => {
                    due.push(self.close(node));
                    self.draining.insert(self.name(node));
                }
                NodeEvent::Uncordon(node) => {
                    self.draining.remove(&self.name(node));
                    self.closed.remove(&self.name(node));
                    due.push(Deed::Open(self.name(node)));
                }
                NodeEvent::Fail(node) => {
                    self.draining.remove(&self.name(node));
                    self.closed.remove(&self.name(node));
                    self.lost.insert(node);
                    due.push(Deed::Lose(self.name(node)));
                }
                NodeEvent::Recover(node) | NodeEvent::Join(node) => {
                    self.lost.remove(&node);
                    due.push(self.bring(node));
                }
            }
        }
        due.extend(self.draining.iter().cloned().map(Deed::Empty));
        due
    }

    /// What it takes to have all nodes open and there.
    pub fn amends(&mut self) -> Vec<Deed> {
        self.to_come.clear();
        self.draining.clear();
        let open = std::mem::take(&mut self.closed).into_iter().map(Deed::Open);
        let back = std::mem::take(&mut self.lost).into_iter().map(|node| self.bring(node));
        open.chain(back).collect()
    }

    /// The nodes that are closed, and those that are lost.
    pub fn left_behind(&self) -> [Vec<String>; 2] {
        [self.closed.iter().cloned().collect(), self.lost.iter().map(|node| self.name(*node)).collect()]
    }

    fn close(&mut self, node: u32) -> Deed {
        self.closed.insert(self.name(node));
        Deed::Close(self.name(node))
    }

    fn bring(&self, node: u32) -> Deed {
        let (cores, memory_bytes) = self.world.node_size(node);
        let made = || kwok::node(self.world.node_name(node), cores.ceil() as u32, memory_bytes);
        Deed::Bring(Box::new(self.rooms.get(node as usize).cloned().unwrap_or_else(made)))
    }

    fn name(&self, node: u32) -> String {
        let room = self.rooms.get(node as usize).map(ResourceExt::name_any);
        room.unwrap_or_else(|| self.world.node_name(node).to_owned())
    }
}

impl Deed {
    /// Returns whether anything was to be done.
    pub async fn perform(&self, client: &Client) -> Result<bool, Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        match self {
            Deed::Close(node) => set_closed(&nodes, node, true).await,
            Deed::Open(node) => set_closed(&nodes, node, false).await,
            Deed::Empty(node) => empty(client, node).await,
            Deed::Lose(node) => {
                let deleted = nodes.delete(node, &DeleteParams::default()).await.map(drop);
                unless(404, deleted).map_err(doing(format!("deleting Node {node}")))
            }
            Deed::Bring(node) => {
                let created = nodes.create(&PostParams::default(), node).await.map(drop);
                unless(409, created).map_err(doing(format!("creating Node {}", node.name_any())))
            }
        }
    }
}

/// The same node, when it has just come.
fn fresh(node: &Node) -> Node {
    let ObjectMeta { name, labels, annotations, .. } = node.metadata.clone();
    let size = node.status.clone().unwrap_or_default();
    Node {
        metadata: ObjectMeta { name, labels, annotations, ..ObjectMeta::default() },
        status: Some(NodeStatus { capacity: size.capacity, allocatable: size.allocatable, ..NodeStatus::default() }),
        ..Node::default()
    }
}

/// Whether it was done; `code` says that it was so already.
fn unless(code: u16, answer: kube::Result<()>) -> kube::Result<bool> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == code => Ok(false),
        answer => answer.map(|()| true),
    }
}

async fn set_closed(nodes: &Api<Node>, node: &str, is_closed: bool) -> Result<bool, Error> {
    let patch = Patch::Merge(json!({"spec": {"unschedulable": is_closed.then_some(true)}}));
    let patched = nodes.patch_metadata(node, &PatchParams::default(), &patch).await.map(drop);
    unless(404, patched).map_err(doing(format!("closing or opening Node {node}")))
}

/// Asks for the eviction of every VM on a node. The webhook refuses that, and the VMs move.
async fn empty(client: &Client, node: &str) -> Result<bool, Error> {
    let all: Api<Pod> = Api::all(client.clone());
    let labels = format!("{}={}", launcher::APP.0, launcher::APP.1);
    let here = ListParams::default().fields(&format!("spec.nodeName={node}")).labels(&labels);
    let pods = all.list_metadata(&here).await.map_err(doing(format!("listing the pods on Node {node}")))?;
    let is_staying = |pod: &&PartialObjectMeta<Pod>| !pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS);
    let ask = async |pod: &PartialObjectMeta<Pod>| {
        let pods: Api<Pod> = Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        match pods.evict(&pod.name_any(), &EvictParams::default()).await {
            // It moves now, or it cannot move yet; or it is gone.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 429) => Ok(()),
            answer => answer.map(drop).map_err(doing(format!("evicting Pod {}", pod.name_any()))),
        }
    };
    let staying: Vec<_> = pods.iter().filter(is_staying).collect();
    stream::iter(&staying).map(|pod| ask(pod)).buffer_unordered(AT_ONCE).try_collect::<()>().await?;
    Ok(!staying.is_empty())
}

#[cfg(test)]
mod tests {
    use sim::scenario::parse;

    use super::*;

    const TEXT: &str = "{name: t, step: 10s, duration: 100s, nodes: [{name: a, count: 2}, {name: c, cordoned: true}], vms: [{name: v}],
        events: [{at: 15s, drain: a-1}, {at: 30s, uncordon: a-1}, {at: 30s, fail: a-2}, {at: 50s, recover: a-2},
        {at: 50s, add: {name: d, cores: 8, memory: 4Gi}}, {at: 60s, cordon: d}]}";

    fn rooms(count: usize) -> Vec<Node> {
        (1..=count).map(|number| kwok::node(&format!("kwok-node-{number}"), 16, 1 << 30)).collect()
    }

    fn words(deeds: Vec<Deed>) -> Vec<String> {
        deeds.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_happens_to_a_node_happens_to_the_one_with_its_number() {
        let world = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let mut nodes = Nodes::new(&world, &rooms(5)).unwrap();
        assert_eq!(words(nodes.due(0)), ["node kwok-node-3 is closed"]);
        assert_eq!(words(nodes.due(1)), [""; 0]);
        assert_eq!(words(nodes.due(2)), ["node kwok-node-1 is closed", "VMs leave node kwok-node-1"]);
        assert_eq!(words(nodes.due(3)), ["node kwok-node-1 is open", "node kwok-node-2 is lost"]);
        assert_eq!(nodes.left_behind(), [["kwok-node-3"], ["kwok-node-2"]]);
        assert!(nodes.is_eventful());
        // Steps may be missed, and nothing that was to happen is.
        let late = nodes.due(9);
        assert_eq!(words(late.clone()), ["node kwok-node-2 is there", "node d is there", "node d is closed"]);
        let brought = [Deed::Bring(Box::new(rooms(2).remove(1))), Deed::Bring(Box::new(kwok::node("d", 8, 4 << 30)))];
        assert_eq!(late[..2], brought, "the lab's own with the size that they had, new ones as the scenario says");
        assert!(!nodes.is_eventful());
    }

    #[test]
    fn a_node_is_drained_until_it_is_opened_and_amends_put_back_what_is_not_as_it_was() {
        let world = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let mut nodes = Nodes::new(&world, &rooms(3)).unwrap();
        nodes.due(2);
        assert_eq!(words(nodes.due(2)), ["VMs leave node kwok-node-1"]);
        assert_eq!(words(nodes.amends()), ["node kwok-node-1 is open", "node kwok-node-3 is open"]);
        assert!(!nodes.is_eventful());
        let mut nodes = Nodes::new(&world, &rooms(3)).unwrap();
        nodes.due(3);
        assert_eq!(words(nodes.amends()), ["node kwok-node-3 is open", "node kwok-node-2 is there"]);
    }

    #[test]
    fn a_lab_with_too_few_nodes_is_told_what_it_needs() {
        let world = ClusterModel::new(&parse(TEXT).unwrap()[0]).unwrap();
        let problem = Nodes::new(&world, &rooms(2)).unwrap_err().to_string();
        assert_eq!(problem, "scenario t tells what happens to 3 nodes and the lab has 2: start it with --nodes 3");
        let quiet = "{name: t, nodes: [{name: a, count: 9}], vms: [{name: v}]}";
        let quiet = ClusterModel::new(&parse(quiet).unwrap()[0]).unwrap();
        assert!(!Nodes::new(&quiet, &rooms(2)).unwrap().is_eventful(), "nothing happens to nodes that are not there");
    }

    #[test]
    fn a_node_comes_back_with_its_size_and_labels_and_without_its_past() {
        let mut node = kwok::node("n", 32, 128 << 30);
        let as_made = node.clone();
        node.metadata.uid = Some("u".into());
        node.metadata.resource_version = Some("7".into());
        node.spec = Some(Default::default());
        assert_eq!(fresh(&node), as_made);
    }
}
