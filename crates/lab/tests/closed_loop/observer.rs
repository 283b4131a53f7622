//! Watches a lab from outside, through nothing but the API, and says what it did that it must not.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use api::{VirtualMachine, virtual_machine::Phase};
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use lab::{launcher, up::Lab, webhook};
use tokio::task::JoinSet;

use crate::wait::within;

const NODES: usize = 5;
const CORES: f64 = 32.0;
const MEMORY: f64 = (128_u64 << 30) as f64;
/// How long the migrations that are under way may take.
const AT_REST: Duration = Duration::from_secs(30);
const PER_NODE: usize = 2;
const PER_CLUSTER: usize = 5;

/// What a node is asked for, of its CPU and of its memory, as shares of what it has.
pub(crate) type Demand = [f64; 2];

/// A VM that changed its node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Move {
    pub(crate) vm: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// By how much the node that it left had more CPU use than the average of all, before it left.
    pub(crate) excess: f64,
    /// From the mark on the VM until it ran elsewhere, by the clock.
    pub(crate) took: Duration,
}

/// A VM as it was seen last.
#[derive(Debug, Clone)]
struct Seen {
    node: String,
    pod: String,
    demand: Demand,
    /// Since when it shall go elsewhere.
    leaving: Option<Instant>,
    has_cause: bool,
}

#[derive(Debug, Default)]
struct Notes {
    vms: BTreeMap<String, Seen>,
    /// The pods that there are, by name, with the VM that they play.
    pods: BTreeMap<String, String>,
    moves: Vec<Move>,
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
            // With pauses after failures: a watch whose client is at its end would else fail for ever and never yield.
            let mut events =
                std::pin::pin!(watcher(pods, watcher::Config::default().labels("app=virt-launcher")).default_backoff());
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
            let mut events = std::pin::pin!(watcher(vms, watcher::Config::default()).default_backoff());
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

    /// What each node is asked for, in the order of their numbers.
    pub(crate) fn demands(&self) -> Vec<Demand> {
        self.with(|notes| notes.demands().into_values().collect())
    }

    /// The standard deviation of CPU use over the nodes.
    pub(crate) fn spread(&self) -> f64 {
        let demands = self.demands();
        let (count, mean) = (demands.len() as f64, mean_cpu(&demands));
        (demands.iter().map(|[cpu, _]| (cpu - mean).powi(2)).sum::<f64>() / count).sqrt()
    }

    /// The node of each VM.
    pub(crate) fn homes(&self) -> BTreeMap<String, String> {
        self.with(|notes| notes.vms.iter().map(|(name, vm)| (name.clone(), vm.node.clone())).collect())
    }

    /// All of them, the first first.
    pub(crate) fn moves(&self) -> Vec<Move> {
        self.with(|notes| notes.moves.clone())
    }

    /// Until no VM is on its way, and every VM has one pod.
    pub(crate) async fn at_rest(&self) {
        let rests =
            |notes: &Notes| notes.vms.values().all(|vm| vm.leaving.is_none()) && notes.pods.len() == notes.vms.len();
        within(AT_REST, || "every migration is over".to_owned(), async || self.with(rests).then_some(())).await;
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

pub(crate) fn mean_cpu(demands: &[Demand]) -> f64 {
    demands.iter().map(|[cpu, _]| cpu).sum::<f64>() / demands.len() as f64
}

impl Notes {
    fn demands(&self) -> BTreeMap<String, Demand> {
        let mut demands: BTreeMap<String, Demand> =
            (1..=NODES).map(|number| (format!("kwok-node-{number}"), Demand::default())).collect();
        for vm in self.vms.values() {
            let [cpu, memory] = demands.entry(vm.node.clone()).or_default();
            *cpu += vm.demand[0];
            *memory += vm.demand[1];
        }
        demands
    }

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
            if !self.vms.contains_key(&name) {
                return;
            }
            self.wrong(format!("{name} is {:?} after it ran", status.phase));
        }
        let (Some(node), Some(pod)) = (status.node_name, status.pod_name) else {
            self.wrong(format!("{name} runs nowhere"));
            return;
        };
        let (size, use_) = (&vm.spec.resources, &vm.spec.utilization);
        let cores = size.cpu.cores().unwrap() * use_.cpu.value().unwrap();
        let bytes = size.memory.bytes().unwrap() as f64 * use_.memory.value().unwrap();
        let since = self.vms.get(&name).and_then(|before| before.leaving);
        let seen = Seen {
            demand: [cores / CORES, bytes / MEMORY],
            leaving: status.evacuation_node_name.map(|_| since.unwrap_or_else(Instant::now)),
            has_cause: status.conditions.iter().any(|condition| condition.type_ == webhook::EVICTION_REQUESTED),
            node,
            pod,
        };
        if let Some(before) = self.vms.get(&name).filter(|before| before.node != seen.node).cloned() {
            if before.leaving.is_none() || !before.has_cause {
                self.wrong(format!("{name} moved without a cause"));
            }
            if before.pod == seen.pod {
                self.wrong(format!("{name} is on another node with the same pod"));
            }
            let demands = self.demands();
            let excess = demands[&before.node][0] - mean_cpu(&demands.into_values().collect::<Vec<_>>());
            let took = before.leaving.map_or(Duration::ZERO, |since| since.elapsed());
            self.moves.push(Move { vm: name.clone(), from: before.node, to: seen.node.clone(), excess, took });
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
        let moves = |(name, vm): &(&String, &Seen)| vm.leaving.is_some() && played.get(name.as_str()) == Some(&2);
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
