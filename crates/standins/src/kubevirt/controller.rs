//! The loop of the stand-in: take changes, decide, send the requests, wait. At rest it makes no requests.

use jiff::Timestamp;
use kube::{Api, Client, api::DynamicObject, runtime::watcher::Config};
use kube_io::{Backoff, BackoffPolicy, Change, Class, Clock, ResilientWatch, forward};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};
use tracing::{info, warn};

use super::{Cluster, FIELD_MANAGER, KubeVirtSettings, cluster::Kind, decide, launcher::Launcher};
use crate::time::{Busy, Time};

const BACKLOG: usize = 1024;

/// What a watch has seen.
type WatchedChange = (Kind, Change<DynamicObject>);

pub(super) struct Controller {
    client: Client,
    time: Time,
    cluster: Cluster,
    settings: watch::Receiver<KubeVirtSettings>,
    changes: mpsc::Receiver<WatchedChange>,
    backoff: Backoff,
    /// Set while the scheduler has to place a pod, however long it needs.
    _waits: Option<Busy>,
    /// They end when dropped.
    _watches: JoinSet<()>,
}

impl Controller {
    pub(super) fn new(client: Client, time: Time, settings: watch::Receiver<KubeVirtSettings>) -> Self {
        let (sender, changes) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        let mut watch = |kind: Kind, of_kind: fn(Change<DynamicObject>) -> WatchedChange| {
            let api = Api::all_with(client.clone(), &kind.resource());
            let config = Config::default().labels(kind.labels());
            watches.spawn(forward(ResilientWatch::local(api, config), of_kind, sender.clone()));
        };
        watch(Kind::KubeVirt, |change| (Kind::KubeVirt, change));
        watch(Kind::VirtualMachine, |change| (Kind::VirtualMachine, change));
        watch(Kind::VirtualMachinePool, |change| (Kind::VirtualMachinePool, change));
        watch(Kind::ReplicaSet, |change| (Kind::ReplicaSet, change));
        watch(Kind::Instance, |change| (Kind::Instance, change));
        watch(Kind::Migration, |change| (Kind::Migration, change));
        watch(Kind::Pod, |change| (Kind::Pod, change));
        Controller {
            client,
            time,
            cluster: Cluster::default(),
            settings,
            changes,
            backoff: Backoff::new(BackoffPolicy::LOCAL, Clock::default()),
            _waits: None,
            _watches: watches,
        }
    }

    /// Runs until the handle is dropped.
    pub(super) async fn run(mut self) {
        let mut wake = None;
        loop {
            tokio::select! {
                changed = self.settings.changed() => if changed.is_err() { return },
                change = self.changes.recv() => match change {
                    Some((kind, change)) => self.cluster.apply(kind, change),
                    None => return,
                },
                () = self.time.sleep_until(wake) => {}
            }
            while let Ok((kind, change)) = self.changes.try_recv() {
                self.cluster.apply(kind, change);
            }
            if self.cluster.is_synced() {
                wake = self.round().await;
                self.tell_time();
            }
        }
    }

    /// Sends the requests that are due. Returns when to decide again.
    async fn round(&mut self) -> Option<Timestamp> {
        let settings = self.settings.borrow_and_update().clone();
        let actions = decide(&self.cluster, self.time.now(), &settings);
        let mut has_failed = false;
        for request in &actions.requests {
            match request.send(&self.client, &self.time, &mut self.cluster).await {
                Ok(()) => info!(target: FIELD_MANAGER, "stand-in: {request}"),
                Err(error) => {
                    has_failed = true;
                    // A conflict is normal: somebody else has written the object.
                    match error.class {
                        Class::Conflict => info!(target: FIELD_MANAGER, "stand-in: {error}"),
                        _ => warn!(target: FIELD_MANAGER, class = ?error.class, "stand-in: {error}"),
                    }
                }
            }
        }
        if has_failed {
            return Some(self.time.after(self.backoff.failed()));
        }
        self.backoff.reset();
        if !actions.requests.is_empty() {
            return Some(self.time.now());
        }
        actions.wake_at
    }

    /// Tells what is known, and whether the scheduler has to act.
    fn tell_time(&mut self) {
        for kind in Kind::ALL {
            self.time.knows(kind.resource(), kind.labels(), self.cluster.objects(kind));
        }
        let waits = self.cluster.objects(Kind::Pod).iter().map(Launcher).any(Launcher::waits_for_scheduler);
        self._waits = waits.then(|| self.time.busy());
    }
}
