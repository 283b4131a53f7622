//! The settings of a run: how it rebalances, with names resolved, times in steps, and everything checked.

use balance::{Algorithm, Classifier, Mode, PressureModel};

use crate::scenario::{
    Guards, Limits, Loads, MigrationAware, MigrationModel, MigrationSettings, Placement, Rebalancing, Scenario,
    ScenarioError, Semantics,
};

/// How a run rebalances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSettings {
    pub algorithm: Algorithm,
    pub classifier: Classifier,
    pub pressure: PressureModel,
    /// `Stated` only if the scenario states measured signals.
    pub loads: Loads,
    /// The number of steps from one decision to the next.
    pub interval: u64,
    /// The number of steps over which signals are averaged.
    pub window: u64,
    /// The age of the newest signals, in steps.
    pub lag: u64,
    pub limits: Limits,
    /// Whether one decision evicts no more than one VM of a node, as the descheduler does where its plugin has no limit.
    pub one_per_node: bool,
    pub placement: Placement,
    pub soft_taints: bool,
    pub cpu_overcommit: f64,
    pub migration: MigrationSettings,
    pub guards: Guards,
    /// Whether each step is measured and recorded. Moves are always recorded.
    pub measure: bool,
}

impl From<Semantics> for balance::Semantics {
    fn from(semantics: Semantics) -> Self {
        match semantics {
            Semantics::Reference => Self::Reference,
            Semantics::Descheduler => Self::Descheduler,
        }
    }
}

impl RunSettings {
    /// The settings of a scenario.
    pub fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let states_loads = scenario.nodes.iter().any(|group| group.measured.is_some());
        let loads = if states_loads { scenario.rebalancing.loads } else { Loads::Vms };
        Self::of(&scenario.rebalancing, scenario.step.0, loads)
    }

    fn of(given: &Rebalancing, step: u64, loads: Loads) -> Result<Self, ScenarioError> {
        let invalid = |field: &str, message: String| Err(ScenarioError::new(format!("rebalancing.{field}"), message));
        let named = |field: &str, error: balance::Unknown| {
            ScenarioError::new(format!("rebalancing.{field}"), error.to_string())
        };
        let algorithm: Algorithm = given.algorithm.parse().map_err(|error| named("algorithm", error))?;
        let mode: Mode = given.mode.parse().map_err(|error| named("mode", error))?;
        let pressure: PressureModel = given.pressure.parse().map_err(|error| named("pressure", error))?;
        if !(given.cpu_overcommit >= 1.0 && given.cpu_overcommit <= 1000.0) {
            return invalid("cpuOvercommit", format!("{} is not a number from 1 to 1000", given.cpu_overcommit));
        }
        let MigrationSettings { bandwidth, per_node, cluster, timeout_per_gib, failure_rate, .. } = given.migration;
        if bandwidth.0 == 0 {
            return invalid("migration.bandwidth", "0 is not a data rate above 0".to_owned());
        }
        for (field, value) in [("perNode", per_node), ("cluster", cluster), ("timeoutPerGib", timeout_per_gib)] {
            if !(1..=100_000).contains(&value) {
                return invalid(&format!("migration.{field}"), format!("{value} is not a number from 1 to 100000"));
            }
        }
        for (field, value) in [("migration.failureRate", failure_rate), ("guards.hysteresis", given.guards.hysteresis)]
        {
            if !(0.0..=1.0).contains(&value) {
                return invalid(field, format!("{value} is not a share from 0 to 1"));
            }
        }
        if let Some(MigrationAware { cool_down, max_cool_down, history_window }) = given.guards.migration_aware {
            for (field, value) in [("coolDown", cool_down), ("historyWindow", history_window)] {
                if value.0 == 0 {
                    return invalid(
                        &format!("guards.migrationAware.{field}"),
                        format!("{value} is not a time above 0"),
                    );
                }
            }
            if max_cool_down < cool_down {
                let message = format!("{max_cool_down} is less than coolDown, which is {cool_down}");
                return invalid("guards.migrationAware.maxCoolDown", message);
            }
        }
        Ok(Self {
            algorithm,
            classifier: Classifier::new(mode, given.semantics.into()),
            pressure,
            loads,
            interval: given.interval.map_or(1, |interval| (interval.0 / step.max(1)).max(1)),
            window: given.window.map_or(1, |window| window.0 / step.max(1)),
            lag: given.lag.map_or(0, |lag| lag.0 / step.max(1)),
            limits: given.limits,
            one_per_node: false,
            placement: given.placement,
            soft_taints: given.soft_taints,
            cpu_overcommit: given.cpu_overcommit,
            migration: given.migration,
            guards: given.guards,
            measure: true,
        })
    }

    /// The rules, the placement and the migrations in one line.
    pub fn describe(&self) -> String {
        let placement = match (self.placement, self.soft_taints) {
            (Placement::Random, _) => "random placement",
            (Placement::Scheduler, true) => "scheduler's placement with soft taints",
            (Placement::Scheduler, false) => "scheduler's placement without soft taints",
        };
        let migration = match self.migration.model {
            MigrationModel::Instant => "instant migrations".to_owned(),
            MigrationModel::PreCopy => format!("pre-copy migrations at {}", self.migration.bandwidth),
        };
        let Limits { total, per_node } = self.limits;
        let aware = self.guards.migration_aware.map(|aware| format!(", {}", aware.describe())).unwrap_or_default();
        format!(
            "{}, {}, {}, at most {total} evictions and {per_node} per node, {placement}, {migration}{aware}",
            self.classifier,
            self.pressure,
            self.loads.describe()
        )
    }
}
