//! A lower bound of the spread that any number of migrations can reach: for any prices of the nodes whose sum is 0, the spread is
//! bounded by an expression that is linear in use, which k migrations lower by no more than the k greatest gains.
//! `docs/dev/simulator.md` has the proof.

use super::{
    prices::Prices,
    problem::{Placement, Problem, ProblemVm, greatest, least},
};

/// The share of a bound that rounding errors may cost.
const ROUNDING: f64 = 1e-11;

/// The least possible n σ², by the number of migrations from 0 to that of all movable VMs.
pub(super) fn bounds(problem: &Problem) -> Vec<f64> {
    let start = Placement::start(problem);
    let movable = problem.vms.iter().filter(|vm| vm.movable && vm.node.is_some()).count();
    let mut bounds = vec![0.0; movable + 1];
    let mut prices = Prices::new(problem, &start);
    for fee in prices.fees() {
        raise(&mut bounds, problem, &start, &centered(problem, prices.at(fee)));
    }
    bounds
}

/// Raises the bounds to what these prices prove.
fn raise(bounds: &mut [f64], problem: &Problem, start: &Placement<'_>, prices: &[f64]) {
    let Linear { base, mut gains } = linear(problem, start, prices);
    gains.sort_unstable_by(|one, other| other.total_cmp(one));
    let mut lowered = 0.0;
    for (migrations, bound) in bounds.iter_mut().enumerate() {
        if migrations > 0 {
            lowered += gains.get(migrations - 1).copied().unwrap_or(0.0);
        }
        let proven = base - 2.0 * lowered - ROUNDING * (lowered + 1.0);
        *bound = greatest(*bound, proven);
    }
}

/// The bound that prices give: its value without migrations, and by VM the most that a migration lowers half of it.
pub(super) struct Linear {
    pub(super) base: f64,
    pub(super) gains: Vec<f64>,
}

pub(super) fn linear(problem: &Problem, start: &Placement<'_>, prices: &[f64]) -> Linear {
    let mut base: f64 = problem.open().map(|node| prices[node] * (2.0 * start.usage(node) - prices[node])).sum();
    let lowest = lowest_by_class(problem, prices);
    let gain = |vm: &ProblemVm| match vm.node {
        None => {
            base += 2.0 * vm.cores * lowest[vm.class];
            0.0
        }
        Some(node) if vm.movable => {
            greatest(0.0, vm.cores * (leaving(problem, start, prices, node) - lowest[vm.class]))
        }
        Some(_) => 0.0,
    };
    let gains = problem.vms.iter().map(gain).collect();
    Linear { base, gains }
}

/// By class of VMs: the lowest price of a core among the nodes that they may go to, and at most 0.
fn lowest_by_class(problem: &Problem, prices: &[f64]) -> Vec<f64> {
    let lowest = |allowed: &Vec<bool>| {
        let open = problem.open().filter(|node| allowed[*node]);
        open.map(|node| prices[node] / problem.nodes[node].cores).fold(0.0, least)
    };
    problem.allowed.iter().map(lowest).collect()
}

/// The price of a core that leaves a node.
pub(super) fn leaving(problem: &Problem, start: &Placement<'_>, prices: &[f64], node: usize) -> f64 {
    let is_over_full = start.cores[node] > problem.nodes[node].cores;
    let price = if problem.nodes[node].open { prices[node] / problem.nodes[node].cores } else { 0.0 };
    if is_over_full { greatest(0.0, price) } else { price }
}

/// The prices of open nodes without their mean.
pub(super) fn centered(problem: &Problem, mut prices: Vec<f64>) -> Vec<f64> {
    let count = problem.open().count().max(1) as f64;
    let mean = problem.open().map(|node| prices[node]).sum::<f64>() / count;
    problem.open().for_each(|node| prices[node] -= mean);
    prices
}
