//! Which VM counts on which node, and the signals of the node that result. A VM counts only on the node of the pod that its status
//! names. The sum of a node is computed anew, in the order of names, whenever one of its VMs changes, so it depends only on the
//! current VMs.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use balance::{Capacity, PressureModel};

use super::{
    meter::{Counters, Meter},
    observed::{ObservedNode, ObservedPod, ObservedVm, PodPhase},
};
use crate::launcher::Load;

/// `namespace/name`.
type Key = Arc<str>;

fn key(namespace: &str, name: &str) -> Key {
    format!("{namespace}/{name}").into()
}

#[derive(Debug)]
struct TrackedPod {
    name: Box<str>,
    node: Option<Arc<str>>,
    phase: PodPhase,
    load: Option<Load>,
}

impl TrackedPod {
    fn counts(&self) -> bool {
        self.phase == PodPhase::Running && self.node.is_some()
    }
}

/// A VM and its pods. Either may be observed before the other.
#[derive(Debug, Default)]
struct TrackedVm {
    named: Option<Box<str>>,
    pods: Vec<TrackedPod>,
    /// The pod that counts, and its node.
    counted: Option<(Box<str>, Arc<str>)>,
}

impl TrackedVm {
    fn pod(&self, name: &str) -> Option<&TrackedPod> {
        self.pods.iter().find(|pod| &*pod.name == name)
    }

    /// The pod that is to count: the one before counts until the pod that the status names is observed running.
    fn choose(&self) -> Option<&TrackedPod> {
        let named = self.named.as_deref()?;
        let before = || self.pod(&self.counted.as_ref()?.0).filter(|pod| pod.counts());
        match self.pod(named) {
            Some(pod) if pod.counts() => Some(pod),
            Some(pod) if pod.phase == PodPhase::Finished => None,
            Some(_) => before(),
            // The watch of pods is behind; or it is ahead, and the source is gone already.
            None => before().or_else(|| self.pods.iter().find(|pod| pod.counts())),
        }
    }
}

#[derive(Debug)]
struct TrackedNode {
    capacity: Option<Capacity>,
    exists: bool,
    loads: BTreeMap<Key, VmUse>,
    meter: Meter,
}

/// What a VM uses, and has used since it is on its node. As with real ones, its counter begins anew after a migration.
#[derive(Debug)]
struct VmUse {
    load: Option<Load>,
    cpu_seconds: f64,
    since: Duration,
}

impl VmUse {
    fn cpu_seconds(&self, now: Duration) -> f64 {
        let passed = now.saturating_sub(self.since).as_secs_f64();
        self.cpu_seconds + self.load.map_or(0.0, |load| load.cpu_cores) * passed
    }

    fn set(&mut self, load: Option<Load>, now: Duration) {
        self.cpu_seconds = self.cpu_seconds(now);
        self.since = self.since.max(now);
        self.load = load;
    }
}

impl TrackedNode {
    fn new(now: Duration) -> TrackedNode {
        TrackedNode { capacity: None, exists: false, loads: BTreeMap::new(), meter: Meter::new(now) }
    }

    fn refresh(&mut self, model: PressureModel, now: Duration) {
        let load = self.loads.values().filter_map(|vm| vm.load).fold(Load::default(), |sum, load| Load {
            cpu_cores: sum.cpu_cores + load.cpu_cores,
            memory_bytes: sum.memory_bytes + load.memory_bytes,
        });
        let signals = match self.capacity {
            Some(capacity) => {
                let [cpu, memory] = capacity.demand(load.cpu_cores, load.memory_bytes);
                model.signals(cpu, memory)
            }
            None => [0.0; 4],
        };
        self.meter.set(signals, now);
    }
}

#[derive(Debug, Default)]
pub struct Index {
    model: PressureModel,
    nodes: BTreeMap<Arc<str>, TrackedNode>,
    vms: HashMap<Key, TrackedVm>,
    /// The VM that each pod runs.
    vm_of_pod: HashMap<Key, Key>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub node: Arc<str>,
    pub capacity: Capacity,
    /// In the order of `balance::Signal::ALL`.
    pub signals: [f64; 4],
    pub vms: usize,
    pub counters: Counters,
}

/// A VM on a node that exists.
#[derive(Debug, Clone, PartialEq)]
pub struct VmRow {
    pub node: Arc<str>,
    /// `namespace/name`.
    pub vm: Arc<str>,
    pub cpu_seconds: f64,
    pub memory_bytes: f64,
}

/// All nodes whose size is known, by name, at the time of a scrape.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    pub rows: Vec<Row>,
}

impl Index {
    pub fn new(model: PressureModel) -> Index {
        Index { model, ..Index::default() }
    }

    pub fn apply_node(&mut self, node: &ObservedNode, now: Duration) {
        let model = self.model;
        let tracked = self.track(&node.name, now);
        if !tracked.exists {
            // VMs may have been observed before their node. The counters of the node start now.
            (tracked.exists, tracked.meter) = (true, Meter::new(now));
        } else if tracked.capacity == node.capacity {
            return;
        }
        tracked.capacity = node.capacity;
        tracked.refresh(model, now);
    }

    pub fn remove_node(&mut self, name: &str, now: Duration) {
        if let Some(tracked) = self.nodes.get_mut(name) {
            (tracked.exists, tracked.capacity) = (false, None);
            tracked.refresh(self.model, now);
            self.tidy(name);
        }
    }

    pub fn apply_pod(&mut self, pod: &ObservedPod, now: Duration) {
        let (name, vm) = (key(&pod.namespace, &pod.name), key(&pod.namespace, &pod.vm));
        if self.vm_of_pod.get(&name).is_some_and(|before| *before != vm) {
            self.remove_pod(&pod.namespace, &pod.name, now);
        }
        let node = pod.node.as_ref().map(|node| match self.nodes.get_key_value(&**node) {
            Some((known, _)) => known.clone(),
            None => Arc::from(&**node),
        });
        self.vm_of_pod.insert(name, vm.clone());
        let tracked = self.vms.entry(vm.clone()).or_default();
        tracked.pods.retain(|known| *known.name != *pod.name);
        tracked.pods.push(TrackedPod { name: pod.name.as_str().into(), node, phase: pod.phase, load: pod.load });
        self.settle(&vm, now);
    }

    pub fn remove_pod(&mut self, namespace: &str, name: &str, now: Duration) {
        let Some(vm) = self.vm_of_pod.remove(&key(namespace, name)) else { return };
        if let Some(tracked) = self.vms.get_mut(&vm) {
            tracked.pods.retain(|pod| *pod.name != *name);
        }
        self.settle(&vm, now);
    }

    pub fn apply_vm(&mut self, vm: &ObservedVm, now: Duration) {
        let name = key(&vm.namespace, &vm.name);
        let named = vm.pod.as_deref().map(Into::into);
        let tracked = self.vms.entry(name.clone()).or_default();
        if tracked.named != named {
            tracked.named = named;
            self.settle(&name, now);
        } else if tracked.named.is_none() && tracked.pods.is_empty() {
            self.vms.remove(&name);
        }
    }

    pub fn remove_vm(&mut self, namespace: &str, name: &str, now: Duration) {
        let gone = ObservedVm { namespace: namespace.to_owned(), name: name.to_owned(), pod: None };
        self.apply_vm(&gone, now);
    }

    /// How many VMs count on a node.
    pub fn counted(&self) -> usize {
        self.nodes.values().map(|tracked| tracked.loads.len()).sum()
    }

    /// The node on which a VM counts.
    pub fn node_of(&self, namespace: &str, name: &str) -> Option<&str> {
        self.vms.get(&key(namespace, name))?.counted.as_ref().map(|(_, node)| &**node)
    }

    pub fn snapshot(&self, now: Duration) -> Snapshot {
        let row = |(node, tracked): (&Arc<str>, &TrackedNode)| {
            let (signals, counters) = (tracked.meter.signals(), tracked.meter.read(now));
            let (node, vms) = (node.clone(), tracked.loads.len());
            tracked.capacity.map(|capacity| Row { node, capacity, signals, vms, counters })
        };
        Snapshot { rows: self.nodes.iter().filter_map(row).collect() }
    }

    /// All VMs whose load is known, by node and name, at the time of a scrape.
    pub fn vms(&self, now: Duration) -> Vec<VmRow> {
        let of_node = |(node, tracked): (&Arc<str>, &TrackedNode)| {
            let row = |(vm, used): (&Key, &VmUse)| {
                let (node, vm, cpu_seconds) = (node.clone(), vm.clone(), used.cpu_seconds(now));
                used.load.map(|load| VmRow { node, vm, cpu_seconds, memory_bytes: load.memory_bytes })
            };
            tracked.loads.iter().filter_map(row).collect::<Vec<_>>()
        };
        self.nodes.iter().filter(|(_, tracked)| tracked.exists).flat_map(of_node).collect()
    }

    fn track(&mut self, node: &str, now: Duration) -> &mut TrackedNode {
        self.nodes.entry(node.into()).or_insert_with(|| TrackedNode::new(now))
    }

    /// Makes a VM count on the right node. Removes the VM if it has neither a named pod nor pods.
    fn settle(&mut self, vm: &Key, now: Duration) {
        let Some(tracked) = self.vms.get_mut(vm) else { return };
        let before = tracked.counted.clone();
        let found = tracked.choose().and_then(|pod| Some(((pod.name.clone(), pod.node.clone()?), pod.load)));
        if tracked.named.is_none() && tracked.pods.is_empty() {
            self.vms.remove(vm);
        } else {
            tracked.counted = found.as_ref().map(|(counted, _)| counted.clone());
        }
        let model = self.model;
        if let Some((_, node)) = &before
            && found.as_ref().is_none_or(|((_, now_on), _)| now_on != node)
        {
            if let Some(tracked) = self.nodes.get_mut(node) {
                tracked.loads.remove(vm);
                tracked.refresh(model, now);
            }
            self.tidy(node);
        }
        if let Some(((_, node), load)) = found {
            let tracked = self.track(&node, now);
            if tracked.loads.get(vm).is_none_or(|known| known.load != load) {
                let new = || VmUse { load: None, cpu_seconds: 0.0, since: now };
                tracked.loads.entry(vm.clone()).or_insert_with(new).set(load, now);
                tracked.refresh(model, now);
            }
        }
    }

    /// Removes a node that neither exists nor has VMs.
    fn tidy(&mut self, node: &str) {
        if self.nodes.get(node).is_some_and(|tracked| !tracked.exists && tracked.loads.is_empty()) {
            self.nodes.remove(node);
        }
    }
}
