//! The loop: hear what is new, decide about the VMs that it concerns, do it, wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::VirtualMachine;
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher::{Config, Event},
};
use tokio::{
    sync::{mpsc, watch::Sender},
    task::JoinSet,
    time::{sleep, timeout},
};
use tracing::{debug, info, warn};

use super::{
    Action, Launcher, Machine, Scene, Settings, State,
    copies::Copies,
    decide,
    request::{Answer, Refusal, perform},
    world::{Key, World},
};
use crate::{
    launcher,
    listing::{Change, Listing},
    watch::{delay, watch},
};

const BACKLOG: usize = 1024;
/// How many requests may be under way at a time.
const REQUESTS: usize = 16;
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the loop sleeps when nothing is planned. Whatever happens wakes it.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
enum News {
    Vm(Box<Event<DynamicObject>>),
    Pod(Box<Event<Pod>>),
    Node(Box<Event<PartialObjectMeta<Node>>>),
}

type Flight = BoxFuture<'static, (Key, Action, Result<Answer, Refusal>)>;

/// How long to leave a VM alone.
#[derive(Debug, Default)]
struct Patience {
    tries: u32,
    until: Option<Timestamp>,
    /// Whether this is about everything, because a request failed, and not just about making pods.
    has_failed: bool,
}

pub(super) struct Controller {
    client: Client,
    settings: Settings,
    news: mpsc::Receiver<News>,
    _watches: JoinSet<()>,
    world: World,
    copies: Copies,
    listings: (Listing, Listing, Listing),
    listed: [bool; 3],
    flights: FuturesUnordered<Flight>,
    /// VMs with a request under way.
    busy: BTreeSet<Key>,
    /// VMs to decide about.
    dirty: BTreeSet<Key>,
    /// VMs that wait for another migration to end.
    queued: BTreeSet<Key>,
    /// Migrations under way, and the node that each leaves.
    active: BTreeMap<Key, String>,
    wakes: BTreeMap<Key, Timestamp>,
    patience: BTreeMap<Key, Patience>,
    state: Sender<State>,
}

impl Controller {
    pub(super) fn new(client: Client, settings: Settings, state: Sender<State>) -> Controller {
        let (send, news) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let vms = Api::all_with(client.clone(), &ApiResource::erase::<VirtualMachine>(&()));
        watches.spawn(watch(vms, Config::default(), |_| {}, News::Vm, send.clone()));
        let pods = Config::default().labels(&format!("{}={}", launcher::APP.0, launcher::APP.1));
        watches.spawn(watch(Api::all(client.clone()), pods, |_| {}, News::Pod, send.clone()));
        watches.spawn(watch(Api::all(client.clone()), Config::default(), |_| {}, News::Node, send));
        Controller {
            client,
            settings,
            news,
            _watches: watches,
            world: World::default(),
            copies: Copies::new(Timestamp::now()),
            listings: Default::default(),
            listed: [false; 3],
            flights: FuturesUnordered::new(),
            busy: BTreeSet::new(),
            dirty: BTreeSet::new(),
            queued: BTreeSet::new(),
            active: BTreeMap::new(),
            wakes: BTreeMap::new(),
            patience: BTreeMap::new(),
            state,
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "VM controller: started");
        let mut pause = IDLE;
        loop {
            tokio::select! {
                news = self.news.recv() => match news {
                    Some(news) => self.hear(news),
                    None => break,
                },
                Some((key, action, answer)) = self.flights.next() => self.land(key, &action, answer),
                () = sleep(pause) => {}
            }
            while let Ok(news) = self.news.try_recv() {
                self.hear(news);
            }
            if self.listed == [true; 3] {
                pause = self.round();
                self.tell();
            }
        }
    }

    fn tell(&self) {
        let state = State { is_ready: true, vms: self.world.vms.len(), migrations: self.active.len() };
        self.state.send_if_modified(|known| std::mem::replace(known, state) != state);
    }

    fn hear(&mut self, news: News) {
        let was_complete = self.listed == [true; 3];
        let mut concerned = Vec::new();
        let world = &mut self.world;
        match news {
            News::Vm(event) => {
                self.listed[0] |= self.listings.0.hear(*event, |change| match change {
                    Change::Is(vm) => concerned.push(world.put_vm(Machine::of(&vm))),
                    Change::Gone(key) => {
                        world.remove_vm(&key);
                        concerned.push(key);
                    }
                });
            }
            News::Pod(event) => {
                self.listed[1] |= self.listings.1.hear(*event, |change| match change {
                    Change::Is(pod) => {
                        let namespace = pod.namespace().unwrap_or_default();
                        match pod.labels().get(launcher::DOMAIN) {
                            Some(vm) => concerned.extend(world.put_pod(&namespace, vm, Launcher::of(&pod))),
                            None => concerned.extend(world.remove_pod(&(namespace, pod.name_any()))),
                        }
                    }
                    Change::Gone(name) => {
                        concerned.extend(world.remove_pod(&name));
                        if !self.busy.is_empty() {
                            world.note_end(name);
                        }
                    }
                });
            }
            News::Node(event) => {
                self.listed[2] |= self.listings.2.hear(*event, |change| match change {
                    Change::Is(node) => world.put_node(node.name_any()),
                    Change::Gone((_, node)) => concerned.extend(world.remove_node(&node)),
                });
            }
        }
        concerned.into_iter().for_each(|key| self.touch(key));
        if !was_complete && self.listed == [true; 3] {
            self.world.note_missing_nodes();
            let everybody: Vec<Key> = self.world.everybody().cloned().collect();
            everybody.into_iter().for_each(|key| self.touch(key));
        }
    }

    /// Something about a VM has changed.
    fn touch(&mut self, key: Key) {
        let is_marked =
            self.world.vms.get(&key).is_some_and(|vm| vm.status.evacuation_node_name.is_some() && !vm.is_deleted);
        if !is_marked {
            self.copies.forget(&key);
        }
        if !self.busy.contains(&key) {
            match self.world.migrates_from(&key).map(str::to_owned) {
                Some(node) => {
                    self.active.insert(key.clone(), node);
                }
                None => {
                    let had_target = self.active.remove(&key).is_some();
                    if had_target && is_marked {
                        self.copies.lose(&key);
                    }
                }
            }
        }
        self.dirty.insert(key);
    }

    fn land(&mut self, key: Key, action: &Action, answer: Result<Answer, Refusal>) {
        self.busy.remove(&key);
        let now = Timestamp::now();
        if answer.is_err() && matches!(action, Action::Create { away: Some(_) }) {
            // No target was made, so none is lost.
            self.active.remove(&key);
        }
        match answer {
            Ok(answer) => {
                match answer {
                    Answer::Vm(vm) => self.world.put_answered_vm(*vm),
                    Answer::Pod(pod) => self.world.put_answered_pod(&key, *pod),
                    Answer::Removed { pod, uid } => self.world.let_go(&key, &pod, &uid),
                }
                match action {
                    // Pods that have to be made again and again are made less and less often.
                    Action::Create { away: None } => self.hold(&key, now, false),
                    Action::Create { .. } => {
                        info!(target: "lab", "VM controller: migration of {}/{} begins", key.0, key.1)
                    }
                    _ => {}
                }
            }
            Err(Refusal::Outdated) => {
                debug!(target: "lab", "VM controller: VM {}/{}: somebody else was faster; once more", key.0, key.1);
                self.hold(&key, now, true);
            }
            Err(Refusal::Failed(problem)) => {
                warn!(target: "lab", "VM controller: VM {}/{}: {problem}", key.0, key.1);
                self.hold(&key, now, true);
            }
        }
        if self.busy.is_empty() {
            self.world.forget_ends();
        }
        self.touch(key);
    }

    fn hold(&mut self, key: &Key, now: Timestamp, has_failed: bool) {
        let patience = self.patience.entry(key.clone()).or_default();
        patience.until = now.checked_add(delay(patience.tries)).ok();
        patience.tries = patience.tries.saturating_add(1);
        patience.has_failed = has_failed;
    }

    /// Decides about everything that may have changed. Returns how long nothing will be to do, unless something happens.
    fn round(&mut self) -> Duration {
        let now = Timestamp::now();
        let ended = self.copies.advance(now, &self.settings);
        self.dirty.extend(ended);
        let due: Vec<Key> = self.wakes.iter().filter(|(_, wake)| **wake <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.wakes.remove(&key);
            self.dirty.insert(key);
        }
        let mut later = Vec::new();
        while self.flights.len() < REQUESTS
            && let Some(key) = self.dirty.pop_first()
        {
            if self.busy.contains(&key) {
                later.push(key);
            } else {
                self.consider(key, now);
            }
        }
        self.dirty.extend(later);
        while self.flights.len() < REQUESTS
            && let Some(key) = self.queued.iter().find(|key| self.may_migrate(key)).cloned()
        {
            self.consider(key, now);
        }
        let wake = self.wakes.values().min().map(|wake| wake.duration_since(Timestamp::now()).as_secs_f64());
        let next = wake.into_iter().chain(self.copies.next_end(&self.settings)).min_by(f64::total_cmp);
        // A little later than exactly, so that what is due is due.
        next.map_or(IDLE, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)) + Duration::from_millis(1))
    }

    /// Whether the limits leave room for a migration of this VM.
    fn may_migrate(&self, key: &Key) -> bool {
        let limits = &self.settings.migration;
        if self.active.len() >= limits.cluster as usize {
            return false;
        }
        let mark = self.world.vms.get(key).and_then(|vm| vm.status.evacuation_node_name.as_ref());
        self.active.values().filter(|node| Some(*node) == mark).count() < limits.per_node as usize
    }

    fn consider(&mut self, key: Key, now: Timestamp) {
        let vm = self.world.vms.get(&key);
        if vm.is_none() && self.world.pods(&key).next().is_none() {
            self.patience.remove(&key);
            self.wakes.remove(&key);
            self.queued.remove(&key);
            return;
        }
        let decision = decide(&Scene {
            vm,
            pods: self.world.pods(&key).collect(),
            progress: self.copies.progress(&key),
            may_migrate: self.may_migrate(&key),
            is_gone: &|node| self.world.is_gone(node),
            now,
            settings: &self.settings,
        });
        self.queued.remove(&key);
        if decision.is_queued {
            self.queued.insert(key.clone());
        }
        self.wakes.remove(&key);
        if let Some(wake) = decision.wake {
            self.wakes.insert(key.clone(), wake);
        }
        let Some(action) = decision.action else {
            if vm.is_some_and(|vm| vm.status.phase == Some(api::virtual_machine::Phase::Running)) {
                self.patience.remove(&key);
            }
            return;
        };
        if let Action::Copy { from, to } = &action {
            if let Some(Ok(wanted)) = self.world.vms.get(&key).map(|vm| vm.wanted.clone()) {
                self.copies.start(key.clone(), from, to, &wanted, &self.settings);
                self.dirty.insert(key);
            }
            return;
        }
        let makes_pod = matches!(action, Action::Create { .. });
        let held = self.patience.get(&key).filter(|patience| makes_pod || patience.has_failed);
        if let Some(until) = held.and_then(|patience| patience.until).filter(|until| *until > now) {
            self.wakes.insert(key, until);
            return;
        }
        if let Action::Create { away: Some((node, _)) } = &action {
            // Its place is taken from now on.
            self.active.insert(key.clone(), node.clone());
        }
        self.launch(key, action);
    }

    fn launch(&mut self, key: Key, action: Action) {
        let request = perform(self.client.clone(), self.world.vms.get(&key).cloned(), key.clone(), action.clone());
        self.busy.insert(key.clone());
        self.flights.push(Box::pin(async move {
            let answer = match timeout(DEADLINE, request).await {
                Ok(answer) => answer,
                Err(_) => Err(Refusal::Failed(format!("no answer within {} s", DEADLINE.as_secs()))),
            };
            (key, action, answer)
        }));
    }
}
