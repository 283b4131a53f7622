//! Applies what the watches deliver to the index. A repeated list changes only what differs: no counter starts over, and no
//! scrape shows half of the cluster.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use api::VirtualMachine;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
    runtime::watcher::Config,
};
use kube_io::{Change, ResilientWatch, forward};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};
use tracing::warn;

use super::{
    ExporterSettings, Index,
    observed::{ObservedNode, ObservedPod, ObservedVm},
};
use crate::launcher;

const BACKLOG: usize = 1024;

#[derive(Debug)]
enum WatchedChange {
    Node(Change<Node>),
    Pod(Change<Pod>),
    Vm(Change<DynamicObject>),
}

/// The index, and which kinds have been listed.
#[derive(Debug)]
pub(super) struct SyncedIndex {
    pub(super) index: Index,
    synced: [bool; 3],
}

impl SyncedIndex {
    pub(super) fn is_synced(&self) -> bool {
        self.synced == [true; 3]
    }
}

/// The index, shared by scrapes and watches. Each locks it only for a moment.
#[derive(Debug)]
pub(super) struct SharedIndex {
    index: Mutex<SyncedIndex>,
    start: Instant,
}

impl SharedIndex {
    pub(super) fn new(index: Index) -> SharedIndex {
        SharedIndex { index: Mutex::new(SyncedIndex { index, synced: [false; 3] }), start: Instant::now() }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut SyncedIndex, Duration) -> T) -> T {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut index, self.start.elapsed())
    }
}

impl SyncedIndex {
    fn take(&mut self, change: WatchedChange, now: Duration) {
        let SyncedIndex { index, synced } = self;
        match change {
            WatchedChange::Node(Change::Applied(node)) => index.apply_node(&ObservedNode::of(&node), now),
            WatchedChange::Node(Change::Deleted(key)) => index.remove_node(&key.name, now),
            WatchedChange::Node(Change::Synced) => synced[0] = true,
            WatchedChange::Pod(Change::Applied(pod)) => match ObservedPod::of(&pod) {
                Some(observed) => {
                    warn_about_load(&observed);
                    index.apply_pod(&observed, now);
                }
                None => index.remove_pod(&pod.namespace().unwrap_or_default(), &pod.name_any(), now),
            },
            WatchedChange::Pod(Change::Deleted(key)) => index.remove_pod(&key.namespace, &key.name, now),
            WatchedChange::Pod(Change::Synced) => synced[1] = true,
            WatchedChange::Vm(Change::Applied(vm)) => index.apply_vm(&ObservedVm::of(&vm), now),
            WatchedChange::Vm(Change::Deleted(key)) => index.remove_vm(&key.namespace, &key.name, now),
            WatchedChange::Vm(Change::Synced) => synced[2] = true,
        }
    }
}

/// Runs until dropped.
pub(super) async fn feed(client: Client, settings: ExporterSettings, shared: Arc<SharedIndex>) {
    let (send, mut changes) = mpsc::channel(BACKLOG);
    let mut watches = JoinSet::new();
    let nodes = Config::default().labels(&settings.node_selector);
    let nodes = ResilientWatch::local(Api::all(client.clone()), nodes).modify(trim_node);
    watches.spawn(forward(nodes, WatchedChange::Node, send.clone()));
    let pods = Config::default().labels(&format!("{}={}", launcher::APP.0, launcher::APP.1));
    let pods = ResilientWatch::local(Api::all(client.clone()), pods).modify(trim_pod);
    watches.spawn(forward(pods, WatchedChange::Pod, send.clone()));
    let vms = Api::all_with(client, &ApiResource::erase::<VirtualMachine>(&()));
    let vms = ResilientWatch::local(vms, Config::default()).modify(trim_vm);
    watches.spawn(forward(vms, WatchedChange::Vm, send));
    while let Some(change) = changes.recv().await {
        shared.with(|index, now| index.take(change, now));
    }
}

fn warn_about_load(pod: &ObservedPod) {
    if pod.load.is_none() {
        let ObservedPod { namespace, name, .. } = pod;
        warn!(target: "lab", "exporter: the load of pod {namespace}/{name} cannot be read; it counts as an idle VM");
    }
}

fn trim_node(node: &mut Node) {
    if let Some(status) = &mut node.status {
        status.images = None;
    }
}

fn trim_pod(pod: &mut Pod) {
    if let Some(spec) = &mut pod.spec {
        spec.containers.clear();
        spec.volumes = None;
    }
}

fn trim_vm(vm: &mut DynamicObject) {
    vm.data = json!({"status": {"podName": vm.data["status"]["podName"].take()}});
}
