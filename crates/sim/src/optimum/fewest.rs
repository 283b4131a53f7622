//! A lower bound of the migrations after which a cluster can be balanced: nodes above a level lose at least as many VMs as it takes if
//! their heaviest go, and nodes below get at least as many as it takes if each is the heaviest that may come. `docs/dev/simulator.md`
//! has the proof.

use super::problem::{Placement, Problem, greatest};
use crate::measure::SMALLEST_GAP;

/// Differences of use that rounding errors may cause.
const ROUNDING: f64 = 1e-9;
const LEVEL_STEPS: usize = 60;

pub(super) struct Fewest {
    /// The greatest gap with which the cluster counts as balanced, in any placement.
    pub(super) gap: f64,
    nodes: Vec<Part>,
    /// The cores of the one, two, three, ... heaviest VMs of the cluster.
    carried: Vec<f64>,
    /// VMs without a node arrive without a migration.
    unplaced: u64,
}

/// An open node.
struct Part {
    usage: f64,
    cores: f64,
    /// The cores of its one, two, three, ... heaviest movable VMs.
    leaving: Vec<f64>,
    /// The cores of the heaviest VM that may come.
    heaviest: f64,
}

impl Fewest {
    pub(super) fn new(problem: &Problem, start: &Placement<'_>) -> Self {
        let mut by_class = vec![0.0; problem.allowed.len()];
        let mut gap = SMALLEST_GAP;
        let mut all = Vec::new();
        for vm in &problem.vms {
            if vm.movable || vm.node.is_none() {
                all.push(vm.cores);
                by_class[vm.class] = greatest(by_class[vm.class], vm.cores);
            }
            if let Some(node) = vm.node.filter(|node| problem.nodes[*node].open) {
                gap = greatest(gap, vm.cores / problem.nodes[node].cores);
            }
        }
        let movable = problem.movable();
        let part = |node: usize| {
            let classes = (0..by_class.len()).filter(|class| problem.allowed[*class][node]);
            Part {
                usage: start.usage(node),
                cores: problem.nodes[node].cores,
                leaving: sums(movable[node].iter().map(|(cores, _)| *cores)),
                heaviest: classes.fold(0.0, |most, class| greatest(most, by_class[class])),
            }
        };
        let nodes: Vec<Part> = problem.open().map(part).collect();
        let gap = nodes.iter().fold(gap, |gap, node| greatest(gap, node.heaviest / node.cores));
        all.sort_unstable_by(|one: &f64, other| other.total_cmp(one));
        Self { gap, nodes, carried: sums(all.into_iter()), unplaced: problem.unplaced().len() as u64 }
    }

    /// The least number of migrations, and a level at which it may be possible. `None` means that it is impossible.
    pub(super) fn migrations(&self) -> Option<(u64, f64)> {
        let (mut low, mut high) = (-self.gap, 1.0);
        let must = |level: f64| (self.leave(level), self.arrive(level));
        let (mut at_low, mut at_high) = (must(low), must(high));
        for _ in 0..LEVEL_STEPS {
            let middle = low + (high - low) / 2.0;
            let found = must(middle);
            if found.0 > found.1 {
                (low, at_low) = (middle, found);
            } else {
                (high, at_high) = (middle, found);
            }
        }
        // Below both levels, above both, and between them.
        let cases = [(at_low.0, low), (at_high.1, high), (at_high.0.max(at_low.1), high)];
        let (least, level) = cases.into_iter().min_by_key(|(migrations, _)| *migrations)?;
        (least < u64::MAX).then_some((least, level))
    }

    /// The number of VMs that must leave nodes above the gap.
    fn leave(&self, level: f64) -> u64 {
        let of = |node: &Part| {
            let needed = (node.usage - level - self.gap - ROUNDING) * node.cores;
            count(&node.leaving, needed)
        };
        self.nodes.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The number of VMs that must arrive at nodes below the level.
    fn arrive(&self, level: f64) -> u64 {
        let (mut number, mut cores) = (0_u64, 0.0);
        for node in &self.nodes {
            let needed = (level - node.usage - ROUNDING) * node.cores;
            if needed > 0.0 {
                let each = if node.heaviest > 0.0 { libm::ceil(needed / node.heaviest) } else { f64::INFINITY };
                number = number.saturating_add(each as u64);
                cores += needed;
            }
        }
        match number.max(count(&self.carried, cores)) {
            u64::MAX => u64::MAX,
            number => number.saturating_sub(self.unplaced),
        }
    }
}

/// The number of VMs with at least these cores together; the greatest number if all have less.
fn count(sums: &[f64], needed: f64) -> u64 {
    if needed <= 0.0 {
        return 0;
    }
    let fewer = sums.partition_point(|sum| *sum < needed);
    if fewer < sums.len() { fewer as u64 + 1 } else { u64::MAX }
}

fn sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let add = |sum: &mut f64, value: f64| {
        *sum += value;
        Some(*sum)
    };
    values.scan(0.0, add).collect()
}
