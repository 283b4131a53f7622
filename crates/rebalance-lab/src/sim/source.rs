//! Which scenario, and how to rebalance it: shared by all commands that run something.

use std::{io::Read, path::Path};

use clap::Args;
use sim::{
    ClusterModel, RunSettings,
    scenario::{Scenario, parse, shipped},
    units::Span,
};

use super::{
    CommandError, Result,
    choices::{Loads, MigrationModel, Placement, Semantics},
};

/// What to run, and how.
#[derive(Debug, Clone, Args)]
pub(super) struct Choice {
    /// A scenario that comes with the program, a file (ours, the reference's, or a table of nodes), FILE:NAME for one of
    /// several, or - for standard input
    scenario: String,
    /// The threshold mode: low, medium, high, asym-low, asym-medium or asym-high
    #[arg(short, long)]
    mode: Option<String>,
    /// Whose rules say what is over-utilized and what is evicted
    #[arg(long, value_enum)]
    semantics: Option<Semantics>,
    /// The pressure model: reference or continuous
    #[arg(long)]
    pressure: Option<String>,
    /// Where the first loads of nodes come from, if the file states them and lists VMs too
    #[arg(long, value_enum)]
    loads: Option<Loads>,
    /// Who chooses where a VM goes
    #[arg(long, value_enum)]
    placement: Option<Placement>,
    /// How VMs migrate
    #[arg(long, value_enum)]
    migration: Option<MigrationModel>,
    /// How many evictions at most, each time
    #[arg(long, value_name = "NUMBER")]
    max_total: Option<u32>,
    /// How many evictions at most from one node, each time
    #[arg(long, value_name = "NUMBER")]
    max_per_node: Option<u32>,
    /// How long a VM stays where it arrived, such as 15m
    #[arg(long, value_name = "TIME")]
    cool_down: Option<Span>,
    /// Do what the descheduler's plugin KubevirtMigrationAware does: no eviction of a VM while it migrates, nor for 15m
    /// afterwards, twice that for each further migration within 48h, at most 6h; or the times that the scenario says
    #[arg(long)]
    migration_aware: bool,
    /// How far above the threshold a score must be to make a node over-utilized that was not
    #[arg(long, value_name = "SCORE")]
    hysteresis: Option<f64>,
    /// How many steps to simulate
    #[arg(long, value_name = "NUMBER")]
    steps: Option<u64>,
}

impl Choice {
    /// The model to run in and how to rebalance it; `algorithm` goes before what the scenario says.
    pub(super) fn load(&self, algorithm: Option<&str>) -> Result<(ClusterModel, RunSettings)> {
        let mut scenario = scenario(&self.scenario)?;
        let given = &mut scenario.rebalancing;
        let set = |to: &mut String, from: Option<&str>| from.into_iter().for_each(|from| *to = from.to_owned());
        set(&mut given.algorithm, algorithm);
        set(&mut given.mode, self.mode.as_deref());
        set(&mut given.pressure, self.pressure.as_deref());
        given.semantics = self.semantics.map_or(given.semantics, Into::into);
        given.loads = self.loads.map_or(given.loads, Into::into);
        given.placement = self.placement.map_or(given.placement, Into::into);
        given.migration.model = self.migration.map_or(given.migration.model, Into::into);
        given.limits.total = self.max_total.unwrap_or(given.limits.total);
        given.limits.per_node = self.max_per_node.unwrap_or(given.limits.per_node);
        given.guards.cool_down = self.cool_down.unwrap_or(given.guards.cool_down);
        if self.migration_aware {
            given.guards.migration_aware.get_or_insert_default();
        }
        given.guards.hysteresis = self.hysteresis.unwrap_or(given.guards.hysteresis);
        if let Some(steps) = self.steps {
            scenario.duration = Span(steps.saturating_mul(scenario.step.0));
        }
        let wrong = |error| CommandError::Scenario(self.scenario.clone(), error);
        Ok((ClusterModel::new(&scenario).map_err(wrong)?, RunSettings::new(&scenario).map_err(wrong)?))
    }
}

/// The scenario that people name: one that comes with the program, a file, FILE:NAME, or - for standard input.
pub(crate) fn scenario(source: &str) -> Result<Scenario> {
    let mut scenarios = scenarios(source)?;
    match scenarios.len() {
        1 => Ok(scenarios.remove(0)),
        _ => Err(several(source, &scenarios)),
    }
}

/// All scenarios of what people name, or the one of FILE:NAME.
pub(super) fn scenarios(source: &str) -> Result<Vec<Scenario>> {
    if let Some(scenario) = shipped::find(source) {
        return Ok(vec![scenario]);
    }
    let (text, name) = read(source)?;
    let mut scenarios = parse(&text).map_err(|error| CommandError::Scenario(source.to_owned(), error))?;
    let Some(name) = name else { return Ok(scenarios) };
    match scenarios.iter().position(|scenario| scenario.name == name) {
        Some(at) => Ok(vec![scenarios.swap_remove(at)]),
        None => Err(several(source.trim_end_matches(&format!(":{name}")), &scenarios)),
    }
}

fn several(source: &str, scenarios: &[Scenario]) -> CommandError {
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    let example = names.first().copied().unwrap_or("NAME");
    let names = names.join(", ");
    CommandError::Usage(format!("{source} holds the scenarios {names}: say which, for example {source}:{example}"))
}

/// The text, and the name of the scenario in it if one is given.
fn read(source: &str) -> Result<(String, Option<&str>)> {
    if source == "-" {
        let mut file = Vec::new();
        std::io::stdin().read_to_end(&mut file).map_err(|error| CommandError::File { path: "-".into(), error })?;
        return Ok((text_of(file, source)?, None));
    }
    let (path, name) = match source.rsplit_once(':') {
        Some((path, name)) if !Path::new(source).exists() => (path, Some(name)),
        _ => (source, None),
    };
    let looks_like_a_name = !path.contains(['/', '.']) && !Path::new(path).exists();
    if looks_like_a_name {
        let names: Vec<&str> = shipped::FILES.iter().map(|(name, _)| *name).collect();
        return Err(CommandError::Usage(format!(
            "there is no scenario or file {path}; the scenarios that come with the program are {}",
            names.join(", ")
        )));
    }
    let file = std::fs::read(path).map_err(|error| CommandError::File { path: path.into(), error })?;
    Ok((text_of(file, path)?, name))
}

/// The text of a file, which may be compressed.
fn text_of(file: Vec<u8>, source: &str) -> Result<String> {
    sim::scenario::text_of(file).map_err(|error| CommandError::Scenario(source.to_owned(), error))
}
