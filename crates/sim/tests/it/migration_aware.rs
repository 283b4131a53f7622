//! The cool-down of the descheduler's plugin KubevirtMigrationAware in any run of any small cluster.

use proptest::prelude::*;
use sim::{
    Cause, Move, Run, RunSettings, Scenario,
    scenario::{MigrationAware, MigrationModel, parse},
    simulate,
    units::Span,
};

use crate::support::{build, check, scenario};

/// What happened to a VM as it is seen from outside. Times are in seconds.
#[derive(Debug, Clone, Default)]
struct Seen {
    ends: Vec<u64>,
    /// When it was evicted or drained, while this is under way.
    since: Option<u64>,
}

/// The least cool-down that is due at a time.
fn least(rules: MigrationAware, ends: &[u64], at: u64) -> u64 {
    let counted = ends.iter().filter(|end| at - **end < rules.history_window.0).count() as u32;
    (rules.cool_down.0 << counted.saturating_sub(1).min(20)).min(rules.max_cool_down.0)
}

/// Fails if an eviction began within the cool-down of its VM.
fn evictions_wait(scenario: &Scenario, rules: MigrationAware, seed: u64) -> usize {
    let (model, settings) = build(scenario);
    let mut run = Run::new(&model, settings, seed);
    let mut seen = vec![Seen::default(); model.vm_count()];
    let mut checked = 0;
    for step in 0..model.steps() {
        let (now, before) = (step * scenario.step.0, run.history().moves().len());
        let was_running: Vec<u32> = run.migrating().map(|(vm, ..)| vm).collect();
        run.step();
        check(&model, &run, scenario);
        let moves: Vec<Move> = run.history().moves()[before..].to_vec();
        for moved in &moves {
            let vm = &mut seen[moved.vm as usize];
            match moved.cause {
                Cause::Failure => *vm = Seen::default(),
                Cause::Restart => {}
                Cause::Eviction | Cause::Drain => {
                    let began = vm.since.take().unwrap_or(now);
                    if let (Cause::Eviction, Some(last)) = (moved.cause, vm.ends.last()) {
                        let waited = began - last;
                        assert!(waited >= least(rules, &vm.ends, began), "VM {} waited {waited} s: {vm:?}", moved.vm);
                        checked += 1;
                    }
                    vm.ends.push(now);
                }
            }
        }
        let running: Vec<u32> = run.migrating().map(|(vm, ..)| vm).collect();
        let under_way: Vec<u32> = running.iter().copied().chain(run.waiting()).collect();
        for (number, vm) in seen.iter_mut().enumerate() {
            let number = number as u32;
            if under_way.contains(&number) {
                vm.since.get_or_insert(now);
                continue;
            }
            let ended_without_a_move = was_running.contains(&number) && moves.iter().all(|moved| moved.vm != number);
            if ended_without_a_move {
                vm.ends.push(now);
            }
            vm.since = None;
        }
    }
    checked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_vm_is_never_evicted_within_its_cool_down(
        scenario in scenario(), seed in 0..1000_u64, times in (1..5_u64, 1..8_u64, 1..20_u64)
    ) {
        let (cool_down, greatest, window) = times;
        let rules = MigrationAware {
            cool_down: Span(cool_down * 60),
            max_cool_down: Span(cool_down * greatest * 60),
            history_window: Span(window * 60),
        };
        let mut scenario = scenario;
        scenario.rebalancing.guards.migration_aware = Some(rules);
        evictions_wait(&scenario, rules, seed);
    }

    #[test]
    fn the_plugin_changes_nothing_before_the_first_migration_has_ended(scenario in scenario(), seed in 0..1000_u64) {
        let (model, mut settings) = build(&scenario);
        // One that takes time may fail, which is an end that the moves do not show.
        settings.migration.model = MigrationModel::Instant;
        let mut aware = settings;
        aware.guards.migration_aware = Some(MigrationAware::default());
        let first = |settings: RunSettings| {
            let (_, run) = simulate(&model, &settings, seed);
            run.history().moves().iter().find(|moved| moved.cause != Cause::Restart).copied()
        };
        prop_assert_eq!(first(settings), first(aware));
    }
}

/// A VM that is too heavy for balance moves to and fro for ever.
fn flapping(guards: &str, more: &str) -> Scenario {
    let text = format!(
        "
name: flapping
duration: 3d
nodes: [{{name: n, count: 2, cores: 16, memory: 64Gi}}]
vms: [{{name: heavy, cores: 8, memory: 8Gi, cpu: 0.9, on: [n-1]}}, {{name: light, count: 2, cores: 2, memory: 2Gi, cpu: 0.1, migratable: false, on: [n-1, n-2]}}]
rebalancing: {{algorithm: cpu_focused, guards: {{{guards}}}{more}}}
"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

/// The minutes between the moves of the VM.
fn pauses(scenario: &Scenario) -> Vec<u32> {
    let (model, settings) = build(scenario);
    let (_, run) = simulate(&model, &settings, 0);
    run.history().moves().windows(2).map(|pair| pair[1].step - pair[0].step).collect()
}

#[test]
fn a_vm_that_moves_again_and_again_waits_twice_as_long_each_time_up_to_six_hours() {
    for more in ["", ", semantics: descheduler", ", semantics: descheduler, placement: scheduler"] {
        let pauses = pauses(&flapping("migrationAware: {}", more));
        assert_eq!(pauses[..8], [15, 30, 60, 120, 240, 360, 360, 360], "{more}");
        assert!(pauses[8..].iter().all(|pause| *pause == 360), "{more}: there are always more than six in 48 hours");
    }
}

#[test]
fn a_short_window_forgets_and_the_cool_down_shrinks() {
    let pauses = pauses(&flapping("migrationAware: {coolDown: 10m, maxCoolDown: 6h, historyWindow: 45m}", ""));
    // After 10, 20 and 40 minutes the first ones are forgotten; two count then, and one when the pause is over.
    assert_eq!(pauses[..2], [10, 20]);
    assert!(pauses[2..].iter().all(|pause| *pause <= 40), "{pauses:?}");
    assert!(pauses.len() > 3 * 24 * 60 / 40 - 2);
}

#[test]
fn evictions_that_the_plugin_puts_off_are_counted() {
    for more in ["", ", semantics: descheduler"] {
        let (model, settings) = build(&flapping("migrationAware: {}", more));
        let (with, _) = simulate(&model, &settings, 0);
        assert!(with.blocked.cooling_down > 1000, "{more}: {:?}", with.blocked);
        let (model, settings) = build(&flapping("", more));
        assert_eq!(simulate(&model, &settings, 0).0.blocked.cooling_down, 0, "{more}");
    }
}

#[test]
fn times_that_make_no_sense_are_refused() {
    for (times, expected) in [
        ("coolDown: 0s", "guards.migrationAware.coolDown: 0s is not a time above 0"),
        ("historyWindow: 0s", "guards.migrationAware.historyWindow: 0s is not a time above 0"),
        ("maxCoolDown: 5m", "guards.migrationAware.maxCoolDown: 5m is less than coolDown, which is 15m"),
    ] {
        let mut scenario = flapping("", "");
        scenario.rebalancing.guards.migration_aware = Some(serde_json::from_value(json(times)).unwrap());
        let error = RunSettings::new(&scenario).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

fn json(times: &str) -> serde_json::Value {
    let (field, value) = times.split_once(": ").unwrap();
    serde_json::json!({ field: value })
}
