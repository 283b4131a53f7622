//! The cluster that a scenario describes: nodes and VMs by number, with names, loads, events and constraints resolved.
//!
//! A model never changes. Runs with different seeds and settings share it; what a run changes is in `engine::state`.

mod build;
mod classes;

use crate::{
    load::Shape,
    scenario::{Amount, Condition, Window},
    units::Rate,
};

pub use build::MOST_STEPS;
pub(crate) use build::{MOST_NODES, MOST_VMS};
pub(crate) use classes::Class;

/// A cluster with its VMs, their loads, and the events that a scenario plans for its nodes.
#[derive(Debug, Clone)]
pub struct ClusterModel {
    pub(crate) name: String,
    /// Seconds per step.
    pub(crate) step: u64,
    pub(crate) steps: u64,
    /// When the simulation begins, in seconds after Monday, 00:00.
    pub(crate) start: u64,
    /// All nodes of the whole simulation. Nodes that join later come last.
    pub(crate) nodes: Vec<Node>,
    /// By node; empty if the scenario states nothing about any.
    pub(crate) stated: Vec<Stated>,
    pub(crate) groups: Vec<Group>,
    pub(crate) vms: Vec<VmRecord>,
    /// The shapes of loads over time. Shape 0 is the constant 1.
    pub(crate) shapes: Vec<Shape>,
    /// The loads that change over time without tasks.
    pub(crate) varying: Vec<VmLoad>,
    /// The nodes whose own load changes over time.
    pub(crate) varying_nodes: Vec<u32>,
    pub(crate) tasks: Vec<Task>,
    /// Each event with its step, in order of time.
    pub(crate) events: Vec<(u64, NodeEvent)>,
    pub(crate) classes: Vec<Class>,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) cores: f64,
    pub(crate) memory: f64,
    pub(crate) max_vms: u32,
    /// What other pods request: thousandths of a core, and bytes.
    pub(crate) reserved: [u64; 2],
    pub(crate) cordoned: bool,
    /// Whether the node is up at the beginning.
    pub(crate) present: bool,
}

/// What the scenario states about the load of a node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stated {
    /// The cores and the bytes that the node uses besides its VMs are these times the values of the shapes.
    pub(crate) own: [f64; 2],
    pub(crate) shape: [u32; 2],
    pub(crate) signals: Option<[f64; 4]>,
    /// Whether no VM runs on the node at the beginning.
    pub(crate) starts_empty: bool,
}

/// The properties that all VMs of a group share.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) numbered: bool,
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) cores: f64,
    pub(crate) memory: f64,
    pub(crate) noise: f64,
    /// Bytes per second.
    pub(crate) dirty_rate: f64,
    pub(crate) priority: i32,
    pub(crate) migratable: bool,
    /// Why it is not, if the scenario says so.
    pub(crate) not_migratable_because: Option<String>,
    /// What a VM requests if the scenario says so: thousandths of a core, and bytes.
    pub(crate) requests: [Option<u64>; 2],
    pub(crate) class: u32,
    /// VMs with the same number here never share a node.
    pub(crate) anti_affinity: Option<u32>,
}

impl Group {
    /// The bytes that a VM requests of a node.
    pub(crate) fn requested_memory(&self) -> f64 {
        self.requests[1].map_or(self.memory, |bytes| bytes as f64)
    }
}

/// A VM in the table of all VMs. Its load is factor × shape, for CPU and for memory, plus the noise of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VmRecord {
    pub(crate) group: u32,
    /// The node that the VM starts on, if any.
    pub(crate) node: Option<u32>,
    pub(crate) shape: [u32; 2],
    pub(crate) factor: [f64; 2],
}

/// All numbers that a VM's load is computed from. They are together because a step reads those of many VMs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VmLoad {
    pub(crate) vm: u32,
    pub(crate) shape: [u32; 2],
    pub(crate) factor: [f64; 2],
    pub(crate) noise: f64,
    /// Cores and bytes of memory.
    pub(crate) size: [f64; 2],
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// The interval in steps.
    pub(crate) every: u64,
    pub(crate) count: Amount,
    pub(crate) target: TaskTarget,
    pub(crate) cpu: Amount,
    pub(crate) memory: Amount,
    pub(crate) seconds: Amount,
    pub(crate) window: Option<Window>,
    pub(crate) when: Option<Condition>,
}

impl Task {
    /// Whether it depends on where VMs run.
    pub(crate) fn depends_on_nodes(&self) -> bool {
        self.when.is_some() || !matches!(self.target, TaskTarget::Any | TaskTarget::Group(_))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum TaskTarget {
    Any,
    Group(u32),
    Hottest(u32),
    Coldest(u32),
    Random(u32),
}

/// An event of a node, which is given by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeEvent {
    Cordon(u32),
    Uncordon(u32),
    Drain(u32),
    Fail(u32),
    Recover(u32),
    Join(u32),
}

/// A VM as the scenario describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Vm {
    pub name: String,
    pub cores: f64,
    pub memory_bytes: u64,
    /// The number of the node that the VM starts on, if any.
    pub node: Option<u32>,
}

impl ClusterModel {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of all nodes, those that join later included.
    pub fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub fn vm_count(&self) -> usize {
        self.vms.len()
    }

    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Seconds per step.
    pub fn step_seconds(&self) -> u64 {
        self.step
    }

    pub fn node_name(&self, node: u32) -> &str {
        &self.nodes[node as usize].name
    }

    pub fn node_named(&self, name: &str) -> Option<u32> {
        self.nodes.iter().position(|node| node.name == name).map(|node| node as u32)
    }

    /// The cores and the bytes of memory of a node.
    pub fn node_size(&self, node: u32) -> (f64, u64) {
        let node = &self.nodes[node as usize];
        (node.cores, node.memory as u64)
    }

    /// The events of nodes with their steps, in order of time. Nodes that are cordoned from the beginning come first.
    pub fn node_events(&self) -> Vec<(u64, NodeEvent)> {
        let cordoned = (0..).zip(&self.nodes).filter(|(_, node)| node.cordoned && node.present);
        cordoned.map(|(number, _)| (0, NodeEvent::Cordon(number))).chain(self.events.iter().copied()).collect()
    }

    pub fn vm(&self, vm: u32) -> Vm {
        let group = self.group(vm);
        Vm {
            name: self.vm_name(vm),
            cores: group.cores,
            memory_bytes: group.memory as u64,
            node: self.vms[vm as usize].node,
        }
    }

    pub fn vm_name(&self, vm: u32) -> String {
        let group = self.group(vm);
        if group.numbered { format!("{}-{}", group.name, vm - group.first + 1) } else { group.name.clone() }
    }

    /// The rate at which a VM writes to its memory.
    pub fn dirty_rate(&self, vm: u32) -> Rate {
        Rate((self.group(vm).dirty_rate * 8.0) as u64)
    }

    /// Whether the load depends on where VMs run.
    pub fn depends_on_nodes(&self) -> bool {
        self.tasks.iter().any(Task::depends_on_nodes)
    }

    /// Whether no load changes over time.
    pub fn is_steady(&self) -> bool {
        self.varying.is_empty() && self.varying_nodes.is_empty() && self.tasks.is_empty()
    }

    #[inline]
    pub(crate) fn group(&self, vm: u32) -> &Group {
        &self.groups[self.vms[vm as usize].group as usize]
    }

    pub(crate) fn load_of(&self, vm: u32) -> VmLoad {
        let (VmRecord { shape, factor, .. }, group) = (self.vms[vm as usize], self.group(vm));
        VmLoad { vm, shape, factor, noise: group.noise, size: [group.cores, group.memory] }
    }

    /// The time of a step, in seconds after Monday, 00:00.
    pub(crate) fn clock(&self, step: u64) -> u64 {
        self.start + step * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{parse, shipped};

    #[test]
    fn a_vm_says_its_name_its_size_and_where_it_starts() {
        let model = ClusterModel::new(&shipped::find("hotspot").unwrap()).unwrap();
        let vm = model.vm(96);
        assert_eq!((vm.name.as_str(), vm.cores, vm.memory_bytes), ("busy-1", 4.0, 8 << 30));
        assert_eq!(vm.node.map(|node| model.node_name(node)), Some("worker-3"));
        assert!(!model.is_steady());
    }

    #[test]
    fn node_events_are_in_order_and_cordoned_nodes_come_first() {
        let model = ClusterModel::new(&shipped::find("drain").unwrap()).unwrap();
        let events = model.node_events();
        assert_eq!(events[0], (20, NodeEvent::Drain(0)), "ten minutes in steps of half a minute");
        assert_eq!(events.last(), Some(&(360, NodeEvent::Join(10))));
        assert_eq!((model.node_name(10), model.node_size(10)), ("spare", (64.0, 512 << 30)));
        assert_eq!([0, 100].map(|vm| model.dirty_rate(vm).to_string()), ["800Mbps", "3Gbps"]);
        let cordoned = "{name: t, nodes: [{name: a}, {name: b, cordoned: true}], vms: []}";
        let cordoned = ClusterModel::new(&parse(cordoned).unwrap()[0]).unwrap();
        assert_eq!(cordoned.node_events(), [(0, NodeEvent::Cordon(1))]);
    }
}
