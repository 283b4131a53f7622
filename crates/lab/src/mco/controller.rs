//! The loop: hear what is new, decide, do it, wait. When nothing is to be done, it makes no requests.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, Client, runtime::watcher::Config};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::sleep,
};
use tracing::{info, warn};

use super::{
    Action, Machine, Settings, TooManyPools,
    action::Object,
    drain::Drains,
    kinds::machine_config_resource,
    names::FIELD_MANAGER,
    patience::Patience,
    plan::{Plan, plan},
    renders::Renders,
    world::{News, World},
    write::{Writer, Written},
};
use crate::watch::watch;

const BACKLOG: usize = 1024;
/// How long the loop sleeps when nothing is planned. Whatever happens wakes it.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

pub(super) struct Controller {
    world: World,
    renders: Renders,
    patience: Patience,
    writer: Writer,
    drains: Drains,
    settings: watch::Receiver<Settings>,
    stop: watch::Receiver<bool>,
    news: mpsc::Receiver<News>,
    strays: Vec<TooManyPools>,
    /// Ended when dropped.
    _watches: JoinSet<()>,
}

impl Controller {
    pub(super) fn new(client: Client, settings: watch::Receiver<Settings>, stop: watch::Receiver<bool>) -> Self {
        let (send, news) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let configs = Api::all_with(client.clone(), &machine_config_resource());
        watches.spawn(watch(configs, Config::default(), |_| {}, News::Config, send.clone()));
        watches.spawn(watch(Api::all(client.clone()), Config::default(), |_| {}, News::Pool, send.clone()));
        watches.spawn(watch(Api::all(client.clone()), Config::default(), trim_node, News::Node, send));
        Controller {
            world: World::default(),
            renders: Renders::default(),
            patience: Patience::default(),
            writer: Writer::new(&client),
            drains: Drains::new(client),
            settings,
            stop,
            news,
            strays: Vec::new(),
            _watches: watches,
        }
    }

    /// Runs until told to stop.
    pub(super) async fn run(mut self) {
        info!(target: FIELD_MANAGER, "stand-in: playing the machine config operator");
        let mut pause = IDLE;
        loop {
            tokio::select! {
                _ = self.stop.changed() => break,
                changed = self.settings.changed() => if changed.is_err() { break },
                news = self.news.recv() => match news {
                    Some(news) => self.hear(news),
                    None => break,
                },
                (node, config) = self.drains.done() => {
                    self.attempt(&Action::Drained { node, config }).await;
                }
                () = sleep(pause) => {}
            }
            while let Ok(news) = self.news.try_recv() {
                self.hear(news);
            }
            pause = if self.world.is_complete() { self.round().await } else { IDLE };
        }
        info!(target: FIELD_MANAGER, "stand-in: stopped");
    }

    fn hear(&mut self, news: News) {
        if matches!(news, News::Config(_)) && self.world.is_complete() {
            self.renders.outdate(Timestamp::now());
        }
        self.world.hear(news);
    }

    /// Does what is to be done now. Returns how long nothing will be, unless something happens.
    async fn round(&mut self) -> Duration {
        let settings = self.settings.borrow_and_update().clone();
        let now = Timestamp::now();
        let mut wake = self.renders.refresh(&self.world, now, settings.render_delay);
        let Plan { actions, strays } = plan(&self.world, &self.renders, now, &settings);
        self.complain(strays);

        let (mut orders, mut moved) = (BTreeMap::new(), false);
        for action in actions {
            match action {
                Action::WakeAt(time) => wake = Some(wake.map_or(time, |wake| wake.min(time))),
                Action::Drain { node, config } => {
                    let kept = self.world.nodes.get(&node).is_some_and(|node| Machine::of(node).is_kept_by_kwok());
                    let may_start = self.patience.may_try(&Object::Node(node.clone()), now);
                    let order = (node, config);
                    if may_start || self.drains.is_running(&order) {
                        orders.insert(order, kept);
                    }
                }
                action => moved |= self.attempt(&action).await,
            }
            if *self.stop.borrow() {
                return Duration::ZERO;
            }
        }
        self.drains.order(&orders);
        if moved {
            return Duration::ZERO;
        }
        // What had to wait when the round began may be due by now, and must not be forgotten.
        let retry = self.patience.next(now);
        wake.into_iter().chain(retry).min().map_or(IDLE, |wake| until(Timestamp::now(), wake))
    }

    /// Makes the request of an action, unless its object is to be left alone for now. Returns whether something moved.
    async fn attempt(&mut self, action: &Action) -> bool {
        let now = Timestamp::now();
        let Some(object) = action.object() else { return false };
        self.patience.forget(|object| !self.world.has(object));
        if !self.patience.may_try(&object, now) {
            return false;
        }
        match self.writer.perform(action, &self.world, now).await {
            Ok(written) => {
                info!(target: FIELD_MANAGER, "stand-in: {action}");
                self.patience.succeeded(object, action, Timestamp::now());
                match written {
                    Written::Config(config) => self.world.configs.put(*config),
                    Written::Pool(pool) => self.world.pools.put(*pool),
                    Written::Node(node) => self.world.nodes.put(*node),
                    Written::Gone(config) => self.world.configs.remove(&config),
                    Written::Nothing => return false,
                }
                true
            }
            Err(error) => {
                let reason = error.reason();
                match error.code() {
                    // Somebody else was faster: an everyday thing.
                    Some(409) => info!(target: FIELD_MANAGER, reason, "stand-in: {error}"),
                    _ => warn!(target: FIELD_MANAGER, reason, "stand-in: {error}"),
                }
                self.patience.failed(object, Timestamp::now());
                false
            }
        }
    }

    /// Says once what is wrong with a node.
    fn complain(&mut self, strays: Vec<TooManyPools>) {
        for stray in strays.iter().filter(|stray| !self.strays.contains(stray)) {
            warn!(target: FIELD_MANAGER, "stand-in: {stray}");
        }
        self.strays = strays;
    }
}

/// The bulk of a node is the list of its images, which nobody here reads.
fn trim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
    }
}

fn until(now: Timestamp, then: Timestamp) -> Duration {
    Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO)
}
