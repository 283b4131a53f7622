//! Tells the index what the watches bring. A list that is repeated after an interruption changes what differs, no more:
//! no counter starts anew, and nobody scrapes a half-empty cluster.

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
    Index, Settings,
    sight::{NodeSeen, PodSeen, VmSeen},
};
use crate::{
    launcher,
    listing::{Change, Listing},
    watch::watch,
};

const BACKLOG: usize = 1024;

#[derive(Debug)]
enum News {
    Node(Box<Event<Node>>),
    Pod(Box<Event<Pod>>),
    Vm(Box<Event<DynamicObject>>),
}

/// What is known, and whether everything has been listed once.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) index: Index,
    listed: [bool; 3],
}

impl Known {
    pub(super) fn is_complete(&self) -> bool {
        self.listed == [true; 3]
    }
}

/// What a scrape and the watches share. Each holds it for a moment only.
#[derive(Debug)]
pub(super) struct Shared {
    known: Mutex<Known>,
    start: Instant,
}

impl Shared {
    pub(super) fn new(index: Index) -> Shared {
        Shared { known: Mutex::new(Known { index, listed: [false; 3] }), start: Instant::now() }
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Known, std::time::Duration) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        look(&mut known, self.start.elapsed())
    }
}

/// Runs until dropped.
pub(super) async fn feed(client: Client, settings: Settings, shared: Arc<Shared>) {
    let (send, mut news) = mpsc::channel(BACKLOG);
    let mut watches = JoinSet::new();
    let nodes = Config::default().labels(&settings.node_selector);
    watches.spawn(watch(Api::all(client.clone()), nodes, trim_node, News::Node, send.clone()));
    let pods = Config::default().labels(&format!("{}={}", launcher::APP.0, launcher::APP.1));
    watches.spawn(watch(Api::all(client.clone()), pods, trim_pod, News::Pod, send.clone()));
    let vms = Api::all_with(client, &ApiResource::erase::<VirtualMachine>(&()));
    watches.spawn(watch(vms, Config::default(), trim_vm, News::Vm, send));

    let (mut nodes, mut pods, mut vms) = (Listing::default(), Listing::default(), Listing::default());
    while let Some(news) = news.recv().await {
        shared.with(|known, now| {
            let Known { index, listed } = known;
            match news {
                News::Node(event) => {
                    listed[0] |= nodes.hear(*event, |change| match change {
                        Change::Is(node) => index.apply_node(&NodeSeen::of(&node), now),
                        Change::Gone((_, name)) => index.remove_node(&name, now),
                    });
                }
                News::Pod(event) => {
                    listed[1] |= pods.hear(*event, |change| match change {
                        Change::Is(pod) => match PodSeen::of(&pod) {
                            Some(seen) => {
                                complain(&seen);
                                index.apply_pod(&seen, now);
                            }
                            None => index.remove_pod(&pod.namespace().unwrap_or_default(), &pod.name_any(), now),
                        },
                        Change::Gone((namespace, name)) => index.remove_pod(&namespace, &name, now),
                    });
                }
                News::Vm(event) => {
                    listed[2] |= vms.hear(*event, |change| match change {
                        Change::Is(vm) => index.apply_vm(&VmSeen::of(&vm), now),
                        Change::Gone((namespace, name)) => index.remove_vm(&namespace, &name, now),
                    });
                }
            }
        });
    }
}

fn complain(pod: &PodSeen) {
    if pod.load.is_none() {
        let PodSeen { namespace, name, .. } = pod;
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
