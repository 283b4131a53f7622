//! The rules of the real descheduler.

use sim::{
    Cause, Move, Run, Scenario,
    scenario::{Semantics, parse},
};

use crate::support::build;

fn scenario(vms: &str, rules: &str) -> Scenario {
    let text = format!(
        "name: table\nnodes: [{{name: n, count: 4, cores: 100, memory: 400Gi}}]\nvms:\n{vms}\nrebalancing: {{algorithm: cpu_focused, semantics: descheduler, {rules}}}\n"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0)
}

/// The evictions of the first step: names of VMs with their sources.
fn first_evictions(scenario: &Scenario) -> Vec<(String, String)> {
    let (model, settings) = build(scenario);
    let mut run = Run::new(&model, settings, 7);
    run.step();
    let evictions = run.history().moves().iter().filter(|moved| moved.cause == Cause::Eviction);
    evictions.map(|moved: &Move| (model.vm_name(moved.vm), model.node_name(moved.from).to_owned())).collect()
}

const HOT: &str = "
- {name: hot, count: 10, cores: 10, memory: 1Gi, cpu: 0.8, on: [n-1]}
- {name: warm, count: 10, cores: 10, memory: 1Gi, cpu: 0.7, on: [n-2]}
- {name: cool, count: 10, cores: 10, memory: 1Gi, cpu: 0.1, on: [n-3, n-4]}";

#[test]
fn sources_come_by_falling_score_and_each_gives_up_to_its_limit() {
    let evicted = |rules: &str| -> Vec<String> {
        first_evictions(&scenario(HOT, rules)).into_iter().map(|(_, from)| from).collect()
    };
    assert_eq!(evicted("limits: {total: 5, perNode: 2}"), ["n-1", "n-1", "n-2", "n-2"]);
    assert_eq!(evicted("limits: {total: 3, perNode: 2}"), ["n-1", "n-1", "n-2"]);
    assert_eq!(evicted("limits: {total: 5, perNode: 4}"), ["n-1", "n-1", "n-1", "n-1", "n-2"]);
    assert_eq!(evicted("limits: {total: 0, perNode: 2}"), [] as [&str; 0]);
}

#[test]
fn low_priorities_go_first_and_what_cannot_migrate_is_passed_over() {
    let vms = "
- {name: pinned, count: 3, cores: 10, memory: 1Gi, cpu: 0.9, priority: -5, migratable: false, on: [n-1]}
- {name: precious, count: 3, cores: 10, memory: 1Gi, cpu: 0.9, priority: 10, on: [n-1]}
- {name: plain, count: 3, cores: 10, memory: 1Gi, cpu: 0.9, on: [n-1]}
- {name: cool, count: 9, cores: 1, memory: 1Gi, cpu: 0.1, on: [n-2, n-3, n-4]}";
    let evicted = first_evictions(&scenario(vms, "limits: {total: 5, perNode: 4}"));
    let mut names: Vec<&str> = evicted.iter().map(|(vm, _)| vm.as_str()).collect();
    assert!(names.pop().unwrap().starts_with("precious-"), "{names:?}");
    names.sort_unstable();
    assert_eq!(names, ["plain-1", "plain-2", "plain-3"], "of equals, any goes first");
}

/// A score slightly above the bound is over in the reference, but not in whole percent.
#[test]
fn scores_are_cut_to_whole_percent_and_over_is_strict() {
    // CPU Focused of 0.7 x use and the reference's pressure: the use is chosen to give 0.10 more than the average.
    let vms = "
- {name: a, count: 10, cores: 10, memory: 1Gi, cpu: 0.2, on: [n-1]}
- {name: b, count: 30, cores: 10, memory: 1Gi, cpu: 0.0, on: [n-2, n-3, n-4]}";
    // 0.7 x 0.2 + 0.3 x 0.014 = 0.1442: percents 14, 0, 0, 0 average 3.5, so over is beyond 13.5.
    assert_eq!(first_evictions(&scenario(vms, "limits: {total: 1, perNode: 1}")).len(), 1);
    // 0.7 x 0.185 + 0.3 x 0.01295 = 0.133385: percents 13, 0, 0, 0 average 3.25, so over is beyond 13.25.
    let below = vms.replace("cpu: 0.2", "cpu: 0.185");
    assert_eq!(first_evictions(&scenario(&below, "limits: {total: 1, perNode: 1}")).len(), 0);
    // The exact score, 0.133385, is at least its average, 0.03334625, and 0.10.
    let mut reference = scenario(&below, "limits: {total: 1, perNode: 1}");
    reference.rebalancing.semantics = Semantics::Reference;
    assert_eq!(first_evictions(&reference).len(), 1);
}

#[test]
fn nothing_happens_when_every_node_is_under_utilized() {
    let vms = "- {name: a, count: 40, cores: 10, memory: 1Gi, cpu: 0.5, on: [n]}";
    assert_eq!(first_evictions(&scenario(vms, "limits: {total: 5, perNode: 2}")), []);
}

#[test]
fn evictions_in_flight_count_until_the_migration_ends() {
    let vms = HOT.replace("memory: 1Gi", "memory: 64Gi, memoryUse: 1.0").replace("count: 10", "count: 5");
    let scenario = scenario(
        &vms,
        "limits: {total: 3, perNode: 2}, migration: {model: preCopy, bandwidth: 1Gbps, cluster: 10, perNode: 5}",
    );
    let (model, settings) = build(&scenario);
    let mut run = Run::new(&model, settings, 1);
    for _ in 0..3 {
        run.step();
        // 64 GiB over a shared gigabit take longer than three minutes, so no VM arrives and no other VM leaves.
        assert_eq!(run.migrating().count(), 3, "three are in flight and no more");
    }
}

#[test]
fn a_cordoned_node_is_no_destination() {
    let text = scenario(HOT, "limits: {total: 5, perNode: 2}")
        .to_yaml()
        .replace("rebalancing:", "events: [{at: 0s, cordon: n-3}]\nrebalancing:");
    let scenario = parse(&text).unwrap().remove(0);
    let (model, settings) = build(&scenario);
    let mut run = Run::new(&model, settings, 1);
    (0..20).for_each(|_| run.step());
    assert!(!run.history().moves().is_empty());
    assert!(run.history().moves().iter().all(|moved| model.node_name(moved.to) != "n-3"));
}
