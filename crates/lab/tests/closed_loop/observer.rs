//! Watches a lab from outside, through nothing but the API, and says what it did that it must not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use api::{VirtualMachine, virtual_machine::Phase};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use lab::{launcher, up::Lab, webhook};
use tokio::task::JoinSet;

const NODES: usize = 5;
const CORES: f64 = 32.0;
const PER_NODE: usize = 2;
const PER_CLUSTER: usize = 5;

/// A VM as it was seen last.
#[derive(Debug, Clone)]
struct Seen {
    node: String,
    pod: String,
    load: f64,
    is_leaving: bool,
    has_cause: bool,
}

#[derive(Debug, Default)]
struct Notes {
    vms: BTreeMap<String, Seen>,
    /// The pods that there are, by name, with the VM that they play.
    pods: BTreeMap<String, String>,
    moves: BTreeMap<String, usize>,
    wrongs: BTreeSet<String>,
}

pub(crate) struct Observer {
    notes: Arc<Mutex<Notes>>,
    _watches: JoinSet<()>,
}

impl Observer {
    /// Knows all VMs and pods when it returns.
    pub(crate) async fn start(lab: &Lab) -> Observer {
        let notes: Arc<Mutex<Notes>> = Arc::default();
        let mut watches = JoinSet::new();
        let vms: Api<VirtualMachine> = Api::all(lab.client().clone());
        let pods: Api<Pod> = Api::all(lab.client().clone());
        let (known, mut knows) = tokio::sync::mpsc::channel(2);
        let (told, book) = (known.clone(), notes.clone());
        watches.spawn(async move {
            let mut events = std::pin::pin!(watcher(pods, watcher::Config::default().labels("app=virt-launcher")));
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::InitApply(pod) | Event::Apply(pod)) => book.lock().unwrap().pod(&pod),
                    Ok(Event::Delete(pod)) => book.lock().unwrap().pod_gone(&pod.name_any()),
                    Ok(Event::InitDone) => drop(told.try_send(())),
                    Ok(Event::Init) | Err(_) => {}
                }
            }
        });
        let book = notes.clone();
        knows.recv().await;
        watches.spawn(async move {
            let mut events = std::pin::pin!(watcher(vms, watcher::Config::default()));
            while let Some(event) = events.next().await {
                match event {
                    Ok(Event::InitApply(vm) | Event::Apply(vm)) => book.lock().unwrap().vm(&vm),
                    Ok(Event::Delete(vm)) => book.lock().unwrap().wrong(format!("{} vanished", vm.name_any())),
                    Ok(Event::InitDone) => drop(known.try_send(())),
                    Ok(Event::Init) | Err(_) => {}
                }
            }
        });
        knows.recv().await;
        Observer { notes, _watches: watches }
    }

    fn with<T>(&self, read: impl FnOnce(&Notes) -> T) -> T {
        read(&self.notes.lock().unwrap())
    }

    /// The standard deviation of CPU use over the nodes.
    pub(crate) fn spread(&self) -> f64 {
        let mut used: BTreeMap<String, f64> = (1..=NODES).map(|number| (format!("kwok-node-{number}"), 0.0)).collect();
        self.with(|notes| {
            for vm in notes.vms.values() {
                *used.entry(vm.node.clone()).or_default() += vm.load / CORES;
            }
        });
        let count = used.len() as f64;
        let mean = used.values().sum::<f64>() / count;
        (used.values().map(|share| (share - mean).powi(2)).sum::<f64>() / count).sqrt()
    }

    pub(crate) fn migrations(&self) -> usize {
        self.with(|notes| notes.moves.values().sum())
    }

    pub(crate) fn most_of_one(&self) -> usize {
        self.with(|notes| notes.moves.values().max().copied().unwrap_or_default())
    }

    /// Until no VM is on its way, and every VM has one pod.
    pub(crate) async fn at_rest(&self) {
        let rests =
            || self.with(|notes| notes.vms.values().all(|vm| !vm.is_leaving) && notes.pods.len() == notes.vms.len());
        let waited = async {
            while !rests() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waited).await.expect("every migration comes to an end");
    }

    /// What it did that it must not: nothing.
    pub(crate) fn verdict(&self) {
        self.with(|notes| {
            assert!(notes.wrongs.is_empty(), "{:#?}", notes.wrongs);
            for (name, vm) in &notes.vms {
                assert_eq!(notes.pods.get(&vm.pod), Some(name), "the pod that counts for {name} is there");
            }
        });
    }
}

impl Notes {
    fn wrong(&mut self, what: String) {
        self.wrongs.insert(what);
    }

    fn pod(&mut self, pod: &Pod) {
        let vm = pod.labels().get(launcher::DOMAIN).cloned().unwrap_or_default();
        self.pods.insert(pod.name_any(), vm);
    }

    fn pod_gone(&mut self, name: &str) {
        self.pods.remove(name);
    }

    fn vm(&mut self, vm: &VirtualMachine) {
        let name = vm.name_any();
        let status = vm.status.clone().unwrap_or_default();
        if status.phase != Some(Phase::Running) {
            self.wrong(format!("{name} is {:?} after it ran", status.phase));
        }
        let (Some(node), Some(pod)) = (status.node_name, status.pod_name) else {
            self.wrong(format!("{name} runs nowhere"));
            return;
        };
        let cores = vm.spec.resources.cpu.cores().unwrap();
        let seen = Seen {
            load: cores * vm.spec.utilization.cpu.value().unwrap(),
            is_leaving: status.evacuation_node_name.is_some(),
            has_cause: status.conditions.iter().any(|condition| condition.type_ == webhook::EVICTION_REQUESTED),
            node,
            pod,
        };
        if let Some(before) = self.vms.get(&name).filter(|before| before.node != seen.node).cloned() {
            if !before.is_leaving || !before.has_cause {
                self.wrong(format!("{name} moved without a cause"));
            }
            if before.pod == seen.pod {
                self.wrong(format!("{name} is on another node with the same pod"));
            }
            *self.moves.entry(name.clone()).or_default() += 1;
        }
        self.vms.insert(name, seen);
        self.limits();
    }

    /// Target pods are what counts: a VM that waits for its turn has none.
    fn limits(&mut self) {
        let mut played: BTreeMap<&str, usize> = BTreeMap::new();
        for vm in self.pods.values() {
            *played.entry(vm).or_default() += 1;
        }
        let mut leaving: BTreeMap<&str, usize> = BTreeMap::new();
        let moves = |(name, vm): &(&String, &Seen)| vm.is_leaving && played.get(name.as_str()) == Some(&2);
        for (_, vm) in self.vms.iter().filter(moves) {
            *leaving.entry(vm.node.as_str()).or_default() += 1;
        }
        let all: usize = leaving.values().sum();
        let most = leaving.values().max().copied().unwrap_or_default();
        if all > PER_CLUSTER || most > PER_NODE {
            self.wrong(format!("{all} migrations at once, {most} from one node"));
        }
    }
}
