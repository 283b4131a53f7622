//! Applies what the watches deliver to the index. A repeated list changes only what differs: no counter starts over, and no
//! scrape shows half of the cluster.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use api::VirtualMachine;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
    runtime::watcher::{Config, Event},
};
use serde_json::json;
use tokio::{sync::mpsc, task::JoinSet};
use tracing::warn;

use super::{
    ExporterSettings, Index,
    observed::{ObservedNode, ObservedPod, ObservedVm},
};
use crate::{
    launcher,
    listing::{Change, Listing},
    watch::watch,
};

const BACKLOG: usize = 1024;

#[derive(Debug)]
enum Input {
    Node(Box<Event<Node>>),
    Pod(Box<Event<Pod>>),
    Vm(Box<Event<DynamicObject>>),
}

/// The index, and which kinds have been listed.
#[derive(Debug)]
pub(super) struct SyncedIndex {
    pub(super) index: Index,
    listed: [bool; 3],
}

impl SyncedIndex {
    pub(super) fn is_complete(&self) -> bool {
        self.listed == [true; 3]
    }
}

/// The index, shared by scrapes and watches. Each locks it only for a moment.
#[derive(Debug)]
pub(super) struct SharedIndex {
    synced: Mutex<SyncedIndex>,
    start: Instant,
}

impl SharedIndex {
    pub(super) fn new(index: Index) -> SharedIndex {
        SharedIndex { synced: Mutex::new(SyncedIndex { index, listed: [false; 3] }), start: Instant::now() }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut SyncedIndex, std::time::Duration) -> T) -> T {
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut synced, self.start.elapsed())
    }
}

/// Runs until dropped.
pub(super) async fn feed(client: Client, settings: ExporterSettings, shared: Arc<SharedIndex>) {
    let (send, mut inputs) = mpsc::channel(BACKLOG);
    let mut watches = JoinSet::new();
    let nodes = Config::default().labels(&settings.node_selector);
    watches.spawn(watch(Api::all(client.clone()), nodes, trim_node, Input::Node, send.clone()));
    let pods = Config::default().labels(&format!("{}={}", launcher::APP.0, launcher::APP.1));
    watches.spawn(watch(Api::all(client.clone()), pods, trim_pod, Input::Pod, send.clone()));
    let vms = Api::all_with(client, &ApiResource::erase::<VirtualMachine>(&()));
    watches.spawn(watch(vms, Config::default(), trim_vm, Input::Vm, send));

    let (mut nodes, mut pods, mut vms) = (Listing::default(), Listing::default(), Listing::default());
    while let Some(input) = inputs.recv().await {
        shared.with(|synced, now| {
            let SyncedIndex { index, listed } = synced;
            match input {
                Input::Node(event) => {
                    listed[0] |= nodes.hear(*event, |change| match change {
                        Change::Is(node) => index.apply_node(&ObservedNode::of(&node), now),
                        Change::Gone((_, name)) => index.remove_node(&name, now),
                    });
                }
                Input::Pod(event) => {
                    listed[1] |= pods.hear(*event, |change| match change {
                        Change::Is(pod) => match ObservedPod::of(&pod) {
                            Some(observed) => {
                                warn_about_load(&observed);
                                index.apply_pod(&observed, now);
                            }
                            None => index.remove_pod(&pod.namespace().unwrap_or_default(), &pod.name_any(), now),
                        },
                        Change::Gone((namespace, name)) => index.remove_pod(&namespace, &name, now),
                    });
                }
                Input::Vm(event) => {
                    listed[2] |= vms.hear(*event, |change| match change {
                        Change::Is(vm) => index.apply_vm(&ObservedVm::of(&vm), now),
                        Change::Gone((namespace, name)) => index.remove_vm(&namespace, &name, now),
                    });
                }
            }
        });
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
