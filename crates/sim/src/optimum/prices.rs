//! Prices of nodes that make the lower bound of `bound` high: the optimum if VMs could be split and each cost a fee.
//! In that optimum the nodes that receive load have the same price per core, the level. A node gives its VMs away, the
//! heaviest first, as long as a VM brings more than the fee. The level is where what leaves equals what arrives.

use super::problem::{Placement, Problem, greatest, least};

const LEVEL_STEPS: usize = 48;
const MEAN_STEPS: usize = 12;
/// The number of fees, half of them evenly spaced and half of them in even ratios.
const FEES: usize = 80;

pub(super) struct Prices<'p> {
    problem: &'p Problem,
    usage: Vec<f64>,
    /// By node: its movable VMs with their cores, the heaviest first.
    movable: Vec<Vec<(f64, usize)>>,
    /// The cores of VMs without a node.
    unplaced: f64,
    /// By node: whether a VM of another node may come.
    receives: Vec<bool>,
    /// The nodes of each part of the cluster within which VMs can move.
    parts: Vec<Vec<usize>>,
    mean: f64,
}

impl<'p> Prices<'p> {
    pub(super) fn new(problem: &'p Problem, start: &Placement<'_>) -> Self {
        let nodes = problem.nodes.len();
        let mut homes = vec![vec![0_u32; nodes]; problem.allowed.len()];
        let mut movers = vec![0_u32; problem.allowed.len()];
        for vm in problem.vms.iter().filter(|vm| vm.movable && vm.cores > 0.0) {
            movers[vm.class] += 1;
            if let Some(node) = vm.node {
                homes[vm.class][node] += 1;
            }
        }
        let may_come = |node: usize, class: usize| problem.allowed[class][node] && movers[class] > homes[class][node];
        let receives =
            |node: usize| problem.nodes[node].open && (0..problem.allowed.len()).any(|class| may_come(node, class));
        let unplaced = problem.unplaced().iter().map(|(cores, _)| cores).sum();
        let usage: Vec<f64> = (0..nodes).map(|node| start.usage(node)).collect();
        let open: Vec<f64> = problem.open().map(|node| usage[node]).collect();
        Self {
            problem,
            movable: problem.movable(),
            unplaced,
            receives: (0..nodes).map(receives).collect(),
            parts: parts(problem, &homes),
            mean: open.iter().sum::<f64>() / open.len().max(1) as f64,
            usage,
        }
    }

    /// Fees from the least with which nothing moves down to none.
    pub(super) fn fees(&self) -> Vec<f64> {
        let per_core = |node: usize| (self.usage[node] - self.mean) / self.problem.nodes[node].cores;
        let (mut low, mut high) = (0.0, 0.0);
        for price in self.problem.open().map(per_core) {
            (low, high) = (least(low, price), greatest(high, price));
        }
        let heaviest =
            self.movable.iter().filter_map(|list| list.first()).fold(0.0, |most, (cores, _)| greatest(most, *cores));
        let most = heaviest * (high - low);
        let half = FEES / 2;
        let even = (0..=half).map(|step| most * (half - step) as f64 / half as f64);
        let mut ratio = 1.0;
        let ratios = (0..half).map(|_| {
            ratio *= 0.8;
            most * ratio
        });
        even.chain(ratios).collect()
    }

    /// The price of each node, with this fee.
    pub(super) fn at(&mut self, fee: f64) -> Vec<f64> {
        let mut prices = vec![0.0; self.usage.len()];
        let count = self.problem.open().count().max(1) as f64;
        for _ in 0..MEAN_STEPS {
            for part in &self.parts {
                let level = self.level(part, fee);
                for node in part.iter().filter(|node| self.problem.nodes[**node].open) {
                    prices[*node] = self.price(*node, fee, level);
                }
            }
            let off = self.problem.open().map(|node| prices[node]).sum::<f64>() / count;
            if off < 1e-9 && off > -1e-9 {
                break;
            }
            self.mean += off;
        }
        prices
    }

    /// The price of a core at which as much arrives as leaves.
    fn level(&self, nodes: &[usize], fee: f64) -> f64 {
        let (mut low, mut high) = (0.0_f64, 0.0_f64);
        for node in nodes {
            let price = (self.usage[*node] - self.mean) / self.problem.nodes[*node].cores;
            (low, high) = (least(low, price), greatest(high, price));
        }
        for _ in 0..LEVEL_STEPS {
            let middle = low + (high - low) / 2.0;
            if self.surplus(nodes, fee, middle) > 0.0 { low = middle } else { high = middle }
        }
        low + (high - low) / 2.0
    }

    /// The cores that leave, without those that arrive.
    fn surplus(&self, nodes: &[usize], fee: f64, level: f64) -> f64 {
        let of = |node: &usize| {
            let cores = self.problem.nodes[*node].cores;
            if self.problem.nodes[*node].open {
                (self.usage[*node] - self.mean - self.price(*node, fee, level)) * cores
            } else {
                self.movable[*node].iter().map(|(moved, _)| moved).filter(|moved| **moved * -level > fee).sum()
            }
        };
        nodes.iter().map(of).sum::<f64>() + if level < 0.0 { self.unplaced } else { 0.0 }
    }

    /// The price of an open node at this level: what remains when it gave away what is worth the fee, or the level.
    fn price(&self, node: usize, fee: f64, level: f64) -> f64 {
        let cores = self.problem.nodes[node].cores;
        let mut price = self.usage[node] - self.mean;
        if self.receives[node] && price < level * cores {
            return level * cores;
        }
        for (moved, _) in &self.movable[node] {
            let least = cores * (level + fee / moved);
            if price <= least {
                break;
            }
            price -= moved / cores;
            if price <= least {
                return least;
            }
        }
        price
    }
}

/// The nodes of each part of the cluster: those that a class of VMs runs on or may go to are in the same part.
fn parts(problem: &Problem, homes: &[Vec<u32>]) -> Vec<Vec<usize>> {
    let nodes = problem.nodes.len();
    let mut part_of: Vec<usize> = (0..nodes).collect();
    for (allowed, homes) in problem.allowed.iter().zip(homes) {
        let belongs = |node: &usize| homes[*node] > 0 || allowed[*node] && problem.nodes[*node].open;
        let mut joined: Vec<usize> = (0..nodes).filter(belongs).map(|node| part_of[node]).collect();
        joined.sort_unstable();
        joined.dedup();
        let Some(first) = joined.first().copied() else { continue };
        let is_joined = |part: &&mut usize| joined.binary_search(part).is_ok();
        part_of.iter_mut().filter(is_joined).for_each(|part| *part = first);
    }
    let mut parts = vec![Vec::new(); nodes];
    part_of.iter().enumerate().for_each(|(node, part)| parts[*part].push(node));
    parts.retain(|part: &Vec<usize>| !part.is_empty());
    parts
}
