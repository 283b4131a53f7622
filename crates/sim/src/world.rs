//! What a scenario comes to: every node and VM by number, with names, loads, events and constraints resolved.
//!
//! A world never changes. Runs share it, whatever their seed and settings.

mod build;
mod classes;

use crate::{
    load::Shape,
    scenario::{Amount, Window},
};

pub(crate) use build::{MOST_NODES, MOST_VMS};
pub(crate) use classes::Class;

/// A cluster with its VMs and everything that will happen to them by itself.
#[derive(Debug, Clone)]
pub struct World {
    pub(crate) name: String,
    /// Seconds per step.
    pub(crate) step: u64,
    pub(crate) steps: u64,
    /// Seconds after Monday, 00:00 at which it begins.
    pub(crate) start: u64,
    /// All nodes that there will ever be, those that join later at the end.
    pub(crate) nodes: Vec<Node>,
    pub(crate) groups: Vec<Group>,
    pub(crate) vms: Vec<Vm>,
    /// What changes over time; number 0 is the constant 1.
    pub(crate) shapes: Vec<Shape>,
    /// VMs whose load changes by itself, with all that it takes to know how.
    pub(crate) varying: Vec<Varying>,
    pub(crate) tasks: Vec<Task>,
    /// In order of time.
    pub(crate) events: Vec<(u64, Happening)>,
    pub(crate) classes: Vec<Class>,
    /// How many different words VMs are kept apart by.
    pub(crate) aparts: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) cores: f64,
    pub(crate) memory: f64,
    pub(crate) max_vms: u32,
    pub(crate) cordoned: bool,
    /// Whether it is there from the beginning.
    pub(crate) present: bool,
}

/// What all VMs of a group have in common.
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
    pub(crate) class: u32,
    pub(crate) apart: Option<u32>,
}

/// A VM: its load is factor × shape of both CPU and memory, and the noise of its group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vm {
    pub(crate) group: u32,
    /// Where it runs at first, if somewhere.
    pub(crate) node: Option<u32>,
    pub(crate) shape: [u32; 2],
    pub(crate) factor: [f64; 2],
}

/// What the load of a VM is made of, in one place: going through many of these is what a step with changing load costs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Varying {
    pub(crate) vm: u32,
    pub(crate) shape: [u32; 2],
    pub(crate) factor: [f64; 2],
    pub(crate) noise: f64,
    /// Cores and bytes.
    pub(crate) size: [f64; 2],
}

#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// In steps.
    pub(crate) every: u64,
    pub(crate) count: Amount,
    pub(crate) target: Target,
    pub(crate) cpu: Amount,
    pub(crate) memory: Amount,
    pub(crate) seconds: Amount,
    pub(crate) window: Option<Window>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Any,
    Group(u32),
    Hottest(u32),
    Random(u32),
}

/// Something that happens to a node, which is given by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    Cordon(u32),
    Uncordon(u32),
    Drain(u32),
    Fail(u32),
    Recover(u32),
    Join(u32),
}

impl World {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many nodes there will ever be.
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

    pub fn vm_name(&self, vm: u32) -> String {
        let group = self.group(vm);
        if group.numbered { format!("{}-{}", group.name, vm - group.first + 1) } else { group.name.clone() }
    }

    #[inline]
    pub(crate) fn group(&self, vm: u32) -> &Group {
        &self.groups[self.vms[vm as usize].group as usize]
    }

    pub(crate) fn load_of(&self, vm: u32) -> Varying {
        let (Vm { shape, factor, .. }, group) = (self.vms[vm as usize], self.group(vm));
        Varying { vm, shape, factor, noise: group.noise, size: [group.cores, group.memory] }
    }

    /// Seconds after Monday, 00:00 at a step.
    pub(crate) fn clock(&self, step: u64) -> u64 {
        self.start + step * self.step
    }
}
