//! Comparison of algorithms over many seeds: means with intervals, and a ranking with ties.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use balance::Algorithm;
use serde::Serialize;

use crate::{
    model::ClusterModel,
    result::{Outcome, simulate},
    settings::RunSettings,
    stats::{Estimate, differ},
};

/// The confidence level of all intervals.
pub const LEVEL: f64 = 0.95;

/// What algorithms are ranked by; less is better in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Criterion {
    /// The mean over time of the standard deviation of CPU use
    #[default]
    Spread,
    /// The standard deviation of CPU use at the end
    EndSpread,
    /// Steps until the cluster was balanced; all steps and one more if it never was
    Steps,
    /// Migrations
    Migrations,
    /// Bytes moved
    Bytes,
    /// Migrations that brought a VM back to where it had just been
    PingPong,
    /// VM-seconds under pressure
    Pressure,
}

impl Criterion {
    pub fn of(self, outcome: &Outcome) -> f64 {
        match self {
            Self::Spread => outcome.mean_spread,
            Self::EndSpread => outcome.end.cpu.sigma,
            Self::Steps => outcome.balanced_at_step.unwrap_or(outcome.steps + 1) as f64,
            Self::Migrations => outcome.migrations.total as f64,
            Self::Bytes => outcome.migrations.bytes,
            Self::PingPong => outcome.migrations.ping_pong as f64,
            Self::Pressure => outcome.vm_seconds_under_pressure,
        }
    }

    pub fn describe(self) -> &'static str {
        match self {
            Self::Spread => "mean spread of CPU use over time",
            Self::EndSpread => "spread of CPU use at the end",
            Self::Steps => "steps to balance",
            Self::Migrations => "migrations",
            Self::Bytes => "bytes moved",
            Self::PingPong => "ping-pong migrations",
            Self::Pressure => "VM-seconds under pressure",
        }
    }
}

/// All algorithms of a comparison, best first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub scenario: String,
    pub mode: &'static str,
    pub semantics: &'static str,
    pub pressure_model: &'static str,
    pub criterion: Criterion,
    pub first_seed: u64,
    pub seeds: usize,
    pub level: f64,
    pub entries: Vec<Entry>,
}

/// An algorithm's results.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// Algorithms that do not differ significantly from the first of a rank share the rank.
    pub rank: usize,
    pub tied: bool,
    pub algorithm: String,
    pub name: String,
    /// The criterion of the ranking.
    pub score: Estimate,
    pub spread: Estimate,
    pub end_spread: Estimate,
    pub end_memory_spread: Estimate,
    pub end_pressure_spread: Estimate,
    pub steps: Estimate,
    pub migrations: Estimate,
    pub bytes: Estimate,
    pub ping_pong: Estimate,
    pub blocked: Estimate,
    pub pressure: Estimate,
    /// The share of seeds with which the cluster was balanced at the end, and at some time.
    pub balanced_at_end: f64,
    pub balanced_ever: f64,
    /// The share of seeds with which there was a step without an over-utilized node.
    pub none_over: f64,
    /// The mean over seeds of the spread of CPU use at up to 120 points of time.
    pub curve: Vec<f64>,
}

/// Gets the number of finished runs and the number of all runs.
pub type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Runs every algorithm with every seed. The result does not depend on the number of threads.
pub fn compare(
    model: &ClusterModel,
    settings: &RunSettings,
    algorithms: &[Algorithm],
    seeds: std::ops::Range<u64>,
    criterion: Criterion,
    threads: usize,
    progress: &Progress<'_>,
) -> Comparison {
    let jobs: Vec<(Algorithm, u64)> =
        algorithms.iter().flat_map(|algorithm| seeds.clone().map(move |seed| (*algorithm, seed))).collect();
    let results = in_parallel(jobs.len(), threads, progress, |job| {
        let (algorithm, seed) = jobs[job];
        let (outcome, run) = simulate(model, &RunSettings { algorithm, ..*settings }, seed);
        (outcome, curve(run.history().samples().iter().map(|sample| sample.cpu.sigma).collect()))
    });
    let count = (seeds.end - seeds.start) as usize;
    let mut entries: Vec<(Entry, Vec<f64>)> = algorithms
        .iter()
        .zip(results.chunks(count.max(1)))
        .map(|(algorithm, results)| entry(algorithm, results, criterion))
        .collect();
    entries.sort_by(|(one, _), (other, _)| one.score.mean.total_cmp(&other.score.mean));
    Comparison {
        scenario: model.name().to_owned(),
        mode: settings.classifier.mode.slug(),
        semantics: settings.classifier.semantics.slug(),
        pressure_model: settings.pressure.slug(),
        criterion,
        first_seed: seeds.start,
        seeds: count,
        level: LEVEL,
        entries: ranked(entries),
    }
}

fn entry(algorithm: &Algorithm, results: &[(Outcome, Vec<f64>)], criterion: Criterion) -> (Entry, Vec<f64>) {
    let outcomes = || results.iter().map(|(outcome, _)| outcome);
    let estimate = |of: &dyn Fn(&Outcome) -> f64| Estimate::of(&outcomes().map(of).collect::<Vec<f64>>(), LEVEL);
    let share = |of: &dyn Fn(&Outcome) -> bool| {
        outcomes().filter(|outcome| of(outcome)).count() as f64 / results.len().max(1) as f64
    };
    let scores: Vec<f64> = outcomes().map(|outcome| criterion.of(outcome)).collect();
    let points = results.first().map_or(0, |(_, curve)| curve.len());
    let mean_at = |at: usize| results.iter().map(|(_, curve)| curve[at]).sum::<f64>() / results.len() as f64;
    let entry = Entry {
        rank: 0,
        tied: false,
        algorithm: algorithm.slug(),
        name: algorithm.name().into_owned(),
        score: Estimate::of(&scores, LEVEL),
        spread: estimate(&|outcome| outcome.mean_spread),
        end_spread: estimate(&|outcome| outcome.end.cpu.sigma),
        end_memory_spread: estimate(&|outcome| outcome.end.memory.sigma),
        end_pressure_spread: estimate(&|outcome| outcome.end.cpu_pressure.sigma),
        steps: estimate(&|outcome| Criterion::Steps.of(outcome)),
        migrations: estimate(&|outcome| outcome.migrations.total as f64),
        bytes: estimate(&|outcome| outcome.migrations.bytes),
        ping_pong: estimate(&|outcome| outcome.migrations.ping_pong as f64),
        blocked: estimate(&|outcome| {
            let blocked = outcome.blocked;
            (blocked.not_migratable + blocked.cooling_down + blocked.no_room + blocked.held_back) as f64
        }),
        pressure: estimate(&|outcome| outcome.vm_seconds_under_pressure),
        balanced_at_end: share(&|outcome| outcome.end.balanced),
        balanced_ever: share(&|outcome| outcome.balanced_at_step.is_some()),
        none_over: share(&|outcome| outcome.none_over_at_step.is_some()),
        curve: (0..points).map(mean_at).collect(),
    };
    (entry, scores)
}

/// Ranks the entries. An entry that does not differ significantly from the first of a rank shares the rank. Each of the
/// many comparisons uses a higher level (Bonferroni), so that the whole ranking has the level.
fn ranked(entries: Vec<(Entry, Vec<f64>)>) -> Vec<Entry> {
    let level = 1.0 - (1.0 - LEVEL) / entries.len().saturating_sub(1).max(1) as f64;
    let mut ranked: Vec<Entry> = Vec::with_capacity(entries.len());
    let mut first: Vec<f64> = Vec::new();
    let mut rank = 1;
    for (position, (mut entry, scores)) in entries.into_iter().enumerate() {
        if position == 0 || differ(&first, &scores, level) {
            rank = position + 1;
            first = scores;
        } else {
            entry.tied = true;
            if let Some(leader) = ranked.get_mut(rank - 1) {
                leader.tied = true;
            }
        }
        entry.rank = rank;
        ranked.push(entry);
    }
    ranked
}

/// At most 120 points of a curve, with the first and the last.
pub(crate) fn curve(values: Vec<f64>) -> Vec<f64> {
    const POINTS: usize = 120;
    if values.len() <= POINTS {
        return values;
    }
    (0..POINTS).map(|point| values[point * (values.len() - 1) / (POINTS - 1)]).collect()
}

/// Runs all jobs on threads and returns their results in order.
pub fn in_parallel<T: Send>(
    jobs: usize,
    threads: usize,
    progress: &Progress<'_>,
    work: impl Fn(usize) -> T + Sync,
) -> Vec<T> {
    let results: Vec<Mutex<Option<T>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let result = work(job);
            if let Ok(mut slot) = results[job].lock() {
                *slot = Some(result);
            }
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, jobs.max(1)) {
            scope.spawn(worker);
        }
        worker();
    });
    results.into_iter().filter_map(|slot| slot.into_inner().ok().flatten()).collect()
}
