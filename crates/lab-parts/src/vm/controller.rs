//! The loop: take what the watches deliver, decide about the VMs that it affects, send requests, wait.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{VirtualMachine, virtual_machine::Phase};
use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher::Config,
};
use kube_io::{BackoffPolicy, Change, KeyedBackoff, ObjectKey, ResilientWatch, forward, within_deadline};
use tokio::{
    sync::{mpsc, watch::Sender},
    task::JoinSet,
    time::sleep,
};
use tracing::{debug, info, warn};

use super::{
    Input, LauncherPod, Outcome, Request, State, Step, Vm, VmControllerSettings,
    cache::Cache,
    copies::Copies,
    decide,
    request::{Response, SendError, send},
};
use crate::launcher;

const BACKLOG: usize = 1024;
/// How many requests may be in flight.
const REQUESTS: usize = 16;
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the loop sleeps when nothing is due. Every change wakes it.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
enum WatchedChange {
    Vm(Change<DynamicObject>),
    Pod(Change<Pod>),
    Node(Change<PartialObjectMeta<Node>>),
}

type InFlight = BoxFuture<'static, (ObjectKey, Request, Result<Response, SendError>)>;

pub(super) struct Controller {
    client: Client,
    settings: VmControllerSettings,
    changes: mpsc::Receiver<WatchedChange>,
    _watches: JoinSet<()>,
    cache: Cache,
    copies: Copies,
    /// Whether VMs, pods and nodes have been listed.
    synced: [bool; 3],
    in_flight: FuturesUnordered<InFlight>,
    /// VMs with a request in flight.
    busy: BTreeSet<ObjectKey>,
    /// VMs to decide about.
    dirty: BTreeSet<ObjectKey>,
    /// VMs that wait for another migration to end.
    queued: BTreeSet<ObjectKey>,
    /// The VMs that migrate, and the node that each leaves.
    active: BTreeMap<ObjectKey, String>,
    wakes: BTreeMap<ObjectKey, Timestamp>,
    /// VMs whose last request failed.
    failures: KeyedBackoff<ObjectKey>,
    /// VMs whose pods do not last: each new pod counts as a failure.
    creations: KeyedBackoff<ObjectKey>,
    state: Sender<State>,
}

impl Controller {
    pub(super) fn new(client: Client, settings: VmControllerSettings, state: Sender<State>) -> Controller {
        let (send, changes) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let vms = Api::all_with(client.clone(), &ApiResource::erase::<VirtualMachine>(&()));
        watches.spawn(forward(ResilientWatch::local(vms, Config::default()), WatchedChange::Vm, send.clone()));
        let pods = Config::default().labels(&format!("{}={}", launcher::APP.0, launcher::APP.1));
        let pods = ResilientWatch::local(Api::all(client.clone()), pods);
        watches.spawn(forward(pods, WatchedChange::Pod, send.clone()));
        let nodes = ResilientWatch::local(Api::all(client.clone()), Config::default());
        watches.spawn(forward(nodes, WatchedChange::Node, send));
        Controller {
            client,
            settings,
            changes,
            _watches: watches,
            cache: Cache::default(),
            copies: Copies::new(Timestamp::now()),
            synced: [false; 3],
            in_flight: FuturesUnordered::new(),
            busy: BTreeSet::new(),
            dirty: BTreeSet::new(),
            queued: BTreeSet::new(),
            active: BTreeMap::new(),
            wakes: BTreeMap::new(),
            failures: KeyedBackoff::new(BackoffPolicy::LOCAL),
            creations: KeyedBackoff::new(BackoffPolicy::LOCAL),
            state,
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "VM controller: started");
        let mut pause = IDLE;
        loop {
            tokio::select! {
                change = self.changes.recv() => match change {
                    Some(change) => self.take(change),
                    None => break,
                },
                Some((key, request, result)) = self.in_flight.next() => self.finish(key, &request, result),
                () = sleep(pause) => {}
            }
            while let Ok(change) = self.changes.try_recv() {
                self.take(change);
            }
            if self.is_synced() {
                pause = self.round();
                self.publish_state();
            }
        }
    }

    fn publish_state(&self) {
        let state = State { is_ready: true, vms: self.cache.vms.len(), migrations: self.active.len() };
        self.state.send_if_modified(|known| std::mem::replace(known, state) != state);
    }

    fn is_synced(&self) -> bool {
        self.synced == [true; 3]
    }

    fn take(&mut self, change: WatchedChange) {
        let was_synced = self.is_synced();
        let mut affected = Vec::new();
        match change {
            WatchedChange::Vm(Change::Applied(vm)) => affected.push(self.cache.put_vm(Vm::of(&vm))),
            WatchedChange::Vm(Change::Deleted(key)) => {
                self.cache.remove_vm(&key);
                affected.push(key);
            }
            WatchedChange::Vm(Change::Synced) => self.synced[0] = true,
            WatchedChange::Pod(Change::Applied(pod)) => {
                let namespace = pod.namespace().unwrap_or_default();
                match pod.labels().get(launcher::DOMAIN).cloned() {
                    Some(name) => {
                        affected.extend(self.cache.put_pod(ObjectKey { namespace, name }, LauncherPod::of(&pod)));
                    }
                    None => affected.extend(self.cache.remove_pod(&ObjectKey::of(&*pod))),
                }
            }
            WatchedChange::Pod(Change::Deleted(key)) => {
                affected.extend(self.cache.remove_pod(&key));
                if !self.busy.is_empty() {
                    self.cache.note_deleted_pod(key);
                }
            }
            WatchedChange::Pod(Change::Synced) => self.synced[1] = true,
            WatchedChange::Node(Change::Applied(node)) => self.cache.put_node(node.name_any()),
            WatchedChange::Node(Change::Deleted(key)) => affected.extend(self.cache.remove_node(&key.name)),
            WatchedChange::Node(Change::Synced) => self.synced[2] = true,
        }
        affected.into_iter().for_each(|key| self.touch(key));
        if !was_synced && self.is_synced() {
            self.cache.note_missing_nodes();
            let all: Vec<ObjectKey> = self.cache.keys().cloned().collect();
            all.into_iter().for_each(|key| self.touch(key));
        }
    }

    /// Something about the VM has changed.
    fn touch(&mut self, key: ObjectKey) {
        let is_evacuated =
            self.cache.vms.get(&key).is_some_and(|vm| vm.status.evacuation_node_name.is_some() && !vm.is_deleted);
        if !is_evacuated {
            self.copies.forget(&key);
        }
        if !self.busy.contains(&key) {
            match self.cache.migrates_from(&key).map(str::to_owned) {
                Some(node) => {
                    self.active.insert(key.clone(), node);
                }
                None => {
                    let had_target = self.active.remove(&key).is_some();
                    if had_target && is_evacuated {
                        self.copies.lose_target(&key);
                    }
                }
            }
        }
        self.dirty.insert(key);
    }

    fn finish(&mut self, key: ObjectKey, request: &Request, result: Result<Response, SendError>) {
        self.busy.remove(&key);
        let now = Timestamp::now();
        if result.is_err() && matches!(request, Request::CreatePod { source: Some(_) }) {
            // No target was created, so none is lost.
            self.active.remove(&key);
        }
        match result {
            Ok(response) => {
                match response {
                    Response::Vm(vm) => self.cache.put_vm_response(*vm),
                    Response::Pod(pod) => self.cache.put_pod_response(&key, *pod),
                    Response::PodRemoved { pod, uid } => self.cache.mark_removed(&key, &pod, &uid),
                }
                match request {
                    // A pod that does not last is created again after longer and longer waits.
                    Request::CreatePod { source: None } => {
                        self.failures.reset(&key);
                        self.creations.failed(key.clone(), now);
                    }
                    Request::CreatePod { .. } => {
                        info!(target: "lab", "VM controller: migration of {}/{} begins", key.namespace, key.name)
                    }
                    _ => {}
                }
            }
            Err(SendError::Conflict) => {
                debug!(target: "lab", "VM controller: VM {}/{}: somebody else was faster; once more", key.namespace, key.name);
                self.failures.failed(key.clone(), now);
            }
            Err(SendError::Failed(problem)) => {
                warn!(target: "lab", "VM controller: VM {}/{}: {problem}", key.namespace, key.name);
                self.failures.failed(key.clone(), now);
            }
        }
        if self.busy.is_empty() {
            self.cache.forget_deleted_pods();
        }
        self.touch(key);
    }

    /// Decides about every VM that may have changed. Returns how long to sleep if nothing changes.
    fn round(&mut self) -> Duration {
        let now = Timestamp::now();
        let ended = self.copies.advance(now, &self.settings);
        self.dirty.extend(ended);
        let due: Vec<ObjectKey> =
            self.wakes.iter().filter(|(_, wake)| **wake <= now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.wakes.remove(&key);
            self.dirty.insert(key);
        }
        let mut later = Vec::new();
        while self.in_flight.len() < REQUESTS
            && let Some(key) = self.dirty.pop_first()
        {
            if self.busy.contains(&key) {
                later.push(key);
            } else {
                self.consider(key, now);
            }
        }
        self.dirty.extend(later);
        while self.in_flight.len() < REQUESTS
            && let Some(key) = self.queued.iter().find(|key| self.may_migrate(key)).cloned()
        {
            self.consider(key, now);
        }
        let wake = self.wakes.values().min().map(|wake| wake.duration_since(Timestamp::now()).as_secs_f64());
        let next = wake.into_iter().chain(self.copies.next_end(&self.settings)).min_by(f64::total_cmp);
        // A little later, so that what is due has become due.
        next.map_or(IDLE, |seconds| Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)) + Duration::from_millis(1))
    }

    /// Whether the limits allow a migration of the VM.
    fn may_migrate(&self, key: &ObjectKey) -> bool {
        let limits = &self.settings.migration;
        if self.active.len() >= limits.cluster as usize {
            return false;
        }
        let evacuated = self.cache.vms.get(key).and_then(|vm| vm.status.evacuation_node_name.as_ref());
        self.active.values().filter(|node| Some(*node) == evacuated).count() < limits.per_node as usize
    }

    fn consider(&mut self, key: ObjectKey, now: Timestamp) {
        let vm = self.cache.vms.get(&key);
        if vm.is_none() && self.cache.pods(&key).next().is_none() {
            self.failures.reset(&key);
            self.creations.reset(&key);
            self.wakes.remove(&key);
            self.queued.remove(&key);
            return;
        }
        let step = decide(&Input {
            vm,
            pods: self.cache.pods(&key).collect(),
            progress: self.copies.progress(&key),
            may_migrate: self.may_migrate(&key),
            is_gone: &|node| self.cache.is_gone(node),
            now,
            settings: &self.settings,
        });
        self.queued.remove(&key);
        self.wakes.remove(&key);
        match step {
            Step::Done(Outcome { until, for_migration_slot }) => {
                if vm.is_some_and(|vm| vm.status.phase == Some(Phase::Running)) {
                    self.failures.reset(&key);
                    self.creations.reset(&key);
                }
                if for_migration_slot {
                    self.queued.insert(key.clone());
                }
                if let Some(until) = until {
                    self.wakes.insert(key, until);
                }
            }
            Step::StartCopy { from, to } => {
                if let Some(Ok(spec)) = self.cache.vms.get(&key).map(|vm| vm.spec.clone()) {
                    self.copies.start(key.clone(), &from, &to, &spec, &self.settings);
                    self.dirty.insert(key);
                }
            }
            Step::Send(request) => self.send_when_due(key, request, now),
        }
    }

    fn send_when_due(&mut self, key: ObjectKey, request: Request, now: Timestamp) {
        let creation = match request {
            Request::CreatePod { .. } => self.creations.until(&key, now),
            _ => None,
        };
        if let Some(until) = creation.max(self.failures.until(&key, now)) {
            self.wakes.insert(key, until);
            return;
        }
        if let Request::CreatePod { source: Some(source) } = &request {
            // The migration counts from now on.
            self.active.insert(key.clone(), source.node.clone());
        }
        let sent = send(self.client.clone(), self.cache.vms.get(&key).cloned(), key.clone(), request.clone());
        self.busy.insert(key.clone());
        self.in_flight.push(Box::pin(async move {
            let result = within_deadline(DEADLINE, &key.name, sent).await;
            let result = result.unwrap_or_else(|late| Err(SendError::Failed(late.message)));
            (key, request, result)
        }));
    }
}
