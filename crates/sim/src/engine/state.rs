//! The state of the cluster in a run: where VMs run, what they use, and the signals that follow.
//! Derived values depend on the present placement and loads alone, not on earlier moves: lists of VMs are sorted, the
//! use of a changed node is summed again over its list, and requests are counted in whole numbers.

use balance::{Means, PressureModel, Signals};

use crate::{
    model::{ClusterModel, Group, Node},
    scenario::Loads,
    settings::RunSettings,
};

pub(crate) const NOWHERE: u32 = u32::MAX;

/// What a VM requests of a node: memory in bytes and CPU in thousandths of a core.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) memory: u64,
    pub(crate) cpu: u64,
}

/// What other pods request of a node.
fn reserved(node: &Node) -> Request {
    let [cpu, memory] = node.reserved;
    Request { memory, cpu }
}

#[derive(Debug)]
pub(crate) struct ClusterState<'m> {
    model: &'m ClusterModel,
    pressure: PressureModel,
    loads: Loads,
    is_first_step: bool,
    cpu_overcommit: f64,
    /// By node: its VMs in order, the sum of requests, and the VMs that will arrive.
    vms: Vec<Vec<u32>>,
    requested: Vec<Request>,
    /// By node: the cores and bytes that it uses itself. It is empty if no node does.
    own: Vec<[f64; 2]>,
    arriving: Vec<u32>,
    cordoned: Vec<bool>,
    slot_of: Vec<u32>,
    /// The nodes that are up, in order. A slot is a position in this list; signals are by slot.
    slots: Vec<u32>,
    signals: Signals,
    means: Means,
    heaviest: Vec<f64>,
    /// By slot: cores and bytes in use. It is valid where the slot is not dirty.
    used: Vec<[f64; 2]>,
    cordons: usize,
    /// By VM: cores and bytes in use, and its node.
    usage: Vec<[f64; 2]>,
    node_of: Vec<u32>,
    /// The slots whose signals are out of date.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
}

impl<'m> ClusterState<'m> {
    pub(crate) fn new(model: &'m ClusterModel, settings: &RunSettings) -> Self {
        let RunSettings { pressure, loads, cpu_overcommit, .. } = *settings;
        let nodes = model.nodes.len();
        let mut state = Self {
            model,
            pressure,
            loads,
            is_first_step: true,
            cpu_overcommit,
            vms: vec![Vec::new(); nodes],
            requested: model.nodes.iter().map(reserved).collect(),
            own: model.stated.iter().map(|stated| stated.own).collect(),
            arriving: vec![0; nodes],
            cordoned: model.nodes.iter().map(|node| node.cordoned).collect(),
            slot_of: vec![NOWHERE; nodes],
            slots: Vec::with_capacity(nodes),
            signals: Signals::new(),
            means: Means::default(),
            heaviest: Vec::new(),
            used: Vec::new(),
            cordons: 0,
            usage: vec![[0.0; 2]; model.vms.len()],
            node_of: vec![NOWHERE; model.vms.len()],
            dirty: Vec::new(),
            is_dirty: Vec::new(),
        };
        for (vm, spec) in model.vms.iter().enumerate() {
            if let Some(node) = spec.node {
                // VMs come in order of their numbers, so the list is sorted.
                state.vms[node as usize].push(vm as u32);
                state.node_of[vm] = node;
                state.add_request(vm as u32, node);
            }
        }
        let present = |node: &u32| model.nodes[*node as usize].present;
        state.slots = (0..nodes as u32).filter(present).collect();
        state.number_slots();
        state
    }

    pub(crate) fn request(&self, vm: u32) -> Request {
        let group: &Group = self.model.group(vm);
        let cpu = group.requests[0].unwrap_or((group.cores * 1000.0 / self.cpu_overcommit) as u64);
        Request { memory: group.requested_memory() as u64, cpu }
    }

    /// The nodes that are up.
    pub(crate) fn slots(&self) -> &[u32] {
        &self.slots
    }

    pub(crate) fn signals(&self) -> &Signals {
        &self.signals
    }

    pub(crate) fn means(&self) -> &Means {
        &self.means
    }

    /// By slot: the heaviest VM's CPU use as a share of the node.
    pub(crate) fn heaviest(&self) -> &[f64] {
        &self.heaviest
    }

    pub(crate) fn vms(&self, node: u32) -> &[u32] {
        &self.vms[node as usize]
    }

    pub(crate) fn requested(&self, node: u32) -> Request {
        self.requested[node as usize]
    }

    /// The VMs on the node and those that will arrive.
    pub(crate) fn vm_count(&self, node: u32) -> u32 {
        self.vms[node as usize].len() as u32 + self.arriving[node as usize]
    }

    pub(crate) fn node_of(&self, vm: u32) -> u32 {
        self.node_of[vm as usize]
    }

    pub(crate) fn usage(&self, vm: u32) -> [f64; 2] {
        self.usage[vm as usize]
    }

    pub(crate) fn is_open(&self, node: u32) -> bool {
        !self.cordoned[node as usize]
    }

    /// The number of cordoned nodes among those that are up.
    pub(crate) fn cordons(&self) -> usize {
        self.cordons
    }

    pub(crate) fn set_cordoned(&mut self, node: u32, cordoned: bool) {
        self.cordoned[node as usize] = cordoned;
        self.count_cordons();
    }

    fn count_cordons(&mut self) {
        self.cordons = self.slots.iter().filter(|node| self.cordoned[**node as usize]).count();
    }

    /// Bytes in use on a node, with the same bits as in its signal.
    pub(crate) fn memory_used(&self, node: u32) -> f64 {
        self.used(node)[1]
    }

    /// Cores and bytes in use on a node.
    pub(crate) fn used(&self, node: u32) -> [f64; 2] {
        match self.slot_of[node as usize] {
            NOWHERE => self.sum(node).0,
            slot if self.is_dirty[slot as usize] => self.sum(node).0,
            slot => self.used[slot as usize],
        }
    }

    pub(crate) fn set_usage(&mut self, vm: u32, usage: [f64; 2]) {
        let old = &mut self.usage[vm as usize];
        if *old != usage {
            *old = usage;
            self.mark_dirty(self.node_of[vm as usize]);
        }
    }

    /// Sets the cores and bytes that a node uses itself.
    pub(crate) fn set_own(&mut self, node: u32, own: [f64; 2]) {
        if std::mem::replace(&mut self.own[node as usize], own) != own {
            self.mark_dirty(node);
        }
    }

    /// Adds the request of a VM to a node, which may not run it yet.
    pub(crate) fn add_request(&mut self, vm: u32, node: u32) {
        let request = self.request(vm);
        let requested = &mut self.requested[node as usize];
        requested.memory += request.memory;
        requested.cpu += request.cpu;
    }

    pub(crate) fn remove_request(&mut self, vm: u32, node: u32) {
        let request = self.request(vm);
        let requested = &mut self.requested[node as usize];
        requested.memory -= request.memory;
        requested.cpu -= request.cpu;
    }

    /// Reserves room for a VM that will arrive.
    pub(crate) fn add_arrival(&mut self, vm: u32, node: u32) {
        self.arriving[node as usize] += 1;
        self.add_request(vm, node);
    }

    pub(crate) fn remove_arrival(&mut self, vm: u32, node: u32) {
        self.arriving[node as usize] -= 1;
        self.remove_request(vm, node);
    }

    /// Moves a VM to another node, or to no node.
    pub(crate) fn relocate(&mut self, vm: u32, to: u32) {
        let from = std::mem::replace(&mut self.node_of[vm as usize], to);
        if from != NOWHERE {
            let list = &mut self.vms[from as usize];
            if let Ok(at) = list.binary_search(&vm) {
                list.remove(at);
            }
            self.remove_request(vm, from);
            self.mark_dirty(from);
        }
        if to != NOWHERE {
            let list = &mut self.vms[to as usize];
            if let Err(at) = list.binary_search(&vm) {
                list.insert(at, vm);
            }
            self.add_request(vm, to);
            self.mark_dirty(to);
        }
    }

    pub(crate) fn bring_up(&mut self, node: u32) {
        if let Err(at) = self.slots.binary_search(&node) {
            self.slots.insert(at, node);
            self.number_slots();
        }
    }

    pub(crate) fn take_down(&mut self, node: u32) {
        if let Ok(at) = self.slots.binary_search(&node) {
            self.slots.remove(at);
            self.number_slots();
        }
    }

    fn number_slots(&mut self) {
        self.slot_of.fill(NOWHERE);
        for (slot, node) in self.slots.iter().enumerate() {
            self.slot_of[*node as usize] = slot as u32;
        }
        let count = self.slots.len();
        self.signals = Signals::idle(count);
        self.means.reset(&self.signals);
        self.heaviest = vec![0.0; count];
        self.used = vec![[0.0; 2]; count];
        self.is_dirty = vec![true; count];
        self.dirty = (0..count as u32).collect();
        self.count_cordons();
    }

    fn mark_dirty(&mut self, node: u32) {
        if node == NOWHERE {
            return;
        }
        let slot = self.slot_of[node as usize];
        if slot != NOWHERE && !std::mem::replace(&mut self.is_dirty[slot as usize], true) {
            self.dirty.push(slot);
        }
    }

    /// Updates the signals of the nodes that changed.
    pub(crate) fn refresh(&mut self) {
        if self.dirty.is_empty() {
            return;
        }
        for at in 0..self.dirty.len() {
            let slot = self.dirty[at] as usize;
            self.is_dirty[slot] = false;
            let node = self.slots[slot];
            let spec = &self.model.nodes[node as usize];
            let ([cpu, memory], heaviest) = self.sum(node);
            self.heaviest[slot] = heaviest / spec.cores;
            self.used[slot] = [cpu, memory];
            let derived = self.pressure.signals(cpu / spec.cores, memory / spec.memory);
            self.signals.set(slot, self.measured(node).unwrap_or(derived));
        }
        // An update costs a block of 256 nodes. If more than one node in 64 changed, a reset is cheaper.
        if self.dirty.len() * 64 > self.slots.len() {
            self.means.reset(&self.signals);
        } else {
            for slot in &self.dirty {
                self.means.update(&self.signals, *slot as usize);
            }
        }
        self.dirty.clear();
    }

    /// The signals that the scenario states for a node, as long as they count.
    fn measured(&self, node: u32) -> Option<[f64; 4]> {
        let stated = self.model.stated.get(node as usize)?;
        let counts = self.is_first_step || (stated.starts_empty && self.vms[node as usize].is_empty());
        stated.signals.filter(|_| counts && self.loads == Loads::Stated)
    }

    /// From now on the signals of nodes with VMs follow from their VMs.
    pub(crate) fn end_first_step(&mut self) {
        self.is_first_step = false;
        for node in 0..self.model.stated.len() as u32 {
            self.mark_dirty(node);
        }
    }

    /// Cores and bytes in use on a node, and the cores of its heaviest VM. The shape of the sum depends on the list
    /// alone.
    fn sum(&self, node: u32) -> ([f64; 2], f64) {
        let mut lanes = [[0.0_f64; 2]; 4];
        let mut heaviest = [0.0_f64; 4];
        let (fours, rest) = self.vms[node as usize].as_chunks::<4>();
        for four in fours {
            for (lane, vm) in four.iter().enumerate() {
                let usage = self.usage[*vm as usize];
                lanes[lane] = [lanes[lane][0] + usage[0], lanes[lane][1] + usage[1]];
                heaviest[lane] = if usage[0] > heaviest[lane] { usage[0] } else { heaviest[lane] };
            }
        }
        for (lane, vm) in rest.iter().enumerate() {
            let usage = self.usage[*vm as usize];
            lanes[lane] = [lanes[lane][0] + usage[0], lanes[lane][1] + usage[1]];
            heaviest[lane] = if usage[0] > heaviest[lane] { usage[0] } else { heaviest[lane] };
        }
        let total = |at: usize| (lanes[0][at] + lanes[1][at]) + (lanes[2][at] + lanes[3][at]);
        let most = heaviest.iter().fold(0.0, |most, value| if *value > most { *value } else { most });
        let own = self.own.get(node as usize).copied().unwrap_or([0.0; 2]);
        ([total(0) + own[0], total(1) + own[1]], most)
    }
}
