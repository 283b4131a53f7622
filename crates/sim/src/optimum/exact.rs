//! The optimum of small clusters, by branch and bound over sets of migrations.
//! VMs are decided in a fixed order: each stays, or goes to a node. What the VMs that are decided did and the greatest
//! gains of the others bound the spread (see `bound`), so that most sets are never looked at.

use super::{
    bound::{Linear, centered, leaving, linear},
    prices::Prices,
    problem::{Placement, Problem, least},
};

/// The number of movable VMs up to which clusters are searched.
pub(super) const MOST_MOVABLE: usize = 24;
/// The number of prices that are used for each number of migrations.
const PRICES: usize = 6;
/// Solutions that differ by no more than this in n σ² are equal.
const EQUAL: f64 = 1e-13;

/// What is searched for.
#[derive(Clone, Copy, PartialEq)]
enum Goal {
    LeastSpread,
    Balanced,
}

pub(super) struct Search<'p> {
    problem: &'p Problem,
    movable: Vec<usize>,
    all_prices: Vec<Line>,
    /// The lines that are used now.
    lines: Vec<usize>,
    placement: Placement<'p>,
    goal: Goal,
    /// The number of migrations that are allowed.
    most: usize,
    /// Only an n σ² below this is of use.
    limit: f64,
    /// How many more placements may be looked at.
    budget: u64,
}

/// A lower bound that is linear in the use of nodes.
struct Line {
    base: f64,
    /// By node: the price of a core that leaves, and of one that arrives.
    leaving: Vec<f64>,
    arriving: Vec<f64>,
    /// By position and number: the sum of the greatest gains of the VMs from that position on.
    greatest: Vec<Vec<f64>>,
}

impl Line {
    fn new(problem: &Problem, start: &Placement<'_>, movable: &[usize], prices: &[f64]) -> Self {
        let Linear { base, gains } = linear(problem, start, prices);
        let greatest = |position: usize| {
            let mut rest: Vec<f64> = movable[position..].iter().map(|vm| gains[*vm]).collect();
            rest.sort_unstable_by(|one, other| other.total_cmp(one));
            let sum = |number: usize| rest.iter().take(number).sum();
            (0..=movable.len()).map(sum).collect()
        };
        let nodes = 0..problem.nodes.len();
        Self {
            base,
            leaving: nodes.clone().map(|node| leaving(problem, start, prices, node)).collect(),
            arriving: nodes.map(|node| least(0.0, prices[node] / problem.nodes[node].cores)).collect(),
            greatest: (0..=movable.len()).map(greatest).collect(),
        }
    }

    /// The most by which this migration lowers half of the bound.
    fn gain(&self, problem: &Problem, vm: usize, from: usize, to: usize) -> f64 {
        problem.vms[vm].cores * (self.leaving[from] - self.arriving[to])
    }
}

impl<'p> Search<'p> {
    /// `None` if the cluster is too large.
    pub(super) fn new(problem: &'p Problem, budget: u64) -> Option<Self> {
        let movable = |vm: &usize| problem.vms[*vm].movable;
        let mut movable: Vec<usize> = (0..problem.vms.len()).filter(movable).collect();
        if movable.len() > MOST_MOVABLE || problem.vms.iter().any(|vm| vm.node.is_none()) {
            return None;
        }
        let cores = |vm: usize| problem.vms[vm].cores;
        movable.sort_by(|one, other| cores(*other).total_cmp(&cores(*one)).then(one.cmp(other)));
        let placement = Placement::start(problem);
        let mut prices = Prices::new(problem, &placement);
        let fees = prices.fees();
        let line = |fee: f64| Line::new(problem, &placement, &movable, &centered(problem, prices.at(fee)));
        let all_prices = fees.into_iter().map(line).collect();
        let (goal, limit) = (Goal::LeastSpread, f64::INFINITY);
        Some(Self { problem, movable, all_prices, lines: Vec::new(), placement, goal, most: 0, limit, budget })
    }

    /// The number of migrations with which everything is possible.
    pub(super) fn movable(&self) -> usize {
        self.movable.len()
    }

    /// The least spread with this number of migrations, if it is less than a known one. `Err` if the budget is spent.
    pub(super) fn spread(&mut self, migrations: usize, known: f64) -> Result<Option<f64>, ()> {
        let open = self.problem.open().count() as f64;
        self.goal = Goal::LeastSpread;
        self.limit = known * known * open - EQUAL;
        let before = self.limit;
        self.search(migrations)?;
        Ok((self.limit < before).then(|| (self.limit / open).sqrt()))
    }

    /// Whether the cluster can be balanced with this number of migrations. `Err` if the budget is spent.
    pub(super) fn can_be_balanced(&mut self, migrations: usize, gap: f64) -> Result<bool, ()> {
        let open = self.problem.open().count() as f64;
        self.goal = Goal::Balanced;
        // Values within a gap have at most this n σ² (Popoviciu).
        self.limit = open * gap * gap / 4.0 + EQUAL;
        self.search(migrations)
    }

    /// Whether the search ended early, because it found what it looked for.
    fn search(&mut self, most: usize) -> Result<bool, ()> {
        self.most = most;
        let proven = |line: &Line| line.base - 2.0 * line.greatest[0][most];
        let mut order: Vec<usize> = (0..self.all_prices.len()).collect();
        order.sort_by(|one, other| proven(&self.all_prices[*other]).total_cmp(&proven(&self.all_prices[*one])));
        order.truncate(PRICES);
        self.lines = order;
        self.visit(0, 0, [0.0; PRICES])
    }

    fn visit(&mut self, position: usize, made: usize, gained: [f64; PRICES]) -> Result<bool, ()> {
        self.budget = self.budget.checked_sub(1).ok_or(())?;
        if self.placement.is_possible() {
            match self.goal {
                Goal::Balanced if self.placement.is_balanced() => return Ok(true),
                Goal::Balanced => {}
                Goal::LeastSpread => {
                    let spread = self.placement.spread();
                    let squares = spread * spread * self.problem.open().count() as f64;
                    self.limit = if squares < self.limit { squares } else { self.limit };
                }
            }
        }
        if made == self.most {
            return Ok(false);
        }
        for next in position..self.movable.len() {
            if self.is_hopeless(&gained, next, self.most - made) {
                break;
            }
            let vm = self.movable[next];
            let Some(home) = self.problem.vms[vm].node else { continue };
            // Of equal VMs of a node, those that come first go first.
            if next > position && self.problem.vms[self.movable[next - 1]] == self.problem.vms[vm] {
                continue;
            }
            for to in 0..self.problem.nodes.len() {
                if to == home || !self.problem.may_go(vm, to) {
                    continue;
                }
                let mut with = gained;
                for (gained, line) in with.iter_mut().zip(&self.lines) {
                    *gained += self.all_prices[*line].gain(self.problem, vm, home, to);
                }
                if self.is_hopeless(&with, next + 1, self.most - made - 1) {
                    continue;
                }
                self.placement.relocate(vm, to);
                let found = self.visit(next + 1, made + 1, with);
                self.placement.relocate(vm, home);
                if found? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether one of the bounds says that the VMs from this position on cannot reach the limit.
    fn is_hopeless(&self, gained: &[f64], position: usize, migrations: usize) -> bool {
        let proven = |(line, gained): (&usize, &f64)| {
            let line = &self.all_prices[*line];
            line.base - 2.0 * (gained + line.greatest[position][migrations]) > self.limit
        };
        self.lines.iter().zip(gained).any(proven)
    }
}
