//! The loop of the stand-in: take inputs, decide, send the requests, wait. At rest it makes no requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, runtime::watcher::Config};
use kube_io::{Backoff, BackoffPolicy, Class, Clock, ResilientWatch, forward};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::sleep,
};
use tracing::{info, warn};

use super::{
    Drain, Machine, MachineConfigSettings, Request, TooManyPools,
    cache::{Cache, Input},
    cluster_actions::{ClusterActions, cluster_actions},
    drain::Drains,
    kinds::machine_config_resource,
    names::FIELD_MANAGER,
    render_cache::RenderCache,
    request::Object,
    retries::Retries,
    writer::{Writer, Written},
};

const BACKLOG: usize = 1024;
/// How long the loop sleeps when nothing is due. Every input ends the sleep.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct Controller {
    cache: Cache,
    renders: RenderCache,
    retries: Retries,
    writer: Writer,
    drains: Drains,
    settings: watch::Receiver<MachineConfigSettings>,
    stop: watch::Receiver<bool>,
    inputs: mpsc::Receiver<Input>,
    /// The nodes without a pool that were logged.
    logged: Vec<TooManyPools>,
    /// They end when dropped.
    _watches: JoinSet<()>,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        settings: watch::Receiver<MachineConfigSettings>,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let (sender, inputs) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let backoff = || Backoff::new(BackoffPolicy::LOCAL, Clock::default());
        let configs = Api::all_with(client.clone(), &machine_config_resource());
        let configs = ResilientWatch::new(configs, Config::default(), backoff());
        watches.spawn(forward(configs, Input::Config, sender.clone()));
        let pools = ResilientWatch::new(Api::all(client.clone()), Config::default(), backoff());
        watches.spawn(forward(pools, Input::Pool, sender.clone()));
        let nodes = ResilientWatch::new(Api::all(client.clone()), Config::default(), backoff()).modify(remove_images);
        watches.spawn(forward(nodes, Input::Node, sender));
        Controller {
            cache: Cache::default(),
            renders: RenderCache::default(),
            retries: Retries::default(),
            writer: Writer::new(&client),
            drains: Drains::new(client),
            settings,
            stop,
            inputs,
            logged: Vec::new(),
            _watches: watches,
        }
    }

    /// Runs until `stop` is set.
    pub(super) async fn run(mut self) {
        info!(target: FIELD_MANAGER, "stand-in: playing the machine config operator");
        let mut pause = IDLE;
        loop {
            tokio::select! {
                _ = self.stop.changed() => break,
                changed = self.settings.changed() => if changed.is_err() { break },
                input = self.inputs.recv() => match input {
                    Some(input) => self.apply(input),
                    None => break,
                },
                Drain { node, config } = self.drains.done() => {
                    self.attempt(&Request::MarkDrained { node, config }).await;
                }
                () = sleep(pause) => {}
            }
            while let Ok(input) = self.inputs.try_recv() {
                self.apply(input);
            }
            pause = if self.cache.is_synced() { self.round().await } else { IDLE };
        }
        info!(target: FIELD_MANAGER, "stand-in: stopped");
    }

    fn apply(&mut self, input: Input) {
        if matches!(input, Input::Config(_)) && self.cache.is_synced() {
            self.renders.invalidate(Timestamp::now());
        }
        self.cache.apply(input);
    }

    /// Sends the requests that are due. Returns how long to wait for the next one.
    async fn round(&mut self) -> Duration {
        let settings = self.settings.borrow_and_update().clone();
        let now = Timestamp::now();
        let wake = self.renders.refresh(&self.cache, now, settings.render_delay);
        let ClusterActions { actions, unassigned } = cluster_actions(&self.cache, &self.renders, now, &settings);
        self.log_unassigned(unassigned);

        let drains = self.drains_to_run(actions.drains, now);
        let mut has_written = false;
        for request in &actions.requests {
            has_written |= self.attempt(request).await;
            if *self.stop.borrow() {
                return Duration::ZERO;
            }
        }
        self.drains.replace(&drains);
        if has_written {
            return Duration::ZERO;
        }
        // As of the beginning of the round: an object whose wait has ended meanwhile was not tried in it.
        let retry = self.retries.next(now);
        wake.into_iter().chain(actions.wake_at).chain(retry).min().map_or(IDLE, |wake| until(Timestamp::now(), wake))
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
        let now = Timestamp::now();
        let object = request.object();
        self.retries.retain(|object| self.cache.has(object));
        if !self.retries.may_try(&object, now) {
            return false;
        }
        match self.writer.send(request, &self.cache, now).await {
            Ok(written) => {
                info!(target: FIELD_MANAGER, "stand-in: {request}");
                self.retries.succeeded(object, request, Timestamp::now());
                match written {
                    Written::Config(config) => self.cache.configs.put(*config),
                    Written::Pool(pool) => self.cache.pools.put(*pool),
                    Written::Node(node) => self.cache.nodes.put(*node),
                    Written::Deleted(config) => self.cache.configs.remove(&config),
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
                self.retries.failed(object, Timestamp::now());
                false
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

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}
