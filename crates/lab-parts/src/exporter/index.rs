//! Which guest counts on which node, and what that makes of the node's signals.
//!
//! A VM counts where the pod runs that its status names, and nowhere else: during a migration that is the source until
//! the hand-over, and the target from then on. Pods and VMs come by different watches, one of which may be ahead: until the
//! pod that is named has been seen running, the one that counted before goes on counting, if it still runs.
//!
//! Sums are made anew over the guests of a node, in the order of their names, whenever one of them changes. So they
//! depend on what is there now and not on how it came about.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use balance::{Capacity, PressureModel};

use super::{
    meter::{Counters, Meter},
    sight::{NodeSeen, PodSeen, Stage, VmSeen},
};
use crate::launcher::Load;

/// `namespace/name`.
type Key = Arc<str>;

fn key(namespace: &str, name: &str) -> Key {
    format!("{namespace}/{name}").into()
}

#[derive(Debug)]
struct Pod {
    name: Box<str>,
    node: Option<Arc<str>>,
    stage: Stage,
    load: Option<Load>,
}

impl Pod {
    fn counts(&self) -> bool {
        self.stage == Stage::Running && self.node.is_some()
    }
}

/// A VM and the pods that play it, either of which may be known before the other.
#[derive(Debug, Default)]
struct Guest {
    named: Option<Box<str>>,
    pods: Vec<Pod>,
    /// The pod that counts, and the node that it counts on.
    counted: Option<(Box<str>, Arc<str>)>,
}

impl Guest {
    fn pod(&self, name: &str) -> Option<&Pod> {
        self.pods.iter().find(|pod| &*pod.name == name)
    }

    /// The pod that counts from now on.
    fn choose(&self) -> Option<&Pod> {
        let named = self.named.as_deref()?;
        let before = || self.pod(&self.counted.as_ref()?.0).filter(|pod| pod.counts());
        match self.pod(named) {
            Some(pod) if pod.counts() => Some(pod),
            Some(pod) if pod.stage == Stage::Finished => None,
            Some(_) => before(),
            // The watch of pods is behind, or ahead and the source is gone already.
            None => before().or_else(|| self.pods.iter().find(|pod| pod.counts())),
        }
    }
}

#[derive(Debug)]
struct Place {
    capacity: Option<Capacity>,
    is_node: bool,
    guests: BTreeMap<Key, Option<Load>>,
    meter: Meter,
}

impl Place {
    fn new(now: Duration) -> Place {
        Place { capacity: None, is_node: false, guests: BTreeMap::new(), meter: Meter::new(now) }
    }

    fn refresh(&mut self, model: PressureModel, now: Duration) {
        let load = self.guests.values().flatten().fold(Load::default(), |sum, load| Load {
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

/// What the exporter knows.
#[derive(Debug, Default)]
pub struct Index {
    model: PressureModel,
    places: BTreeMap<Arc<str>, Place>,
    guests: HashMap<Key, Guest>,
    /// The VM that each pod plays.
    plays: HashMap<Key, Key>,
}

/// A node at the time of a scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub node: Arc<str>,
    pub capacity: Capacity,
    /// In the order of `balance::Signal::ALL`.
    pub signals: [f64; 4],
    pub vms: usize,
    pub counters: Counters,
}

/// All nodes whose size is known, in the order of their names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    pub rows: Vec<Row>,
}

impl Index {
    pub fn new(model: PressureModel) -> Index {
        Index { model, ..Index::default() }
    }

    pub fn apply_node(&mut self, node: &NodeSeen, now: Duration) {
        let model = self.model;
        let place = self.place(&node.name, now);
        if !place.is_node {
            // Guests may have been known before their node; the node's time starts here.
            (place.is_node, place.meter) = (true, Meter::new(now));
        } else if place.capacity == node.capacity {
            return;
        }
        place.capacity = node.capacity;
        place.refresh(model, now);
    }

    pub fn remove_node(&mut self, name: &str, now: Duration) {
        if let Some(place) = self.places.get_mut(name) {
            (place.is_node, place.capacity) = (false, None);
            place.refresh(self.model, now);
            self.tidy(name);
        }
    }

    pub fn apply_pod(&mut self, pod: &PodSeen, now: Duration) {
        let (name, vm) = (key(&pod.namespace, &pod.name), key(&pod.namespace, &pod.vm));
        if self.plays.get(&name).is_some_and(|before| *before != vm) {
            self.remove_pod(&pod.namespace, &pod.name, now);
        }
        let node = pod.node.as_ref().map(|node| match self.places.get_key_value(&**node) {
            Some((known, _)) => known.clone(),
            None => Arc::from(&**node),
        });
        self.plays.insert(name, vm.clone());
        let guest = self.guests.entry(vm.clone()).or_default();
        guest.pods.retain(|known| *known.name != *pod.name);
        guest.pods.push(Pod { name: pod.name.as_str().into(), node, stage: pod.stage, load: pod.load });
        self.settle(&vm, now);
    }

    pub fn remove_pod(&mut self, namespace: &str, name: &str, now: Duration) {
        let Some(vm) = self.plays.remove(&key(namespace, name)) else { return };
        if let Some(guest) = self.guests.get_mut(&vm) {
            guest.pods.retain(|pod| *pod.name != *name);
        }
        self.settle(&vm, now);
    }

    pub fn apply_vm(&mut self, vm: &VmSeen, now: Duration) {
        let name = key(&vm.namespace, &vm.name);
        let named = vm.pod.as_deref().map(Into::into);
        let guest = self.guests.entry(name.clone()).or_default();
        if guest.named != named {
            guest.named = named;
            self.settle(&name, now);
        } else if guest.named.is_none() && guest.pods.is_empty() {
            self.guests.remove(&name);
        }
    }

    pub fn remove_vm(&mut self, namespace: &str, name: &str, now: Duration) {
        let gone = VmSeen { namespace: namespace.to_owned(), name: name.to_owned(), pod: None };
        self.apply_vm(&gone, now);
    }

    /// The guests that count somewhere.
    pub fn counted(&self) -> usize {
        self.places.values().map(|place| place.guests.len()).sum()
    }

    /// Where a VM counts.
    pub fn node_of(&self, namespace: &str, name: &str) -> Option<&str> {
        self.guests.get(&key(namespace, name))?.counted.as_ref().map(|(_, node)| &**node)
    }

    pub fn snapshot(&self, now: Duration) -> Snapshot {
        let row = |(node, place): (&Arc<str>, &Place)| {
            let (signals, counters) = (place.meter.signals(), place.meter.read(now));
            let (node, vms) = (node.clone(), place.guests.len());
            place.capacity.map(|capacity| Row { node, capacity, signals, vms, counters })
        };
        Snapshot { rows: self.places.iter().filter_map(row).collect() }
    }

    fn place(&mut self, node: &str, now: Duration) -> &mut Place {
        self.places.entry(node.into()).or_insert_with(|| Place::new(now))
    }

    /// Makes a guest count where it now has to, and forgets it if nothing is known of it.
    fn settle(&mut self, vm: &Key, now: Duration) {
        let Some(guest) = self.guests.get_mut(vm) else { return };
        let before = guest.counted.clone();
        let found = guest.choose().and_then(|pod| Some(((pod.name.clone(), pod.node.clone()?), pod.load)));
        if guest.named.is_none() && guest.pods.is_empty() {
            self.guests.remove(vm);
        } else {
            guest.counted = found.as_ref().map(|(counted, _)| counted.clone());
        }
        let model = self.model;
        if let Some((_, node)) = &before
            && found.as_ref().is_none_or(|((_, now_on), _)| now_on != node)
        {
            if let Some(place) = self.places.get_mut(node) {
                place.guests.remove(vm);
                place.refresh(model, now);
            }
            self.tidy(node);
        }
        if let Some(((_, node), load)) = found {
            let place = self.place(&node, now);
            if place.guests.get(vm) != Some(&load) {
                place.guests.insert(vm.clone(), load);
                place.refresh(model, now);
            }
        }
    }

    fn tidy(&mut self, node: &str) {
        if self.places.get(node).is_some_and(|place| !place.is_node && place.guests.is_empty()) {
            self.places.remove(node);
        }
    }
}
