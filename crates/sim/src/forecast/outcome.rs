//! One run of a forecast, in the numbers that are kept of it.

use super::{
    DAY, FigureName, HOUR,
    hot::{self, HotReason},
};
use crate::{history::Cause, model::ClusterModel, result::simulate, rng::Rng, settings::RunSettings, stats};

/// The last part of the horizon, one of so many, counts as rest.
pub(super) const REST: u64 = 4;
/// The seconds between scrapes, and between evaluations of the rules. A decision sees load that is as old as both waits.
const SCRAPES: f64 = 15.0;
const RULES: f64 = 30.0;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) spread_now: f64,
    pub(super) spread_at_rest: f64,
    pub(super) first_hour: f64,
    pub(super) first_day: f64,
    pub(super) per_hour_at_rest: f64,
    pub(super) migrations: f64,
    /// Of migrations to balance load, those that fail included.
    pub(super) bytes: f64,
    /// The seconds until the last migration, if there is none at rest.
    pub(super) settled_after: Option<f64>,
    /// By VM, to balance load.
    pub(super) moves: Vec<u32>,
    pub(super) hot: Vec<(u32, HotReason)>,
}

impl Outcome {
    pub(super) fn value(&self, figure: FigureName) -> f64 {
        match figure {
            FigureName::SpreadNow => self.spread_now,
            FigureName::SpreadAtRest => self.spread_at_rest,
            FigureName::MigrationsFirstHour => self.first_hour,
            FigureName::MigrationsFirstDay => self.first_day,
            FigureName::MigrationsPerHourAtRest => self.per_hour_at_rest,
            FigureName::Migrations => self.migrations,
            FigureName::BytesMoved => self.bytes,
        }
    }
}

pub(super) fn of_run(model: &ClusterModel, settings: &RunSettings, seed: u64) -> Outcome {
    let settings = RunSettings { lag: lag(seed, model.step), ..*settings };
    let (result, run) = simulate(model, &settings, seed);
    let horizon = model.steps * model.step;
    let rest = horizon - horizon / REST;
    // A node that is drained or fails moves VMs with any plan.
    let evictions = run.history().moves().iter().filter(|moved| moved.cause == Cause::Eviction);
    let times: Vec<u64> = evictions.clone().map(|moved| u64::from(moved.step) * model.step).collect();
    let mut moves = vec![0; model.vm_count()];
    evictions.for_each(|moved| moves[moved.vm as usize] += 1);
    let before = |end: u64| times.iter().filter(|time| **time < end).count() as f64;
    let migrations = times.len() as f64;
    let per_hour_at_rest = (migrations - before(rest)) * HOUR as f64 / (horizon - rest).max(1) as f64;
    let beyond = DAY.saturating_sub(horizon) as f64 / HOUR as f64;
    let samples = run.history().samples();
    let at_rest: Vec<f64> =
        samples.iter().filter(|sample| sample.step * model.step >= rest).map(|sample| sample.cpu.sigma).collect();
    Outcome {
        spread_now: result.start.cpu.sigma,
        spread_at_rest: stats::mean(&at_rest),
        first_hour: before(HOUR),
        first_day: before(DAY) + per_hour_at_rest * beyond,
        per_hour_at_rest,
        migrations,
        bytes: run.totals().evicted_bytes,
        settled_after: (per_hour_at_rest == 0.0).then(|| times.last().copied().unwrap_or(0) as f64),
        moves,
        hot: hot::of_run(model, &run, &settings, rest),
    }
}

/// The age of the signals in whole steps, which differs from cluster to cluster.
fn lag(seed: u64, step: u64) -> u64 {
    let mut rng = Rng::named(seed, "forecast", 0);
    let late = rng.between(0.0, SCRAPES) + rng.between(0.0, RULES);
    (late / step as f64) as u64
}

/// The share of runs without a migration at rest.
pub(super) fn settles(outcomes: &[Outcome]) -> f64 {
    let settled = outcomes.iter().filter(|outcome| outcome.settled_after.is_some()).count();
    settled as f64 / outcomes.len().max(1) as f64
}
