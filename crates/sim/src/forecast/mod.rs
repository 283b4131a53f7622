//! The forecast of a plan: what its settings would do to the cluster of a scenario, over many seeds.
//!
//! Each figure has the interval that holds nine of ten runs, because a cluster is one run and not a mean.

mod alternatives;
mod check;
mod figure;
mod hot;
mod outcome;
mod planned;
mod stuck;
mod unmodeled;
mod wide;

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use alternatives::{Alternative, Recommendation, Setting};
pub use check::{CheckResult, Checked, FigureName, Observation, check};
pub use figure::Figure;
pub use hot::{HotNode, HotReason};
pub use planned::{DAY, HOUR, LONGEST, PlannedSettings, SHORTEST};
pub use stuck::{StuckReason, StuckVms};
pub use wide::WideFigure;

use crate::{
    compare::{Progress, in_parallel},
    model::ClusterModel,
    scenario::{Scenario, ScenarioError},
    settings::RunSettings,
    units::Span,
};
use outcome::Outcome;

/// The share of runs that an interval holds.
pub const LEVEL: f64 = 0.9;
/// The most names in a list of VMs or nodes.
pub const MOST_NAMES: usize = 20;
/// The most VMs in the list of those that move most.
const MOST_MOVED: usize = 10;

/// How much is computed.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastOptions {
    /// At least one.
    pub seeds: std::ops::Range<u64>,
    /// How far the forecast looks. Without it, as far as the scenario, from two hours to a day.
    pub horizon: Option<Span>,
    /// What is compared with the plan.
    pub alternatives: Vec<Setting>,
    pub threads: usize,
}

/// What a plan would do.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forecast {
    pub scenario: String,
    pub nodes: usize,
    pub vms: usize,
    /// What the plan sets, in a line.
    pub settings: String,
    pub seeds: u64,
    /// The share of runs that an interval holds.
    pub level: f64,
    pub horizon_seconds: u64,
    /// The part at the end of the horizon that counts as rest.
    pub rest_seconds: u64,
    /// The standard deviation of CPU use over nodes at the beginning.
    pub spread_now: Figure,
    /// Its mean at rest.
    pub spread_at_rest: Figure,
    pub migrations_first_hour: Figure,
    /// Where the horizon is shorter than a day, the migrations at rest go on.
    pub migrations_first_day: Figure,
    pub migrations_per_hour_at_rest: Figure,
    /// Migrations within the horizon.
    pub migrations: Figure,
    /// Bytes that these migrations send within the horizon, with those that fail.
    pub bytes_moved: Figure,
    /// The figures whose interval is wider than half of what is expected, and why.
    pub wide: Vec<WideFigure>,
    /// The share of runs without a migration at rest.
    pub settles: f64,
    /// The seconds until the last migration, of the runs that settle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled_after_seconds: Option<Figure>,
    /// The VMs that move most, the first more often than the others.
    pub most_moved: Vec<MovedVm>,
    pub hot_nodes: Vec<HotNode>,
    pub stuck_vms: Vec<StuckVms>,
    /// The plan first, then what other thresholds and limits would do.
    pub alternatives: Vec<Alternative>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recommendation: Option<Recommendation>,
    pub not_modeled: Vec<String>,
}

/// A VM that moves.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MovedVm {
    pub vm: String,
    /// Migrations within the horizon, on average.
    pub migrations: f64,
    /// The share of runs in which it moves.
    pub share: f64,
}

/// The forecast of a plan for a cluster. The same seeds give the same forecast, with any number of threads.
pub fn forecast(
    scenario: &Scenario,
    plan: &PlannedSettings,
    options: &ForecastOptions,
    progress: &Progress<'_>,
) -> Result<Forecast, ScenarioError> {
    if options.seeds.is_empty() {
        return Err(ScenarioError::new("", "a forecast needs at least one seed"));
    }
    let planned = plan.in_scenario(scenario, options.horizon)?;
    let model = ClusterModel::new(&planned)?;
    // A scenario has neither the parameters of an algorithm nor the limit of the plugin.
    let settings =
        RunSettings { algorithm: plan.algorithm, one_per_node: plan.one_per_node, ..RunSettings::new(&planned)? };
    let compared = alternatives::settings(plan, &options.alternatives);
    let jobs: Vec<(&Setting, u64)> =
        compared.iter().flat_map(|setting| options.seeds.clone().map(move |seed| (setting, seed))).collect();
    let outcomes = in_parallel(jobs.len(), options.threads, progress, |job| {
        let (setting, seed) = jobs[job];
        outcome::of_run(&model, &setting.in_settings(&settings), seed)
    });
    let count = (options.seeds.end - options.seeds.start) as usize;
    let by_setting: Vec<&[Outcome]> = outcomes.chunks(count).collect();
    let own = by_setting[0];
    let table = alternatives::table(&compared, &by_setting);
    let figure = |name: FigureName| Figure::over(own, |outcome| outcome.value(name));
    Ok(Forecast {
        scenario: model.name().to_owned(),
        nodes: model.node_count(),
        vms: model.vm_count(),
        settings: plan.describe(),
        seeds: count as u64,
        level: LEVEL,
        horizon_seconds: planned.duration.0,
        rest_seconds: planned.duration.0 / outcome::REST,
        spread_now: figure(FigureName::SpreadNow),
        spread_at_rest: figure(FigureName::SpreadAtRest),
        migrations_first_hour: figure(FigureName::MigrationsFirstHour),
        migrations_first_day: figure(FigureName::MigrationsFirstDay),
        migrations_per_hour_at_rest: figure(FigureName::MigrationsPerHourAtRest),
        migrations: figure(FigureName::Migrations),
        bytes_moved: figure(FigureName::BytesMoved),
        wide: wide::figures(own, planned.duration.0),
        settles: outcome::settles(own),
        settled_after_seconds: Figure::of(own.iter().filter_map(|outcome| outcome.settled_after).collect()),
        most_moved: most_moved(&model, own),
        hot_nodes: hot::nodes(&model, own),
        stuck_vms: stuck::vms(&model, &settings, &planned),
        recommendation: alternatives::recommendation(&table),
        alternatives: table,
        not_modeled: unmodeled::not_modeled(scenario, plan),
    })
}

/// The digest of the text of a scenario: the same file leads to the same forecast.
pub fn scenario_digest(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text.as_bytes()))
}

fn most_moved(model: &ClusterModel, outcomes: &[Outcome]) -> Vec<MovedVm> {
    let count = outcomes.len() as f64;
    let moves = |vm: usize| outcomes.iter().map(move |outcome| outcome.moves[vm]);
    let mut totals: Vec<(u64, u32)> =
        (0..model.vm_count() as u32).map(|vm| (moves(vm as usize).map(u64::from).sum(), vm)).collect();
    totals.retain(|(total, _)| *total > 0);
    totals.sort_by_key(|(total, vm)| (std::cmp::Reverse(*total), *vm));
    let moved = |(total, vm): &(u64, u32)| MovedVm {
        vm: model.vm_name(*vm),
        migrations: *total as f64 / count,
        share: moves(*vm as usize).filter(|moves| *moves > 0).count() as f64 / count,
    };
    totals.iter().take(MOST_MOVED).map(moved).collect()
}
