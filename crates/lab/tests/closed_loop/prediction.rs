//! What the simulator expects of a run, over many seeds.

use balance::{Algorithm, Mode};
use lab::play::Placement;
use sim::{
    Cause, ClusterModel, Rng, RunSettings, Scenario,
    scenario::{self, Guards, Load, MigrationAware, MigrationModel, NodeGroup, Rebalancing, Semantics, VmGroup},
    simulate,
    units::{Bytes, Rate, Span},
};

use crate::course::Course;

const SEEDS: u64 = 200;
const CYCLES: u64 = 30;
const SCRAPE: Span = Span(15);
/// The interval of the descheduler, and the window over which the rules average.
const INTERVAL: Span = Span(60);

/// The interval from the 5th to the 95th percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Band {
    low: f64,
    high: f64,
}

impl Band {
    fn of(mut values: Vec<f64>) -> Band {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
        Band { low: at(0.05), high: at(0.95) }
    }

    fn holds(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Prediction {
    pub(crate) migrations: Band,
    /// The number of cycles from the first eviction to the last.
    pub(crate) active: Band,
    pub(crate) spread: Band,
}

impl Prediction {
    pub(crate) fn holds(&self, course: &Course) -> bool {
        self.migrations.holds(course.migrations as f64)
            && self.active.holds(course.active as f64)
            && self.spread.holds(course.after)
    }
}

/// `took` is the average duration of a migration, in seconds of the lab.
pub(crate) fn predict(placement: &Placement, algorithm: &Algorithm, mode: Mode, took: f64) -> Prediction {
    let mut scenario = scenario(placement, algorithm, mode);
    scenario.rebalancing.migration.bandwidth = bandwidth(placement, took);
    let model = ClusterModel::new(&scenario).unwrap();
    let mut rng = Rng::new(0);
    let (mut migrations, mut active, mut spread) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..SEEDS {
        scenario.rebalancing.lag = Some(lag(took, &mut rng));
        let (outcome, run) = simulate(&model, &RunSettings::new(&scenario).unwrap(), seed);
        let evictions = run.history().moves().iter().filter(|moved| moved.cause == Cause::Eviction);
        migrations.push(outcome.migrations.evicted as f64);
        active
            .push(evictions.map(|moved| u64::from(moved.step) * SCRAPE.0 / INTERVAL.0 + 1).max().unwrap_or_default()
                as f64);
        spread.push(outcome.end.cpu.sigma);
    }
    Prediction { migrations: Band::of(migrations), active: Band::of(active), spread: Band::of(spread) }
}

/// The delay, in whole samples, until a cycle sees the effect of the last one. In a lab, scrapes wait for the rules and rules
/// for the cycle, each up to an interval, and migrations take time. The simulator has no such delay by itself.
fn lag(took: f64, rng: &mut Rng) -> Span {
    let scrape = SCRAPE.0 as f64;
    let late = rng.between(0.0, scrape) + rng.between(0.0, scrape) + took;
    Span((late / scrape) as u64 * SCRAPE.0)
}

/// The bandwidth with which two simulated migrations take as long as in the lab. In the lab, scheduler and API server take
/// most of that time, because the time scale does not make them faster.
fn bandwidth(placement: &Placement, took: f64) -> Rate {
    let usual = scenario::MigrationSettings::default();
    let (guest, _) = &placement.0[0];
    let dirty = VmGroup::new(&guest.name).dirty_rate.0 as f64;
    let copied = guest.memory_bytes as f64 * guest.memory_use * 8.0 / took.max(f64::MIN_POSITIVE);
    Rate((f64::from(usual.per_node) * (copied + dirty)).min(usual.bandwidth.0 as f64) as u64)
}

/// The same VMs on the same nodes, with the semantics of the real descheduler and of the real scheduler.
fn scenario(placement: &Placement, algorithm: &Algorithm, mode: Mode) -> Scenario {
    let nodes = (1..=5).map(|number| NodeGroup::reference(&format!("kwok-node-{number}"))).collect();
    let vms = placement.0.iter().map(|(guest, node)| VmGroup {
        cores: guest.cores,
        memory: Bytes(guest.memory_bytes),
        cpu: Load::Constant(guest.cpu_use),
        memory_use: Load::Constant(guest.memory_use),
        on: node.iter().cloned().collect(),
        ..VmGroup::new(&guest.name)
    });
    let mut scenario = Scenario::new("skew", nodes, vms.collect());
    scenario.step = SCRAPE;
    scenario.duration = Span(INTERVAL.0 * CYCLES);
    scenario.rebalancing = Rebalancing {
        interval: Some(INTERVAL),
        window: Some(INTERVAL),
        algorithm: algorithm.slug(),
        mode: mode.slug().to_owned(),
        semantics: Semantics::Descheduler,
        placement: scenario::Placement::Scheduler,
        migration: scenario::MigrationSettings {
            model: MigrationModel::PreCopy,
            ..scenario::MigrationSettings::default()
        },
        // The lab has the plugin by default.
        guards: Guards { migration_aware: Some(MigrationAware::default()), ..Guards::default() },
        ..Rebalancing::default()
    };
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skews::use_skew;

    #[test]
    fn what_a_cycle_did_is_seen_up_to_two_samples_later() {
        let mut rng = Rng::new(0);
        let mut share = |took, expected| {
            let lags = (0..1000).filter(|_| lag(took, &mut rng).0 == expected).count();
            lags as f64 / 1000.0
        };
        // The sum of two waits of up to a sample each is less than one sample in half of the cases.
        assert!((share(0.0, 0) - 0.5).abs() < 0.05);
        assert!((share(0.0, 15) - 0.5).abs() < 0.05);
        assert!(share(7.5, 0) < 0.2, "migrations that take half a sample are seldom seen at once");
    }

    #[test]
    fn migrations_that_take_longer_than_the_usual_network_are_predicted_with_a_slower_one() {
        let rate = |took| bandwidth(&use_skew(1), took).0;
        assert_eq!(rate(0.0), 10_000_000_000, "the usual one");
        // Two VMs copy a GiB each in ten seconds, and also what they write meanwhile.
        assert_eq!(rate(10.0), 2 * (858_993_459 + 800_000_000));
    }
}
