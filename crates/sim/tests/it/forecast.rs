//! Forecasts of plans.

use balance::{Algorithm, Mode};
use proptest::prelude::*;
use sim::{
    Cause, ClusterModel, RunSettings, Scenario,
    forecast::{
        CheckResult, Figure, FigureName, Forecast, ForecastOptions, HotReason, Observation, PlannedSettings, Setting,
        StuckReason, check, forecast,
    },
    scenario::{Guards, Limits, Load, MigrationAware, VmGroup, parse, shipped},
    simulate,
    units::{Bytes, Span},
};

use crate::support::scenario;

fn plan() -> PlannedSettings {
    PlannedSettings {
        algorithm: Algorithm::amplified(3.0),
        mode: Mode::AsymmetricLow,
        limits: Limits { total: 5, per_node: 2 },
        one_per_node: false,
        interval: Span(60),
        evicts: true,
        soft_taints: true,
        migration_aware: None,
        migrations: 5,
        migrations_per_node: 2,
    }
}

fn options(seeds: std::ops::Range<u64>) -> ForecastOptions {
    ForecastOptions { seeds, horizon: Some(Span(3600)), alternatives: Vec::new(), threads: 1 }
}

fn of(scenario: &Scenario, plan: &PlannedSettings, options: &ForecastOptions) -> Forecast {
    forecast(scenario, plan, options, &|_, _| {}).unwrap()
}

fn read(text: &str) -> Scenario {
    parse(text).unwrap().remove(0)
}

/// Two nodes, the first with ten busy VMs; the words are added to the VMs.
fn skewed(words: &str) -> Scenario {
    read(&format!(
        "{{name: skewed, nodes: [{{name: n, count: 2, labels: {{a: b}}}}], vms: [{{name: v, count: 10, cores: 4, cpu: 0.7, on: [n-1]{words}}}]}}"
    ))
}

fn figures(forecast: &Forecast) -> [Figure; 7] {
    [
        forecast.spread_now,
        forecast.spread_at_rest,
        forecast.migrations_first_hour,
        forecast.migrations_first_day,
        forecast.migrations_per_hour_at_rest,
        forecast.migrations,
        forecast.bytes_moved,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_cluster_has_a_forecast_whose_figures_fit_each_other(scenario in scenario(), aware in any::<bool>()) {
        let plan = PlannedSettings { migration_aware: aware.then(MigrationAware::default), ..plan() };
        let forecast = of(&scenario, &plan, &options(0..3));
        for figure in figures(&forecast) {
            prop_assert!(0.0 <= figure.low && figure.low <= figure.expected && figure.expected <= figure.high, "{figure:?}");
        }
        let at_most = |one: Figure, other: Figure| one.low <= other.low && one.high <= other.high;
        prop_assert!(at_most(forecast.migrations_first_hour, forecast.migrations_first_day));
        prop_assert!(forecast.spread_at_rest.high <= 1.0 && (0.0..=1.0).contains(&forecast.settles));
        prop_assert_eq!(forecast.settles == 1.0, forecast.migrations_per_hour_at_rest.high == 0.0);
        let moved: f64 = forecast.most_moved.iter().map(|moved| moved.migrations).sum();
        prop_assert_eq!(forecast.migrations.high > 0.0, moved > 0.0);
        // Also migrations that fail send bytes.
        prop_assert!(forecast.migrations.high == 0.0 || forecast.bytes_moved.high > 0.0);
        prop_assert!(forecast.stuck_vms.iter().map(|stuck| stuck.count).sum::<usize>() <= forecast.vms);
        prop_assert!(forecast.hot_nodes.iter().all(|hot| (0.5..=1.0).contains(&hot.share)));
    }

    #[test]
    fn a_plan_that_evicts_nothing_moves_nothing(scenario in scenario()) {
        let scenario = Scenario { events: Vec::new(), ..scenario };
        let forecast = of(&scenario, &PlannedSettings { evicts: false, ..plan() }, &options(0..2));
        prop_assert_eq!((forecast.migrations.high, forecast.settles, forecast.alternatives.len()), (0.0, 1.0, 1));
        prop_assert!(forecast.most_moved.is_empty());
        prop_assert!(forecast.hot_nodes.iter().all(|hot| hot.reason == HotReason::NothingEvicted));
    }
}

/// They move with any plan.
#[test]
fn vms_of_a_drained_node_are_no_moves_of_the_plan() {
    let scenario = read(
        "{name: drained, nodes: [{name: n, count: 2}], vms: [{name: v, count: 4, cores: 1, cpu: 0.2}], events: [{at: 5m, drain: n-1}]}",
    );
    let forecast = of(&scenario, &PlannedSettings { evicts: false, ..plan() }, &options(0..2));
    assert_eq!((forecast.migrations.high, forecast.bytes_moved.high, forecast.most_moved), (0.0, 0.0, Vec::new()));
    let planned = plan().in_scenario(&scenario, Some(Span(3600))).unwrap();
    let (model, settings) = (ClusterModel::new(&planned).unwrap(), RunSettings::new(&planned).unwrap());
    let totals = *simulate(&model, &settings, 0).1.totals();
    assert!(totals.bytes > 0.0 && totals.evicted_bytes == 0.0, "the node was drained: {totals:?}");
}

#[test]
fn the_same_seeds_give_the_same_forecast_with_any_number_of_threads() {
    let scenario = shipped::find("hotspot").unwrap();
    let with = |threads, seeds| {
        let alternatives = vec![Setting { mode: Mode::High, limits: plan().limits }];
        of(&scenario, &plan(), &ForecastOptions { threads, alternatives, ..options(seeds) })
    };
    assert_eq!(with(1, 0..4), with(3, 0..4));
    assert_ne!(with(1, 0..4), with(1, 4..8), "other seeds give another one");
}

/// The intervals are those of single runs: a run with any other seed is in them as often as they say.
#[test]
fn nine_of_ten_other_runs_are_in_the_interval() {
    let scenario = shipped::find("hotspot").unwrap();
    let horizon = Some(Span(7200));
    let forecast = of(&scenario, &plan(), &ForecastOptions { horizon, ..options(0..60) });
    let figures = [
        (FigureName::SpreadAtRest, forecast.spread_at_rest),
        (FigureName::MigrationsFirstHour, forecast.migrations_first_hour),
        (FigureName::Migrations, forecast.migrations),
        (FigureName::BytesMoved, forecast.bytes_moved),
    ];
    let planned = plan().in_scenario(&scenario, horizon).unwrap();
    let (model, settings) = (ClusterModel::new(&planned).unwrap(), RunSettings::new(&planned).unwrap());
    let mut inside = [0; 4];
    for seed in 1000..1050 {
        let settings = RunSettings { lag: seed % 3, ..settings };
        let (_, run) = simulate(&model, &settings, seed);
        let evictions = run.history().moves().iter().filter(|moved| moved.cause == Cause::Eviction);
        let seen = Observation {
            elapsed: 7200,
            migrations: Some(evictions.map(|moved| u64::from(moved.step) * 15).collect()),
            spread: Some(run.history().samples().iter().map(|sample| (sample.step * 15, sample.cpu.sigma)).collect()),
            bytes: Some(vec![(0, run.totals().evicted_bytes)]),
        };
        for (count, checked) in inside.iter_mut().zip(check(&figures, 7200, &seen)) {
            *count += usize::from(checked.result == CheckResult::In);
        }
    }
    assert!(inside.iter().all(|count| *count >= 40), "of 50: {inside:?}, {figures:?}");
}

#[test]
fn a_skew_becomes_less_and_the_vms_of_the_hot_node_move() {
    let text = "{name: small, nodes: [{name: n, count: 5}], vms: [{name: v, count: 60, cores: 1, memory: 1Gi, cpu: 0.5, on: [n-1]}]}";
    let forecast = of(&read(text), &plan(), &options(0..10));
    assert!(forecast.spread_now.expected > 0.3, "{forecast:?}");
    assert!(forecast.spread_at_rest.high < 0.1, "{forecast:?}");
    assert_eq!((forecast.settles, forecast.hot_nodes.len()), (1.0, 0), "{forecast:?}");
    assert!((30.0..=60.0).contains(&forecast.migrations.expected), "{forecast:?}");
    assert_eq!(forecast.migrations, forecast.migrations_first_day, "nothing moves at rest");
    assert!(forecast.settled_after_seconds.is_some_and(|figure| figure.high < 2700.0), "{forecast:?}");
}

/// As before the plugin had a limit: two decisions evict what one decision could.
#[test]
fn a_plugin_without_a_limit_evicts_one_vm_of_a_node_each_time() {
    let scenario = read(
        "{name: small, nodes: [{name: n, count: 5}], vms: [{name: v, count: 60, cores: 1, memory: 1Gi, cpu: 0.5, on: [n-1]}]}",
    );
    let first_hour = |one_per_node: bool, limits: Limits| {
        let plan = PlannedSettings { one_per_node, limits, interval: Span(300), ..plan() };
        let text = plan.describe();
        assert_eq!(text.contains("each time one per node"), one_per_node, "{text}");
        of(&scenario, &plan, &options(0..2)).migrations_first_hour.high
    };
    let two = Limits { total: 5, per_node: 2 };
    assert_eq!((first_hour(false, two), first_hour(true, two)), (24.0, 12.0), "twelve decisions");
    assert_eq!(first_hour(true, Limits { total: 5, per_node: 1 }), 12.0);
}

#[test]
fn the_cool_down_is_that_of_the_descheduler_s_plugin() {
    let with = |migration_aware: Option<MigrationAware>| {
        let plan = PlannedSettings { migration_aware, ..plan() };
        let guards = plan.in_scenario(&skewed(""), None).unwrap().rebalancing.guards;
        assert_eq!(guards, Guards { migration_aware, ..Guards::default() });
        let forecast = of(&skewed(""), &plan, &options(0..4));
        (forecast, plan.describe())
    };
    let most = |forecast: &Forecast| forecast.most_moved.first().map_or(0.0, |moved| moved.migrations);
    let (without, _) = with(None);
    let (usual, text) = with(Some(MigrationAware::default()));
    assert!(text.contains("cool-down from 15m to 6h by the migrations of 2d"), "{text}");
    let cool_down = Span(7200);
    let (long, _) = with(Some(MigrationAware { cool_down, ..MigrationAware::default() }));
    assert!(most(&without) > most(&usual) && most(&usual) > most(&long), "{without:?} {usual:?} {long:?}");
    assert_eq!(most(&long), 1.0, "it is longer than the forecast");
}

#[test]
fn a_wide_interval_says_why() {
    let scenario = shipped::find("hotspot").unwrap();
    let forecast = of(&scenario, &plan(), &options(0..8));
    assert!((0.0..1.0).contains(&forecast.settles), "{forecast:?}");
    let figure = forecast.migrations_first_day;
    assert!(figure.high - figure.low > figure.expected / 2.0, "{figure:?}");
    let wide = forecast.wide.iter().find(|wide| wide.figure == FigureName::MigrationsFirstDay).unwrap();
    assert!(wide.because.contains("settle") && wide.because.contains("counts 93 times"), "{}", wide.because);
    let narrow = of(&skewed(", migratable: false"), &plan(), &options(0..8));
    assert_eq!(narrow.wide, [], "nothing moves");
}

#[test]
fn a_vm_that_cannot_move_is_listed_with_the_reason_and_so_is_the_node_that_stays_hot() {
    let not_allowed = ", affinity: {nodes: {only: here}}";
    for (words, stuck, hot) in [
        (", migratable: false", StuckReason::NotMigratable, HotReason::NotMigratable),
        (not_allowed, StuckReason::NotAllowed, HotReason::NoDestination),
        (", memory: 64Gi", StuckReason::NoRoom, HotReason::NoDestination),
    ] {
        let mut scenario = skewed(words);
        if stuck == StuckReason::NoRoom {
            let (count, on) = (Some(1), vec!["n-2".to_owned()]);
            scenario.vms[0].count = Some(2);
            scenario.vms[0].cores = 16.0;
            let other = VmGroup { name: "w".into(), count, on, migratable: false, ..scenario.vms[0].clone() };
            scenario.vms.push(VmGroup { cpu: Load::Constant(0.1), memory: Bytes(100 << 30), ..other });
        }
        let forecast = of(&scenario, &plan(), &options(0..2));
        let own = forecast
            .stuck_vms
            .iter()
            .find(|known| known.reason == stuck)
            .unwrap_or_else(|| panic!("{words}: {forecast:?}"));
        assert_eq!((own.count, own.vms[0].as_str()), (scenario.vms[0].count.unwrap() as usize, "v-1"), "{words}");
        let nodes: Vec<_> = forecast.hot_nodes.iter().map(|node| (node.node.as_str(), node.reason)).collect();
        assert_eq!(nodes, [("n-1", hot)], "{words}");
        assert_eq!(forecast.migrations.high, 0.0, "{words}");
    }
    let apart = of(&skewed(", affinity: {apart: x}"), &plan(), &options(0..2));
    assert_eq!(apart.stuck_vms, [], "nobody is on the other node: {apart:?}");
}

#[test]
fn vms_that_cannot_be_migrated_are_grouped_by_the_cause() {
    let text = "
name: stuck
nodes: [{name: n, count: 2}]
vms:
- {name: plain, migratable: false}
- {name: disk, count: 2, migratable: false, notMigratableBecause: DisksNotLiveMigratable}
- {name: card, count: 25, migratable: false, notMigratableBecause: HostDeviceNotLiveMigratable}
- {name: other-disk, migratable: false, notMigratableBecause: DisksNotLiveMigratable}
- {name: free}";
    let forecast = of(&read(text), &plan(), &options(0..1));
    let groups: Vec<_> = forecast.stuck_vms.iter().map(|stuck| (stuck.because.as_str(), stuck.count)).collect();
    let expected = [
        ("cannot be migrated while they run: HostDeviceNotLiveMigratable", 25),
        ("cannot be migrated while they run: DisksNotLiveMigratable", 3),
        ("cannot be migrated while they run", 1),
    ];
    assert_eq!(groups, expected);
    assert_eq!(forecast.stuck_vms[1].vms, ["disk-1", "disk-2", "other-disk"]);
    let causes =
        (0..30).map(|number| format!("{{name: v{number}, migratable: false, notMigratableBecause: c{number}}}"));
    let text =
        format!("{{name: many, nodes: [{{name: n, count: 2}}], vms: [{}]}}", causes.collect::<Vec<_>>().join(", "));
    let forecast = of(&read(&text), &plan(), &options(0..1));
    let others = forecast.stuck_vms.last().map(|stuck| (stuck.cause.as_deref(), stuck.count));
    assert_eq!((forecast.stuck_vms.len(), others), (21, Some((None, 10))), "a long list helps nobody");
}

#[test]
fn one_vm_that_makes_a_node_hot_is_told() {
    let text = "
name: one
nodes: [{name: n, count: 4}, {name: m, labels: {home: m}}]
vms:
- {name: big, cores: 30, cpu: 1, on: [m], migratable: false}
- {name: tied, cores: 1, on: [m], affinity: {nodes: {home: m}}}
- {name: small, count: 8, on: [n]}";
    let forecast = of(&read(text), &plan(), &options(0..6));
    let nodes: Vec<_> = forecast.hot_nodes.iter().map(|node| (node.node.as_str(), node.reason, node.share)).collect();
    assert_eq!(nodes, [("m", HotReason::OneVm, 1.0)]);
}

#[test]
fn thresholds_and_limits_are_compared_in_one_table_with_the_plan_first() {
    let alternatives = Setting::usual(&plan());
    let scenario = shipped::find("hotspot").unwrap();
    let forecast = of(&scenario, &plan(), &ForecastOptions { alternatives, ..options(0..8) });
    let rows: Vec<_> = forecast
        .alternatives
        .iter()
        .map(|row| (row.thresholds.as_str(), row.limit_total, row.limit_node, row.is_planned))
        .collect();
    assert_eq!(rows[0], ("AsymmetricLow", 5, 2, true));
    assert_eq!(rows.len(), 8, "{rows:?}");
    assert_eq!(rows.iter().filter(|row| row.3).count(), 1, "{rows:?}");
    assert!(rows.contains(&("AsymmetricLow", 10, 4, false)) && rows.contains(&("AsymmetricLow", 2, 1, false)));
    let own = &forecast.alternatives[0];
    assert_eq!(
        (own.spread_at_rest, own.migrations_first_hour),
        (forecast.spread_at_rest, forecast.migrations_first_hour)
    );
}

/// Each of these VMs is an eleventh of a node. Low thresholds never stop moving them, and higher ones lose nothing.
#[test]
fn a_recommendation_is_made_where_the_intervals_are_apart() {
    let with = |mode: Mode, other: Mode| {
        let alternatives = vec![Setting { mode: other, limits: plan().limits }];
        of(&skewed(""), &PlannedSettings { mode, ..plan() }, &ForecastOptions { alternatives, ..options(0..8) })
    };
    let restless = with(Mode::AsymmetricLow, Mode::AsymmetricMedium);
    assert_eq!(restless.settles, 0.0);
    assert_eq!(restless.recommendation.map(|chosen| chosen.thresholds).as_deref(), Some("AsymmetricMedium"));
    assert_eq!(with(Mode::AsymmetricMedium, Mode::AsymmetricLow).recommendation, None);
}

#[test]
fn a_forecast_without_seeds_or_of_a_minute_is_refused() {
    let scenario = skewed("");
    let refused = |options| forecast(&scenario, &plan(), &options, &|_, _| {}).unwrap_err().to_string();
    assert_eq!(refused(options(3..3)), "a forecast needs at least one seed");
    let short = refused(ForecastOptions { horizon: Some(Span(60)), ..options(0..1) });
    assert_eq!(short, "a forecast of 1m is too short: it needs an hour at least");
}

#[test]
fn the_horizon_is_that_of_the_scenario_from_two_hours_to_a_day() {
    for (duration, expected) in [(60, 7200), (10_800, 10_800), (900_000, 86_400)] {
        let scenario = Scenario { duration: Span(duration), ..skewed("") };
        let planned = plan().in_scenario(&scenario, None).unwrap();
        assert_eq!((planned.duration.0, planned.step.0), (expected, 15));
    }
    let odd = PlannedSettings { interval: Span(70), ..plan() }.in_scenario(&skewed(""), None).unwrap();
    assert_eq!((odd.step.0, odd.rebalancing.interval), (14, Some(Span(70))));
}
