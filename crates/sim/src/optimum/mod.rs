//! The best that migrations could do: the least spread for every number of them, and the least number after which the cluster is
//! balanced. A small cluster is searched (`exact`). In a large one, both lie between a proven lower bound (`bound`, `fewest`) and what
//! good migrations reach (`greedy`, `even`).

mod bound;
mod curve;
mod even;
mod exact;
mod fewest;
mod greedy;
mod prices;
mod problem;
mod snapshot;

pub use curve::{Curve, Distance, Optima, Point};
pub use problem::{Problem, ProblemNode, ProblemVm};
pub use snapshot::{doubt, is_same_for_all_seeds, problem};

use exact::Search;
use fewest::Fewest;
use greedy::Greedy;
use problem::{Placement, least};

/// The number of placements that a search looks at before it gives up.
pub const BUDGET: u64 = 1_000_000;
/// The number of levels around which balance is tried.
const LEVELS: u32 = 9;

/// The optimum of a cluster, or what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimum {
    /// By number of migrations: a spread that is possible. More migrations are of no use.
    best: Vec<f64>,
    /// By number of migrations: no less is possible, with more migrations neither.
    bound: Vec<f64>,
    /// A number of migrations after which the cluster is balanced, if one is known.
    pub balanced: Option<u64>,
    /// No fewer are possible; `None` means that it cannot be balanced.
    pub balanced_bound: Option<u64>,
}

impl Optimum {
    /// The optimum. `budget` limits the search of small clusters; with 0 there is none.
    pub fn of(problem: &Problem, budget: u64) -> Self {
        let start = Placement::start(problem);
        let open = problem.open().count().max(1) as f64;
        let bound = bound::bounds(problem).iter().map(|squares| (squares / open).sqrt()).collect();
        let (best, balanced) = path(problem);
        let fewest = Fewest::new(problem, &start);
        let movable = problem.vms.iter().filter(|vm| vm.movable).count() as u64;
        let found = fewest.migrations().filter(|(migrations, _)| *migrations <= movable);
        let mut optimum = Self { best, bound, balanced, balanced_bound: found.map(|(migrations, _)| migrations) };
        if let Some((_, level)) = found {
            for step in 0..LEVELS {
                let level = level + fewest.gap * (f64::from(step) / f64::from(LEVELS - 1) - 0.5);
                let most = optimum.balanced.unwrap_or(problem.vms.len() as u64 + 1);
                optimum.balanced = even::migrations(problem, level, fewest.gap, most).or(optimum.balanced);
            }
        }
        if let Some(search) = Search::new(problem, budget).filter(|_| budget > 0) {
            // What is spent by one search is not left for the other, but an end of one is no end of the other.
            let _ = optimum.search_spread(search, problem.room_varies);
            if let Some(search) = Search::new(problem, budget) {
                let _ = optimum.search_balance(search, fewest.gap, problem.room_varies);
            }
        }
        for (at, bound) in optimum.bound.iter_mut().enumerate() {
            *bound = least(*bound, optimum.best[at.min(optimum.best.len() - 1)]);
        }
        optimum
    }

    fn search_spread(&mut self, mut search: Search<'_>, room_varies: bool) -> Result<(), ()> {
        for migrations in 1..=search.movable() {
            let known = least(self.spread(migrations as u64), self.spread(migrations as u64 - 1));
            let found = search.spread(migrations, known)?.unwrap_or(known);
            self.best.resize(self.best.len().max(migrations + 1), found);
            self.best[migrations..].iter_mut().for_each(|best| *best = least(*best, found));
            if !room_varies {
                self.bound[migrations] = found;
            }
        }
        Ok(())
    }

    fn search_balance(&mut self, mut search: Search<'_>, gap: f64, room_varies: bool) -> Result<(), ()> {
        let Some(first) = self.balanced_bound else { return Ok(()) };
        for migrations in first..=search.movable() as u64 {
            if self.balanced == Some(migrations) || search.can_be_balanced(migrations as usize, gap)? {
                self.balanced = Some(migrations);
                return Ok(());
            }
            if !room_varies {
                self.balanced_bound = Some(migrations + 1).filter(|next| *next <= search.movable() as u64);
            }
        }
        Ok(())
    }

    /// The least known spread with at most this number of migrations.
    pub fn spread(&self, migrations: u64) -> f64 {
        at(&self.best, migrations)
    }

    /// No less is possible with at most this number of migrations.
    pub fn bound(&self, migrations: u64) -> f64 {
        at(&self.bound, migrations)
    }

    /// The least known number of migrations that reach a spread, or all that are of use.
    pub fn migrations_for(&self, spread: f64) -> u64 {
        // A run adds in another order, so it differs by rounding errors.
        self.best.partition_point(|best| *best > spread + 1e-12).min(self.best.len() - 1) as u64
    }

    /// The number of migrations after which more are of no use.
    pub fn last(&self) -> u64 {
        self.best.len() as u64 - 1
    }
}

fn at(curve: &[f64], migrations: u64) -> f64 {
    let last = curve.len() - 1;
    curve[usize::try_from(migrations).map_or(last, |migrations| migrations.min(last))]
}

/// The spread after each of a series of good migrations, and the number after which the cluster is balanced.
fn path(problem: &Problem) -> (Vec<f64>, Option<u64>) {
    let mut greedy = Greedy::new(problem);
    let mut best = vec![greedy.placement.spread()];
    let mut balanced = greedy.placement.is_balanced().then_some(0);
    while let Some(candidate) = greedy.best() {
        greedy.make(candidate);
        best.push(greedy.placement.spread());
        if balanced.is_none() && greedy.placement.is_balanced() {
            balanced = Some(best.len() as u64 - 1);
        }
    }
    (best, balanced)
}
