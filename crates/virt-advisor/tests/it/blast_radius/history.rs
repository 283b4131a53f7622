//! Which nodes were taken in which order, and which are done, from a watch.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::ListParams,
    runtime::{WatchStreamExt, watcher},
};
use standins::machine_config::Machine;
use testkit::eventually;
use tokio::task::JoinSet;

#[derive(Debug, Default)]
struct Updates {
    /// The config that each node had.
    before: BTreeMap<String, String>,
    /// The nodes that were told to run another one, in this order.
    taken: Vec<String>,
    /// The nodes that run it.
    done: BTreeSet<String>,
}

pub(super) struct History {
    updates: Arc<Mutex<Updates>>,
    _task: JoinSet<()>,
}

impl History {
    /// Returns when all nodes are known.
    pub(super) async fn start(client: &Client) -> History {
        let nodes: Api<Node> = Api::all(client.clone());
        let count = nodes.list(&ListParams::default()).await.unwrap().items.len();
        let updates: Arc<Mutex<Updates>> = Arc::default();
        let written = updates.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut events =
                std::pin::pin!(watcher(nodes, watcher::Config::default()).applied_objects().default_backoff());
            while let Some(event) = events.next().await {
                if let Ok(node) = event {
                    written.lock().unwrap().note(Machine::of(&node));
                }
            }
        });
        eventually("all nodes are watched", async || (updates.lock().unwrap().before.len() == count).then_some(()))
            .await;
        History { updates, _task: task }
    }

    /// How many nodes run the new config.
    pub(super) fn done(&self) -> usize {
        self.updates.lock().unwrap().done.len()
    }

    /// The nodes in the order in which they were taken.
    pub(super) fn order(&self) -> Vec<String> {
        self.updates.lock().unwrap().taken.clone()
    }
}

impl Updates {
    fn note(&mut self, machine: Machine<'_>) {
        let (name, config) = (machine.name(), machine.desired().unwrap_or_default());
        if self.before.entry(name.clone()).or_insert_with(|| config.to_owned()) == config {
            return;
        }
        if !self.taken.contains(&name) {
            self.taken.push(name.clone());
        }
        if machine.is_done() && machine.is_in_service() {
            self.done.insert(name);
        }
    }
}

/// The nodes that are being drained. None if a node is at another step of its update.
pub(super) async fn draining(client: &Client) -> Option<BTreeSet<String>> {
    let nodes: Api<Node> = Api::all(client.clone());
    let nodes = nodes.list(&ListParams::default()).await.unwrap();
    let begun = nodes.iter().map(Machine::of).filter(|machine| machine.current() != machine.desired());
    let (draining, others): (Vec<Machine<'_>>, Vec<Machine<'_>>) =
        begun.partition(|machine| machine.is_cordoned() && !machine.is_drained());
    others.is_empty().then(|| draining.into_iter().map(Machine::name).collect())
}
