//! The optimum as it is printed: a curve, and how far results are from it.

use serde::Serialize;

use super::{BUDGET, Optimum, doubt, is_same_for_all_seeds, problem};
use crate::{
    compare::{LEVEL, in_parallel},
    model::ClusterModel,
    result::RunResult,
    settings::RunSettings,
    stats::Estimate,
};

/// The most points of a curve.
const POINTS: u64 = 120;

/// The optimum of a scenario. Where the load differs between seeds, numbers are means over the seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Curve {
    /// The least known number of migrations after which the cluster is balanced, and a number below which it is not.
    pub balanced: Option<f64>,
    pub balanced_bound: Option<f64>,
    /// The least spread by number of migrations.
    pub points: Vec<Point>,
    /// Why the bounds are estimates and not proofs, if they are.
    pub doubt: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub migrations: u64,
    /// The least known spread.
    pub spread: f64,
    /// No less is possible.
    pub bound: f64,
}

/// How far runs are from the optimum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Distance {
    /// The least known spread with as many migrations, and what is possible at best.
    pub spread: Estimate,
    pub bound: Estimate,
    /// The least known number of migrations that reach the spread of the runs.
    pub migrations: Estimate,
}

/// The optima of a scenario, by seed.
#[derive(Debug, Clone)]
pub struct Optima {
    first_seed: u64,
    /// One, if it is the same with all seeds.
    optima: Vec<Optimum>,
    doubt: Option<&'static str>,
}

impl Optima {
    pub fn new(model: &ClusterModel, settings: &RunSettings, seeds: std::ops::Range<u64>, threads: usize) -> Self {
        let count = if is_same_for_all_seeds(model) { 1 } else { (seeds.end - seeds.start).max(1) };
        let of = |seed: usize| {
            let problem = problem(model, settings, seeds.start + seed as u64);
            Optimum::of(&problem, BUDGET / count)
        };
        let optima = in_parallel(count as usize, threads, &|_, _| {}, of);
        Self { first_seed: seeds.start, optima, doubt: doubt(model) }
    }

    fn of(&self, seed: u64) -> &Optimum {
        let last = self.optima.len() - 1;
        &self.optima[usize::try_from(seed - self.first_seed).map_or(last, |seed| seed.min(last))]
    }

    /// How far these runs are from the optimum.
    pub fn distance<'r>(&self, outcomes: impl Iterator<Item = &'r RunResult> + Clone) -> Distance {
        let estimate = |of: &dyn Fn(&Optimum, &RunResult) -> f64| {
            let values = outcomes.clone().map(|outcome| of(self.of(outcome.seed), outcome));
            Estimate::of(&values.collect::<Vec<f64>>(), LEVEL)
        };
        Distance {
            spread: estimate(&|optimum, outcome| optimum.spread(outcome.migrations.total)),
            bound: estimate(&|optimum, outcome| optimum.bound(outcome.migrations.total)),
            migrations: estimate(&|optimum, outcome| optimum.migrations_for(outcome.end.cpu.sigma) as f64),
        }
    }

    pub fn curve(&self) -> Curve {
        let mean = |of: &dyn Fn(&Optimum) -> f64| self.optima.iter().map(of).sum::<f64>() / self.optima.len() as f64;
        let all = |of: fn(&Optimum) -> Option<u64>| {
            let known = self.optima.iter().all(|optimum| of(optimum).is_some());
            known.then(|| mean(&|optimum| of(optimum).unwrap_or(0) as f64))
        };
        let last = self.optima.iter().map(Optimum::last).max().unwrap_or(0);
        let point = |migrations: u64| Point {
            migrations,
            spread: mean(&|optimum| optimum.spread(migrations)),
            bound: mean(&|optimum| optimum.bound(migrations)),
        };
        let steps = last.min(POINTS - 1);
        Curve {
            balanced: all(|optimum| optimum.balanced),
            balanced_bound: all(|optimum| optimum.balanced_bound),
            points: (0..=steps).map(|step| point(step * last / steps.max(1))).collect(),
            doubt: self.doubt,
        }
    }
}

impl Curve {
    /// In words, how many migrations balance the cluster.
    pub fn describe(&self) -> String {
        let number = |value: f64| format!("{value:.1}").trim_end_matches(".0").to_owned();
        let (known, bound) = (self.balanced.map(number), self.balanced_bound.map(number));
        match (known, bound) {
            (_, None) => "No migrations can balance it.".to_owned(),
            (Some(known), Some(bound)) if known == bound => {
                format!("It takes {known} migrations to balance it; fewer cannot.")
            }
            (Some(known), Some(bound)) => format!("{known} migrations can balance it; fewer than {bound} cannot."),
            (None, Some(bound)) => format!("Fewer than {bound} migrations cannot balance it; it may be impossible."),
        }
    }

    /// Up to `most` points at even distances, with the first and the last.
    pub fn some_points(&self, most: usize) -> Vec<Point> {
        let last = self.points.len().saturating_sub(1);
        let steps = last.min(most.max(2) - 1);
        (0..=steps).map(|step| self.points[step * last / steps.max(1)]).collect()
    }
}
