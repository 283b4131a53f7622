//! The settings of a plan, and the scenario with them in it.

use balance::{Algorithm, Mode};

use crate::{
    scenario::{
        Guards, Limits, MigrationAware, MigrationModel, MigrationSettings, Placement, Rebalancing, Scenario,
        ScenarioError, Semantics,
    },
    units::Span,
};

pub const HOUR: u64 = 3600;
pub const DAY: u64 = 86_400;
/// The shortest and the longest horizon that is chosen without being asked for.
pub const SHORTEST: Span = Span(2 * HOUR);
pub const LONGEST: Span = Span(DAY);
/// Steps are this long, or a little shorter where the interval of the descheduler is no multiple of it.
const STEP: u64 = 15;
/// Signals are averaged over this window.
const WINDOW: Span = Span(60);

/// What a plan sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannedSettings {
    pub algorithm: Algorithm,
    pub mode: Mode,
    pub limits: Limits,
    /// Whether a decision evicts no more than one VM of a node. The limit per node counts those of earlier decisions as well.
    pub one_per_node: bool,
    /// The time from one decision of the descheduler to the next.
    pub interval: Span,
    /// Whether VMs are evicted. Otherwise the descheduler only says what it would evict.
    pub evicts: bool,
    pub soft_taints: bool,
    /// The rules of KubevirtMigrationAware, where the descheduler has this plugin.
    pub migration_aware: Option<MigrationAware>,
    /// How many migrations may run at a time, and how many of one node.
    pub migrations: u32,
    pub migrations_per_node: u32,
}

impl PlannedSettings {
    /// The cluster and the load of a scenario, rebalanced as planned: by the rules of the descheduler and the scheduler.
    /// What a plan does not set, such as the bandwidth of migrations, stays as in the scenario.
    pub fn in_scenario(&self, scenario: &Scenario, horizon: Option<Span>) -> Result<Scenario, ScenarioError> {
        let invalid = |message: String| Err(ScenarioError::new("", message));
        if self.interval.0 == 0 {
            return invalid("the interval of the descheduler is 0".to_owned());
        }
        let horizon = horizon.unwrap_or_else(|| scenario.duration.clamp(SHORTEST, LONGEST));
        if horizon.0 < HOUR {
            return invalid(format!("a forecast of {horizon} is too short: it needs an hour at least"));
        }
        let steps = self.interval.0.div_ceil(STEP);
        let step = Span((self.interval.0 / steps).max(1));
        let mut planned = scenario.clone();
        planned.step = step;
        // Whole steps, so that the last one ends with the horizon.
        planned.duration = Span(horizon.0 / step.0 * step.0);
        planned.rebalancing = Rebalancing {
            algorithm: self.algorithm.slug(),
            mode: self.mode.slug().to_owned(),
            semantics: Semantics::Descheduler,
            interval: Some(Span(steps * step.0)),
            window: Some(WINDOW),
            limits: if self.evicts { self.limits } else { Limits { total: 0, per_node: 0 } },
            placement: Placement::Scheduler,
            soft_taints: self.soft_taints && self.evicts,
            migration: MigrationSettings {
                model: MigrationModel::PreCopy,
                per_node: self.migrations_per_node,
                cluster: self.migrations,
                ..scenario.rebalancing.migration
            },
            guards: Guards { migration_aware: self.migration_aware, ..Guards::default() },
            ..scenario.rebalancing.clone()
        };
        Ok(planned)
    }

    /// The settings in one line.
    pub fn describe(&self) -> String {
        let yes = |is: bool, text: &str| if is { format!(", {text}") } else { String::new() };
        let limits = match self.limits {
            Limits { total: u32::MAX, .. } => "any number of evictions".to_owned(),
            Limits { total, per_node } if per_node >= total => format!("at most {total} evictions"),
            Limits { total, per_node } => format!("at most {total} evictions and {per_node} per node"),
        };
        let aware = self.migration_aware.map(MigrationAware::describe);
        format!(
            "{}, {}, every {}, {limits}{}, {} migrations at a time and {} per node{}{}{}",
            self.algorithm.name(),
            self.mode,
            self.interval,
            yes(self.one_per_node, "each time one per node"),
            self.migrations,
            self.migrations_per_node,
            yes(self.soft_taints, "soft taints"),
            aware.map_or_else(String::new, |text| format!(", {text}")),
            yes(!self.evicts, "nothing is evicted")
        )
    }
}
