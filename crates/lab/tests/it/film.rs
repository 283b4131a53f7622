//! Everything that watches show of a pool and its nodes, event by event, to be looked at afterwards.

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
use standins::machine_config::{Machine, MachineConfigPool};
use serde::de::DeserializeOwned;
use testkit::eventually;
use tokio::task::JoinSet;

use crate::platform::{Pool, describe, status};

type Reel<K> = Arc<Mutex<Vec<K>>>;

/// A camera that runs.
pub(crate) struct Camera {
    nodes: Reel<Node>,
    pools: Reel<MachineConfigPool>,
    selector: String,
    _tasks: JoinSet<()>,
}

pub(crate) struct Film {
    pub(crate) nodes: Vec<Node>,
    pub(crate) pools: Vec<MachineConfigPool>,
}

impl Camera {
    /// Returns when it has seen how things are.
    pub(crate) async fn start(pool: &Pool) -> Camera {
        let selector = format!("node-role.kubernetes.io/{}", pool.name);
        let mut tasks = JoinSet::new();
        let nodes = record(&mut tasks, &pool.nodes, watcher::Config::default().labels(&selector));
        let by_name = format!("metadata.name={}", pool.name);
        let pools = record(&mut tasks, &pool.pools, watcher::Config::default().fields(&by_name));
        let camera = Camera { nodes, pools, selector, _tasks: tasks };
        camera.catch_up(pool).await;
        camera
    }

    /// Waits until everything that happened so far is on film.
    pub(crate) async fn stop(self, pool: &Pool) -> Film {
        self.catch_up(pool).await;
        Film { nodes: self.nodes.lock().unwrap().clone(), pools: self.pools.lock().unwrap().clone() }
    }

    pub(crate) async fn catch_up(&self, pool: &Pool) {
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

fn record<K>(tasks: &mut JoinSet<()>, api: &Api<K>, config: watcher::Config) -> Reel<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let reel = Reel::default();
    let (api, written) = (api.clone(), Arc::clone(&reel));
    tasks.spawn(async move {
        let mut stream = std::pin::pin!(watcher(api, config).applied_objects().default_backoff());
        while let Some(event) = stream.next().await {
            if let Ok(object) = event {
                written.lock().unwrap().push(object);
            }
        }
    });
    reel
}

impl Film {
    /// The most nodes that were cordoned or not ready at the same time.
    pub(crate) fn most_away(&self) -> usize {
        let mut now: BTreeMap<String, bool> = BTreeMap::new();
        let mut most = 0;
        for node in &self.nodes {
            let machine = Machine::of(node);
            // One without a Ready condition has not come up for the first time yet.
            now.insert(machine.name(), !machine.is_in_service() && machine.ready().is_some());
            most = most.max(now.values().filter(|is_away| **is_away).count());
        }
        most
    }

    /// The nodes in the order in which they were cordoned, once for each time.
    pub(crate) fn order(&self) -> Vec<String> {
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

    /// What a node went through.
    pub(crate) fn story(&self, node: &str) -> Vec<String> {
        let mut story: Vec<_> = self.nodes.iter().filter(|it| it.name_any() == node).map(describe).collect();
        story.dedup();
        story
    }

    /// One of the pool's counts, each time it changed.
    pub(crate) fn counts(&self, count: impl Fn(&standins::machine_config::PoolStatus) -> i32) -> Vec<i32> {
        let mut counts: Vec<_> = self.pools.iter().map(|pool| count(&status(pool))).collect();
        counts.dedup();
        counts
    }
}
