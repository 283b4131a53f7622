//! Comparison of algorithms over many seeds: means with intervals, and a ranking with ties.

use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use serde::Serialize;

use crate::{
    model::ClusterModel,
    optimum::{Curve, Distance, Optima},
    result::{RunResult, simulate},
    scenario::Limits,
    settings::RunSettings,
    stats::{Estimate, differ},
    variant::Variant,
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
    /// Steps until no node was over-utilized; all steps and one more if there always was one
    NoneOver,
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
    pub fn of(self, outcome: &RunResult) -> f64 {
        match self {
            Self::Spread => outcome.mean_spread,
            Self::EndSpread => outcome.end.cpu.sigma,
            Self::Steps => outcome.balanced_at_step.unwrap_or(outcome.steps + 1) as f64,
            Self::NoneOver => outcome.none_over_at_step.unwrap_or(outcome.steps + 1) as f64,
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
            Self::NoneOver => "steps until no node is over-utilized",
            Self::Migrations => "migrations",
            Self::Bytes => "bytes moved",
            Self::PingPong => "ping-pong migrations",
            Self::Pressure => "VM-seconds under pressure",
        }
    }
}

/// All algorithms of a comparison, with their modes and limits, best first.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Comparison {
    pub scenario: String,
    pub mode: &'static str,
    pub semantics: &'static str,
    pub pressure_model: &'static str,
    /// Where the first signals come from: `stated` or `vms`.
    pub loads: &'static str,
    pub criterion: Criterion,
    pub first_seed: u64,
    pub seeds: usize,
    pub level: f64,
    /// The best that migrations could do.
    pub optimum: Curve,
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
    pub mode: &'static str,
    pub limits: Limits,
    #[serde(skip)]
    pub variant: Variant,
    /// Whether no other has both fewer migrations and less spread at the end.
    pub efficient: bool,
    pub optimum: Distance,
    /// The criterion of the ranking.
    pub score: Estimate,
    pub spread: Estimate,
    pub end_spread: Estimate,
    pub end_memory_spread: Estimate,
    pub end_pressure_spread: Estimate,
    /// Until the cluster was balanced, and until no node was over-utilized, which the reference calls converged.
    pub steps: Estimate,
    pub none_over_steps: Estimate,
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

/// Runs every variant with every seed. The result does not depend on the number of threads.
pub fn compare(
    model: &ClusterModel,
    settings: &RunSettings,
    variants: &[Variant],
    seeds: std::ops::Range<u64>,
    criterion: Criterion,
    threads: usize,
    progress: &Progress<'_>,
) -> Comparison {
    let jobs: Vec<(RunSettings, u64)> = variants
        .iter()
        .map(|variant| variant.in_settings(settings))
        .flat_map(|settings| seeds.clone().map(move |seed| (settings, seed)))
        .collect();
    let results = in_parallel(jobs.len(), threads, progress, |job| {
        let (settings, seed) = &jobs[job];
        let (outcome, run) = simulate(model, settings, *seed);
        (outcome, curve(run.history().samples().iter().map(|sample| sample.cpu.sigma).collect()))
    });
    let count = (seeds.end - seeds.start) as usize;
    let optima = Optima::new(model, settings, seeds.clone(), threads);
    let mut entries: Vec<(Entry, Vec<f64>)> = variants
        .iter()
        .zip(results.chunks(count.max(1)))
        .map(|(variant, results)| entry(variant, results, criterion, &optima))
        .collect();
    entries.sort_by(|(one, _), (other, _)| one.score.mean.total_cmp(&other.score.mean));
    Comparison {
        scenario: model.name().to_owned(),
        mode: settings.classifier.mode.slug(),
        semantics: settings.classifier.semantics.slug(),
        pressure_model: settings.pressure.slug(),
        loads: settings.loads.slug(),
        criterion,
        first_seed: seeds.start,
        seeds: count,
        level: LEVEL,
        optimum: optima.curve(),
        entries: marked(ranked(entries)),
    }
}

fn entry(
    variant: &Variant,
    results: &[(RunResult, Vec<f64>)],
    criterion: Criterion,
    optima: &Optima,
) -> (Entry, Vec<f64>) {
    let outcomes = || results.iter().map(|(outcome, _)| outcome);
    let estimate = |of: &dyn Fn(&RunResult) -> f64| Estimate::of(&outcomes().map(of).collect::<Vec<f64>>(), LEVEL);
    let share = |of: &dyn Fn(&RunResult) -> bool| {
        outcomes().filter(|outcome| of(outcome)).count() as f64 / results.len().max(1) as f64
    };
    let scores: Vec<f64> = outcomes().map(|outcome| criterion.of(outcome)).collect();
    let points = results.first().map_or(0, |(_, curve)| curve.len());
    let mean_at = |at: usize| results.iter().map(|(_, curve)| curve[at]).sum::<f64>() / results.len() as f64;
    let entry = Entry {
        rank: 0,
        tied: false,
        algorithm: variant.algorithm.slug(),
        name: variant.algorithm.name().into_owned(),
        mode: variant.mode.slug(),
        limits: variant.limits,
        variant: *variant,
        efficient: false,
        optimum: optima.distance(results.iter().map(|(outcome, _)| outcome)),
        score: Estimate::of(&scores, LEVEL),
        spread: estimate(&|outcome| outcome.mean_spread),
        end_spread: estimate(&|outcome| outcome.end.cpu.sigma),
        end_memory_spread: estimate(&|outcome| outcome.end.memory.sigma),
        end_pressure_spread: estimate(&|outcome| outcome.end.cpu_pressure.sigma),
        steps: estimate(&|outcome| Criterion::Steps.of(outcome)),
        none_over_steps: estimate(&|outcome| Criterion::NoneOver.of(outcome)),
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

/// Marks the entries that no other is better than in both migrations and spread at the end.
fn marked(mut entries: Vec<Entry>) -> Vec<Entry> {
    let figures: Vec<[f64; 2]> = entries.iter().map(|entry| [entry.migrations.mean, entry.end_spread.mean]).collect();
    for (entry, own) in entries.iter_mut().zip(&figures) {
        let is_better = |other: &[f64; 2]| other[0] <= own[0] && other[1] <= own[1] && other != own;
        entry.efficient = !figures.iter().any(is_better);
    }
    entries
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
