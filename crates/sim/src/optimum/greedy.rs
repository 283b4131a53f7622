//! Good migrations for clusters of any size: again and again the one that lowers the spread most.
//!
//! Only VMs of the most used nodes and places on the least used ones are tried; more nodes only if none of these helps.

use super::problem::{Placement, Problem, at_most_one};

/// The numbers of nodes that are tried on either side.
const WIDTHS: [usize; 3] = [6, 24, 96];
/// The number of VMs of a node that are tried for one destination, heavier and lighter than the ideal one.
const TRIES: usize = 4;

/// A migration and what it changes of n σ².
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) vm: usize,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) change: f64,
}

pub(super) struct Greedy<'p> {
    pub(super) placement: Placement<'p>,
    /// By node: the VMs that may leave, with their cores, the heaviest first. A VM moves only once.
    leaving: Vec<Vec<(f64, usize)>>,
    /// The open nodes, and all nodes that VMs may leave, by falling use.
    open: Vec<usize>,
    sources: Vec<usize>,
    mean: f64,
}

impl<'p> Greedy<'p> {
    pub(super) fn new(problem: &'p Problem) -> Self {
        let mut placement = Placement::start(problem);
        let mut open: Vec<usize> = problem.open().collect();
        for (_, vm) in problem.unplaced() {
            open.sort_by(|one, other| placement.usage(*one).total_cmp(&placement.usage(*other)));
            if let Some(node) = open.iter().find(|node| placement.fits(vm, **node)) {
                placement.relocate(vm, *node);
            }
        }
        let leaving = problem.movable();
        let sources = (0..problem.nodes.len()).filter(|node| !leaving[*node].is_empty()).collect();
        Self { placement, leaving, open, sources, mean: 0.0 }
    }

    /// The migration that lowers the spread most, if one lowers it.
    pub(super) fn best(&mut self) -> Option<Candidate> {
        let placement = &self.placement;
        let count = self.open.len().max(1) as f64;
        self.mean = self.open.iter().map(|node| placement.usage(*node)).sum::<f64>() / count;
        let problem = placement.problem;
        let price = |node: usize| match problem.nodes[node].open {
            true => (placement.usage(node) - self.mean) / problem.nodes[node].cores,
            false => 0.0,
        };
        self.open.sort_by(|one, other| price(*one).total_cmp(&price(*other)).then(one.cmp(other)));
        self.sources.sort_by(|one, other| price(*other).total_cmp(&price(*one)).then(one.cmp(other)));
        for width in WIDTHS {
            let mut best: Option<Candidate> = None;
            for from in self.sources.iter().take(width) {
                for to in self.open.iter().take(width).filter(|to| *to != from) {
                    let found = self.between(*from, *to);
                    best = [best, found].into_iter().flatten().min_by(|one, other| one.change.total_cmp(&other.change));
                }
            }
            if best.is_some() || width >= self.open.len().max(self.sources.len()) {
                return best;
            }
        }
        None
    }

    /// The best migration from one node to another, if one lowers the spread.
    fn between(&self, from: usize, to: usize) -> Option<Candidate> {
        let placement = &self.placement;
        let nodes = &placement.problem.nodes;
        let deviation = |node: usize| if nodes[node].open { placement.usage(node) - self.mean } else { 0.0 };
        let (source, target) = (if nodes[from].open { 1.0 / nodes[from].cores } else { 0.0 }, 1.0 / nodes[to].cores);
        let slope = deviation(from) * source - deviation(to) * target;
        let count = self.open.len() as f64;
        let moved = target - source;
        let ideal = slope / (source * source + target * target - moved * moved / count);
        if slope <= 0.0 {
            return None;
        }
        let list = &self.leaving[from];
        let middle = list.partition_point(|(cores, _)| *cores > ideal);
        let heavier = list[..middle].iter().rev().take(TRIES);
        let mut best: Option<Candidate> = None;
        for side in [heavier.collect::<Vec<_>>(), list[middle..].iter().take(TRIES).collect()] {
            let fitting = side.into_iter().find(|(_, vm)| placement.fits(*vm, to));
            if let Some((_, vm)) = fitting {
                let candidate = Candidate { vm: *vm, from, to, change: self.change(*vm, from, to) };
                if candidate.change < -1e-13 && best.is_none_or(|best| candidate.change < best.change) {
                    best = Some(candidate);
                }
            }
        }
        best
    }

    /// How a migration changes n σ².
    fn change(&self, vm: usize, from: usize, to: usize) -> f64 {
        let placement = &self.placement;
        let problem = placement.problem;
        let cores = problem.vms[vm].cores;
        let difference = |node: usize, cores: f64| match problem.nodes[node].open {
            true => at_most_one((placement.cores[node] + cores) / problem.nodes[node].cores) - placement.usage(node),
            false => 0.0,
        };
        let (left, arrived) = (difference(from, -cores), difference(to, cores));
        let count = self.open.len() as f64;
        2.0 * ((placement.usage(from) - self.mean) * left + (placement.usage(to) - self.mean) * arrived)
            + left * left
            + arrived * arrived
            - (left + arrived) * (left + arrived) / count
    }

    pub(super) fn make(&mut self, candidate: Candidate) {
        self.placement.relocate(candidate.vm, candidate.to);
        self.leaving[candidate.from].retain(|(_, vm)| *vm != candidate.vm);
    }
}
