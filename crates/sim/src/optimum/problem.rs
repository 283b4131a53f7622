//! A cluster at one moment, with all that decides where a VM may run, and its placements.

use std::cmp::Ordering;

use crate::measure::{is_balanced, sigma};

/// Sums of another order differ by rounding errors.
const ROUNDING: f64 = 1e-12;

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct ProblemNode {
    pub cores: f64,
    /// The cores that it uses besides its VMs.
    pub own: f64,
    /// Whether it takes VMs. Only such nodes count in the spread.
    pub open: bool,
    /// What its VMs may take: bytes of memory, thousandths of a core, and their number.
    pub room: [f64; 3],
}

/// A VM.
#[derive(Debug, Clone, PartialEq)]
pub struct ProblemVm {
    /// The cores that it uses.
    pub cores: f64,
    /// Where it starts. A VM without a node can be placed without a migration.
    pub node: Option<usize>,
    pub movable: bool,
    /// Its line of [`Problem::allowed`].
    pub class: usize,
    /// VMs with the same number do not share a node.
    pub apart: Option<u32>,
    /// What it takes of the room of a node.
    pub takes: [f64; 3],
}

/// Which VMs to move, so that nodes are used evenly?
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Problem {
    pub nodes: Vec<ProblemNode>,
    pub vms: Vec<ProblemVm>,
    /// By class of VMs and by node: whether labels and taints allow it.
    pub allowed: Vec<Vec<bool>>,
    /// Whether room at another time may differ, so that a lower bound must not rely on it.
    pub room_varies: bool,
}

impl Problem {
    pub(super) fn may_go(&self, vm: usize, node: usize) -> bool {
        self.nodes[node].open && self.allowed[self.vms[vm].class][node]
    }

    /// By node: its movable VMs with their cores, the heaviest first.
    pub(super) fn movable(&self) -> Vec<Vec<(f64, usize)>> {
        let mut movable = vec![Vec::new(); self.nodes.len()];
        for (at, vm) in self.vms.iter().enumerate().filter(|(_, vm)| vm.movable && vm.cores > 0.0) {
            if let Some(node) = vm.node {
                movable[node].push((vm.cores, at));
            }
        }
        movable.iter_mut().for_each(|list| list.sort_by(heaviest_first));
        movable
    }

    /// The VMs without a node with their cores, the heaviest first.
    pub(super) fn unplaced(&self) -> Vec<(f64, usize)> {
        let unplaced = self.vms.iter().enumerate().filter(|(_, vm)| vm.node.is_none());
        let mut unplaced: Vec<(f64, usize)> = unplaced.map(|(at, vm)| (vm.cores, at)).collect();
        unplaced.sort_by(heaviest_first);
        unplaced
    }

    pub(super) fn open(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].open)
    }
}

/// Where each VM is.
#[derive(Debug, Clone)]
pub(super) struct Placement<'p> {
    pub(super) problem: &'p Problem,
    pub(super) node_of: Vec<Option<usize>>,
    /// By node: the cores in use, what is taken of its room, and the number of VMs that arrived.
    pub(super) cores: Vec<f64>,
    taken: Vec<[f64; 3]>,
    arrived: Vec<u32>,
    /// No VM has a greater share of an open node.
    greatest_share: f64,
}

impl<'p> Placement<'p> {
    pub(super) fn start(problem: &'p Problem) -> Self {
        let nodes = problem.nodes.len();
        let heaviest = problem.vms.iter().map(|vm| vm.cores).fold(0.0, greatest);
        let smallest = problem.open().map(|node| problem.nodes[node].cores).fold(f64::INFINITY, least);
        let mut placement = Self {
            problem,
            node_of: vec![None; problem.vms.len()],
            cores: problem.nodes.iter().map(|node| node.own).collect(),
            taken: vec![[0.0; 3]; nodes],
            arrived: vec![0; nodes],
            greatest_share: heaviest / smallest,
        };
        for (at, vm) in problem.vms.iter().enumerate() {
            if let Some(node) = vm.node {
                placement.put(at, node);
            }
        }
        placement
    }

    fn put(&mut self, vm: usize, node: usize) {
        let ProblemVm { cores, takes, node: home, .. } = &self.problem.vms[vm];
        self.node_of[vm] = Some(node);
        self.cores[node] += cores;
        self.arrived[node] += u32::from(*home != Some(node));
        for (taken, takes) in self.taken[node].iter_mut().zip(takes) {
            *taken += takes;
        }
    }

    /// Moves a VM, or brings it back to where it started.
    pub(super) fn relocate(&mut self, vm: usize, to: usize) {
        if let Some(from) = self.node_of[vm] {
            let ProblemVm { cores, takes, node: home, .. } = &self.problem.vms[vm];
            self.cores[from] -= cores;
            self.arrived[from] -= u32::from(*home != Some(from));
            for (taken, takes) in self.taken[from].iter_mut().zip(takes) {
                *taken -= takes;
            }
        }
        self.put(vm, to);
    }

    /// Whether the VM may go to the node and finds room there.
    pub(super) fn fits(&self, vm: usize, node: usize) -> bool {
        let ProblemVm { takes, apart, .. } = &self.problem.vms[vm];
        let room = self.problem.nodes[node].room;
        self.problem.may_go(vm, node)
            && (0..3).all(|kind| self.taken[node][kind] + takes[kind] <= room[kind])
            && apart.is_none_or(|apart| !self.has_apart(vm, node, apart))
    }

    /// Whether all nodes that VMs went to have room for all their VMs.
    pub(super) fn is_possible(&self) -> bool {
        let fits = |node: usize| (0..3).all(|kind| self.taken[node][kind] <= self.problem.nodes[node].room[kind]);
        let alone = |vm: usize| match (self.node_of[vm], self.problem.vms[vm].apart) {
            (Some(node), Some(apart)) if self.problem.vms[vm].node != Some(node) => !self.has_apart(vm, node, apart),
            _ => true,
        };
        (0..self.cores.len()).all(|node| self.arrived[node] == 0 || fits(node)) && (0..self.node_of.len()).all(alone)
    }

    fn has_apart(&self, vm: usize, node: usize, apart: u32) -> bool {
        let shares = |other: usize| self.problem.vms[other].apart == Some(apart) && self.node_of[other] == Some(node);
        (0..self.node_of.len()).any(|other| other != vm && shares(other))
    }

    /// The CPU use of a node; demand beyond its cores does not count.
    pub(super) fn usage(&self, node: usize) -> f64 {
        at_most_one(self.cores[node] / self.problem.nodes[node].cores)
    }

    pub(super) fn spread(&self) -> f64 {
        sigma(&self.problem.open().map(|node| self.usage(node)).collect::<Vec<f64>>())
    }

    pub(super) fn is_balanced(&self) -> bool {
        let (mut low, mut high, mut heaviest) = (f64::INFINITY, 0.0, 0.0);
        for node in self.problem.open() {
            let usage = self.usage(node);
            (low, high) = (least(low, usage), greatest(high, usage));
        }
        if low > high || !is_balanced(high - low - ROUNDING, self.greatest_share) {
            return low > high;
        }
        for (vm, node) in self.problem.vms.iter().zip(&self.node_of) {
            if let Some(node) = node.map(|node| &self.problem.nodes[node]).filter(|node| node.open) {
                heaviest = greatest(heaviest, vm.cores / node.cores);
            }
        }
        is_balanced(high - low - ROUNDING, heaviest)
    }
}

pub(super) fn at_most_one(value: f64) -> f64 {
    least(value, 1.0)
}

pub(super) fn least(one: f64, other: f64) -> f64 {
    if other < one { other } else { one }
}

pub(super) fn greatest(one: f64, other: f64) -> f64 {
    if other > one { other } else { one }
}

pub(super) fn heaviest_first(one: &(f64, usize), other: &(f64, usize)) -> Ordering {
    other.0.total_cmp(&one.0).then(one.1.cmp(&other.1))
}
