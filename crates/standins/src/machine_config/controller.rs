//! The loop of the stand-in: take observations, decide, send the requests, wait. At rest it makes no requests.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, ResourceExt, runtime::watcher::Config};
use kube_io::{Backoff, BackoffPolicy, Class, Clock, ObjectKey, ResilientWatch, forward};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tracing::{info, warn};

use super::{
    Drain, Machine, MachineConfigSettings, Membership, Request, TooManyPools,
    cache::{Cache, Observation},
    cluster_actions::{ClusterActions, cluster_actions},
    drain::Drains,
    kinds::machine_config_resource,
    machine_config_node::MachineConfigNodes,
    names::FIELD_MANAGER,
    render_cache::RenderCache,
    request::Object,
    retries::Retries,
    writer::{Writer, Written},
};
use crate::Time;

const BACKLOG: usize = 1024;

pub(super) struct Controller {
    time: Time,
    cache: Cache,
    renders: RenderCache,
    retries: Retries,
    writer: Writer,
    drains: Drains,
    progress: MachineConfigNodes,
    settings: watch::Receiver<MachineConfigSettings>,
    stop: watch::Receiver<bool>,
    observations: mpsc::Receiver<Observation>,
    /// The nodes without a pool that were logged.
    logged: Vec<TooManyPools>,
    /// They end when dropped.
    _watches: JoinSet<()>,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        time: &Time,
        settings: watch::Receiver<MachineConfigSettings>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let (sender, observations) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let backoff = || Backoff::new(BackoffPolicy::LOCAL, Clock::default());
        let configs = Api::all_with(client.clone(), &machine_config_resource());
        let configs = ResilientWatch::new(configs, Config::default(), backoff());
        watches.spawn(forward(configs, Observation::Config, sender.clone()));
        let pools = ResilientWatch::new(Api::all(client.clone()), Config::default(), backoff());
        watches.spawn(forward(pools, Observation::Pool, sender.clone()));
        let nodes = ResilientWatch::new(Api::all(client.clone()), Config::default(), backoff()).modify(remove_images);
        watches.spawn(forward(nodes, Observation::Node, sender));
        Controller {
            time: time.clone(),
            cache: Cache::default(),
            renders: RenderCache::default(),
            retries: Retries::default(),
            writer: Writer::new(&client, time),
            progress: MachineConfigNodes::new(client.clone(), time),
            drains: Drains::new(client, time),
            settings,
            stop,
            observations,
            logged: Vec::new(),
            _watches: watches,
        }
    }

    /// Runs until `stop` is set.
    pub(super) async fn run(mut self) {
        info!(target: FIELD_MANAGER, "stand-in: playing the machine config operator");
        let mut wake = None;
        loop {
            tokio::select! {
                _ = self.stop.changed() => break,
                changed = self.settings.changed() => if changed.is_err() { break },
                observation = self.observations.recv() => match observation {
                    Some(observation) => self.apply(observation),
                    None => break,
                },
                (Drain { node, config }, _busy) = self.drains.done() => {
                    self.attempt(&Request::MarkDrained { node, config }).await;
                }
                () = self.time.sleep_until(wake) => {}
            }
            while let Ok(observation) = self.observations.try_recv() {
                self.apply(observation);
            }
            if self.cache.is_synced() {
                wake = self.round().await;
                self.cache.tell(&self.time);
            }
        }
        info!(target: FIELD_MANAGER, "stand-in: stopped");
    }

    fn apply(&mut self, observation: Observation) {
        if matches!(observation, Observation::Config(_)) && self.cache.is_synced() {
            self.renders.invalidate(self.time.now());
        }
        self.cache.apply(observation);
    }

    /// Sends the requests that are due. Returns when to decide again.
    async fn round(&mut self) -> Option<Timestamp> {
        let settings = self.settings.borrow_and_update().clone();
        let now = self.time.now();
        let wake = self.renders.refresh(&self.cache, now, settings.render_delay);
        let ClusterActions { actions, unassigned } = cluster_actions(&self.cache, &self.renders, now, &settings);
        self.log_unassigned(unassigned);

        let drains = self.drains_to_run(actions.drains, now);
        let mut has_written = false;
        for request in &actions.requests {
            has_written |= self.attempt(request).await;
            if *self.stop.borrow() {
                return Some(now);
            }
        }
        self.drains.replace(&drains, settings.drain);
        if settings.machine_config_nodes {
            self.tell_progress(now).await;
        }
        if has_written {
            return Some(now);
        }
        // As of the beginning of the round: an object whose wait has ended meanwhile was not tried in it.
        let retry = self.retries.next(now);
        wake.into_iter().chain(actions.wake_at).chain(retry).min()
    }

    /// The drains that run already or may start, and whether KWOK acts as the kubelet of their node.
    fn drains_to_run(&self, wanted: BTreeSet<Drain>, now: Timestamp) -> BTreeMap<Drain, bool> {
        let mut drains = BTreeMap::new();
        for drain in wanted {
            let node = self.cache.nodes.get(&drain.node);
            let has_kubelet = node.is_some_and(|node| Machine::of(node).is_managed_by_kwok());
            let may_start = self.retries.may_try(&Object::Node(drain.node.clone()), now);
            if may_start || self.drains.is_running(&drain) {
                drains.insert(drain, has_kubelet);
            }
        }
        drains
    }

    /// Sends a request, unless its object has to wait. Returns whether the object changed.
    async fn attempt(&mut self, request: &Request) -> bool {
        let now = self.time.now();
        let object = request.object();
        self.retries.retain(|object| self.cache.has(object));
        if !self.retries.may_try(&object, now) {
            return false;
        }
        match self.writer.send(request, &self.cache, now).await {
            Ok(written) => {
                info!(target: FIELD_MANAGER, "stand-in: {request}");
                self.retries.succeeded(object, request, self.time.now());
                match written {
                    Written::Config(config) => self.cache.configs.put(*config),
                    Written::Pool(pool) => self.cache.pools.put(*pool),
                    Written::Node(node) => self.cache.nodes.put(*node),
                    Written::Deleted(name) => {
                        self.cache.configs.remove(&ObjectKey { namespace: String::new(), name });
                    }
                    Written::Nothing => return false,
                }
                true
            }
            Err(error) => {
                // A conflict is normal: somebody else has written the object.
                match error.class {
                    Class::Conflict => info!(target: FIELD_MANAGER, "stand-in: {error}"),
                    _ => warn!(target: FIELD_MANAGER, class = ?error.class, "stand-in: {error}"),
                }
                self.retries.failed(object, self.time.now());
                false
            }
        }
    }

    /// Writes the MachineConfigNodes of nodes that are a step further. What fails is repeated in the next round.
    async fn tell_progress(&mut self, now: Timestamp) {
        let membership = Membership::of(self.cache.pools.iter());
        for node in self.cache.nodes.iter() {
            let Ok(Some(pool)) = membership.pool(node) else { continue };
            if let Err(error) = self.progress.tell(Machine::of(node), &pool.name_any(), now).await {
                warn!(target: FIELD_MANAGER, class = ?error.class, "stand-in: {error}");
            }
        }
    }

    /// Logs each node that belongs to no pool once.
    fn log_unassigned(&mut self, unassigned: Vec<TooManyPools>) {
        for node in unassigned.iter().filter(|node| !self.logged.contains(node)) {
            warn!(target: FIELD_MANAGER, "stand-in: {node}");
        }
        self.logged = unassigned;
    }
}

/// The list of images is the bulk of a node, and the stand-in does not read it.
fn remove_images(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
    }
}
