//! The outcome of a run, in the numbers that people compare.

use serde::Serialize;

use crate::{
    engine::{Blocked, Run},
    measure::{Sample, UNDER_PRESSURE},
    model::ClusterModel,
    settings::RunSettings,
};

/// The outcome of a run as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunResult {
    pub scenario: String,
    pub seed: u64,
    pub algorithm: String,
    pub mode: &'static str,
    pub semantics: &'static str,
    pub pressure_model: &'static str,
    /// Where the first signals come from: `stated` or `vms`.
    pub loads: &'static str,
    pub steps: u64,
    pub step_seconds: u64,
    pub nodes: usize,
    pub vms: usize,
    /// The first step at which the cluster was balanced.
    pub balanced_at_step: Option<u64>,
    pub balanced_at_seconds: Option<u64>,
    /// The first step of the balanced steps at the end.
    pub balanced_since_step: Option<u64>,
    /// The first step without an over-utilized node, which is what the reference calls converged.
    pub none_over_at_step: Option<u64>,
    /// The mean over time of the spread of CPU use.
    pub mean_spread: f64,
    /// The share of steps at which the cluster was balanced.
    pub balanced_share: f64,
    pub start: Sample,
    pub end: Sample,
    pub migrations: MigrationCounts,
    pub blocked: Blocked,
    /// VMs on nodes under pressure, times seconds.
    pub vm_seconds_under_pressure: f64,
    /// VMs without a node, times seconds.
    pub vm_seconds_pending: f64,
    /// The digest of the history.
    pub digest: String,
}

/// How many migrations a run had, and of which kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MigrationCounts {
    pub total: u64,
    pub evicted: u64,
    pub drained: u64,
    pub restarted: u64,
    pub failed: u64,
    pub bytes: f64,
    pub vms: usize,
    pub most_of_one_vm: u16,
    /// Migrations that brought a VM back to the node it had just come from.
    pub ping_pong: u64,
}

impl RunResult {
    /// The outcome of a finished run.
    pub fn of(run: &Run<'_>, model: &ClusterModel, settings: &RunSettings, seed: u64) -> Self {
        let samples = run.history().samples();
        let before_the_end = &samples[..samples.len().saturating_sub(1)];
        let (first, last) = (samples.first().copied().unwrap_or_default(), samples.last().copied().unwrap_or_default());
        let seconds = model.step as f64;
        let per_step = |of: fn(&Sample) -> f64| before_the_end.iter().map(of).sum::<f64>();
        let count = before_the_end.len().max(1) as f64;
        let balanced_at_step = samples.iter().find(|sample| sample.balanced).map(|sample| sample.step);
        let unbalanced = samples.iter().rposition(|sample| !sample.balanced);
        let totals = run.totals();
        let moves = run.moves_per_vm();
        Self {
            scenario: model.name().to_owned(),
            seed,
            algorithm: settings.algorithm.slug(),
            mode: settings.classifier.mode.slug(),
            semantics: settings.classifier.semantics.slug(),
            pressure_model: settings.pressure.slug(),
            loads: settings.loads.slug(),
            steps: before_the_end.len() as u64,
            step_seconds: model.step,
            nodes: first.nodes as usize,
            vms: model.vm_count(),
            balanced_at_step,
            balanced_at_seconds: balanced_at_step.map(|step| step * model.step),
            balanced_since_step: match unbalanced {
                None => samples.first().map(|sample| sample.step),
                Some(at) => samples.get(at + 1).map(|sample| sample.step),
            },
            none_over_at_step: samples.iter().find(|sample| sample.over == 0).map(|sample| sample.step),
            mean_spread: per_step(|sample| sample.cpu.sigma) / count,
            balanced_share: per_step(|sample| f64::from(u8::from(sample.balanced))) / count,
            start: first,
            end: last,
            migrations: MigrationCounts {
                total: totals.evictions + totals.drained,
                evicted: totals.evictions,
                drained: totals.drained,
                restarted: totals.restarted,
                failed: totals.failed_migrations,
                bytes: totals.bytes,
                vms: moves.iter().filter(|moves| **moves > 0).count(),
                most_of_one_vm: moves.iter().copied().max().unwrap_or(0),
                ping_pong: totals.ping_pong,
            },
            blocked: totals.blocked,
            vm_seconds_under_pressure: per_step(|sample| f64::from(sample.vms_under_pressure)) * seconds,
            vm_seconds_pending: per_step(|sample| f64::from(sample.pending)) * seconds,
            digest: run.history().digest(),
        }
    }

    /// The pressure from which on a node counts as under pressure.
    pub const UNDER_PRESSURE: f64 = UNDER_PRESSURE;
}

/// Runs a model to the end of its scenario.
pub fn simulate<'m>(model: &'m ClusterModel, settings: &RunSettings, seed: u64) -> (RunResult, Run<'m>) {
    let mut run = Run::new(model, *settings, seed);
    run.finish();
    (RunResult::of(&run, model, settings, seed), run)
}
