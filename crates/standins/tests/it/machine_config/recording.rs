//! Records every event of a pool and its nodes, for assertions at the end of a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Resource, ResourceExt,
    api::ListParams,
    runtime::{WatchStreamExt, watcher},
};
use serde::de::DeserializeOwned;
use standins::machine_config::{Machine, MachineConfigPool};
use testkit::eventually;
use tokio::task::JoinSet;

use super::fixtures::{TestPool, describe, status};

type Events<K> = Arc<Mutex<Vec<K>>>;

/// Records until it is stopped.
pub(super) struct Recorder {
    nodes: Events<Node>,
    pools: Events<MachineConfigPool>,
    selector: String,
    _tasks: JoinSet<()>,
}

pub(super) struct Recording {
    pub(super) nodes: Vec<Node>,
    pub(super) pools: Vec<MachineConfigPool>,
}

impl Recorder {
    /// Returns when the current state is recorded.
    pub(super) async fn start(pool: &TestPool) -> Recorder {
        let selector = format!("node-role.kubernetes.io/{}", pool.name);
        let mut tasks = JoinSet::new();
        let nodes = record(&mut tasks, &pool.nodes, watcher::Config::default().labels(&selector));
        let by_name = format!("metadata.name={}", pool.name);
        let pools = record(&mut tasks, &pool.pools, watcher::Config::default().fields(&by_name));
        let recorder = Recorder { nodes, pools, selector, _tasks: tasks };
        recorder.catch_up(pool).await;
        recorder
    }

    /// Waits until everything that has happened is recorded.
    pub(super) async fn stop(self, pool: &TestPool) -> Recording {
        self.catch_up(pool).await;
        Recording { nodes: self.nodes.lock().unwrap().clone(), pools: self.pools.lock().unwrap().clone() }
    }

    pub(super) async fn catch_up(&self, pool: &TestPool) {
        let nodes = pool.nodes.list(&ListParams::default().labels(&self.selector)).await.unwrap();
        let now = nodes.iter().filter_map(ResourceExt::resource_version).chain(pool.get().await.resource_version());
        let now: BTreeSet<String> = now.collect();
        let is_seen = async || {
            let nodes =
                self.nodes.lock().unwrap().iter().filter_map(ResourceExt::resource_version).collect::<BTreeSet<_>>();
            let pools =
                self.pools.lock().unwrap().iter().filter_map(ResourceExt::resource_version).collect::<BTreeSet<_>>();
            now.iter().all(|version| nodes.contains(version) || pools.contains(version)).then_some(())
        };
        eventually(format!("seeing versions {now:?}"), is_seen).await;
    }
}

fn record<K>(tasks: &mut JoinSet<()>, api: &Api<K>, config: watcher::Config) -> Events<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let events = Events::default();
    let (api, written) = (api.clone(), Arc::clone(&events));
    tasks.spawn(async move {
        let mut stream = std::pin::pin!(watcher(api, config).applied_objects().default_backoff());
        while let Some(event) = stream.next().await {
            if let Ok(object) = event {
                written.lock().unwrap().push(object);
            }
        }
    });
    events
}

impl Recording {
    /// The largest number of nodes that were cordoned or not ready at the same time.
    pub(super) fn most_unavailable(&self) -> usize {
        let mut now: BTreeMap<String, bool> = BTreeMap::new();
        let mut most = 0;
        for node in &self.nodes {
            let machine = Machine::of(node);
            // A node without a Ready condition has never been ready.
            now.insert(machine.name(), !machine.is_in_service() && machine.ready().is_some());
            most = most.max(now.values().filter(|is_unavailable| **is_unavailable).count());
        }
        most
    }

    /// The nodes in the order in which they were cordoned, once for each time.
    pub(super) fn order(&self) -> Vec<String> {
        let mut cordoned = BTreeSet::new();
        let mut order = Vec::new();
        for machine in self.nodes.iter().map(Machine::of) {
            if !machine.is_cordoned() {
                cordoned.remove(&machine.name());
            } else if cordoned.insert(machine.name()) {
                order.push(machine.name());
            }
        }
        order
    }

    /// The states of a node in their order, without repetitions.
    pub(super) fn states(&self, node: &str) -> Vec<String> {
        let mut states: Vec<_> = self.nodes.iter().filter(|it| it.name_any() == node).map(describe).collect();
        states.dedup();
        states
    }

    /// The values of one of the pool's counts in their order, without repetitions.
    pub(super) fn counts(&self, count: impl Fn(&standins::machine_config::PoolStatus) -> i32) -> Vec<i32> {
        let mut counts: Vec<_> = self.pools.iter().map(|pool| count(&status(pool))).collect();
        counts.dedup();
        counts
    }
}
