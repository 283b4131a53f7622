//! Migrations that take time, drains, failures and guards.

use sim::{Cause, Run, RunResult, Scenario, scenario::parse, simulate};

use crate::support::build;

fn scenario(text: &str) -> Scenario {
    parse(text).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn outcome(text: &str) -> RunResult {
    let (model, settings) = build(&scenario(text));
    simulate(&model, &settings, 0).0
}

/// One VM leaves a drained node. The memory that it writes meanwhile is sent again.
#[test]
fn a_migration_takes_memory_divided_by_what_the_network_has_over_the_dirty_rate() {
    let text = "
name: one
step: 1s
duration: 5m
nodes: [{name: n, count: 2, cores: 32, memory: 128Gi}]
vms: [{name: a, cores: 4, memory: 10Gi, memoryUse: 0.8, dirtyRate: 2Gbps, on: [n-1]}]
events: [{at: 10s, drain: n-1}]
rebalancing: {placement: scheduler, migration: {model: preCopy, bandwidth: 10Gbps}}
";
    let (model, settings) = build(&scenario(text));
    let (outcome, run) = simulate(&model, &settings, 0);
    // 8 GiB at (10 - 2) Gbit/s: 8.59 s.
    let moved = run.history().moves()[0];
    assert_eq!((moved.step, moved.cause), (10 + 9, Cause::Drain));
    let expected = 8.0 * 1_073_741_824.0 * (10.0 / 8.0);
    assert!((outcome.migrations.bytes - expected).abs() < 1.0, "{} instead of {expected}", outcome.migrations.bytes);
}

#[test]
fn migrations_share_the_bandwidth_and_those_left_get_faster_when_one_ends() {
    let text = "
name: two
step: 1s
duration: 5m
nodes: [{name: n, count: 3, cores: 32, memory: 128Gi}]
vms:
- {name: small, cores: 4, memory: 4Gi, memoryUse: 1.0, dirtyRate: 0, on: [n-1]}
- {name: large, cores: 4, memory: 12Gi, memoryUse: 1.0, dirtyRate: 0, on: [n-1]}
events: [{at: 0s, drain: n-1}]
rebalancing: {placement: scheduler, migration: {model: preCopy, bandwidth: 8589934592}}
";
    let (model, settings) = build(&scenario(text));
    let (_, run) = simulate(&model, &settings, 0);
    // The network carries 1 GiB/s. Both share it for 8 s; then the large one has 8 GiB left and the whole network.
    let steps: Vec<u32> = run.history().moves().iter().map(|moved| moved.step).collect();
    assert_eq!(steps, [8, 16]);
}

#[test]
fn a_vm_that_writes_faster_than_the_network_is_given_up_and_stays() {
    let outcome = outcome(
        "
name: dirty
duration: 20m
nodes: [{name: n, count: 2, cores: 32, memory: 128Gi}]
vms: [{name: a, cores: 4, memory: 10Gi, dirtyRate: 12Gbps, on: [n-1]}]
events: [{at: 0s, drain: n-1}, {at: 3m, uncordon: n-1}]
rebalancing: {placement: scheduler, migration: {model: preCopy, bandwidth: 10Gbps}}
",
    );
    assert_eq!((outcome.migrations.total, outcome.migrations.failed), (0, 1));
}

#[test]
fn a_drain_empties_the_node_but_for_what_cannot_migrate() {
    let scenario = sim::scenario::shipped::find("drain").unwrap();
    let (model, settings) = build(&scenario);
    let mut run = Run::new(&model, settings, 0);
    while run.step_number() < 70 {
        run.step();
    }
    assert_eq!(run.vms(0), [] as [u32; 0], "worker-1 was drained");
    while run.step_number() < 299 {
        run.step();
    }
    let left: Vec<String> = run.vms(3).iter().map(|vm| model.vm_name(*vm)).collect();
    assert_eq!(left, ["appliance-1"], "worker-4 was drained");
}

#[test]
fn vms_of_a_failed_node_are_started_elsewhere_by_priority() {
    let text = "
name: failure
duration: 10m
nodes: [{name: n, count: 2, cores: 32, memory: 16Gi}]
vms:
- {name: low, count: 2, cores: 2, memory: 8Gi, on: [n-1]}
- {name: high, cores: 2, memory: 8Gi, priority: 5, on: [n-1]}
- {name: there, cores: 2, memory: 1Gi, on: [n-2]}
events: [{at: 2m, fail: n-1}, {at: 6m, recover: n-1}]
rebalancing: {limits: {total: 0}}
";
    let (model, settings) = build(&scenario(text));
    let mut run = Run::new(&model, settings, 0);
    while run.step_number() < 5 {
        run.step();
    }
    let names = |vms: &[u32]| -> Vec<String> { vms.iter().map(|vm| model.vm_name(*vm)).collect() };
    assert_eq!(names(run.vms(1)), ["high", "there"], "the important one first, and there is room for one");
    assert_eq!(names(run.pending()), ["low-1", "low-2"]);
    while run.step_number() < 8 {
        run.step();
    }
    assert_eq!(names(run.vms(0)), ["low-1", "low-2"], "the node is back");
    assert!(run.pending().is_empty());
}

#[test]
fn a_node_that_joins_takes_vms() {
    let text = "
name: join
nodes: [{name: n, count: 2, cores: 32, memory: 128Gi}]
vms: [{name: a, count: 40, cores: 2, memory: 2Gi, cpu: 0.6, on: [n]}]
events: [{at: 10m, add: {name: fresh, cores: 32, memory: 128Gi}}]
";
    let outcome = outcome(text);
    assert_eq!((outcome.start.nodes, outcome.end.nodes), (2, 3));
    assert!(outcome.end.cpu.min > 0.1, "{:?}", outcome.end.cpu);
    assert!(outcome.migrations.evicted > 0);
}

/// A VM that is too heavy for balance moves back and forth; a cool-down makes it stay longer.
#[test]
fn guards_reduce_moves_to_and_fro() {
    let text = |guards: &str| {
        format!(
            "
name: flapping
duration: 100m
nodes: [{{name: n, count: 2, cores: 16, memory: 64Gi}}]
vms: [{{name: heavy, count: 1, cores: 8, memory: 8Gi, cpu: 0.9, on: [n-1]}}, {{name: light, count: 2, cores: 2, memory: 2Gi, cpu: 0.1, on: [n-1, n-2]}}]
rebalancing: {{algorithm: cpu_focused, guards: {{{guards}}}}}
"
        )
    };
    let free = outcome(&text(""));
    let cooled = outcome(&text("coolDown: 15m"));
    let backed_off = outcome(&text("coolDown: 15m, backOff: true"));
    let sustained = outcome(&text("sustained: 5"));
    assert!(free.migrations.ping_pong > 20, "{:?}", free.migrations);
    assert!(cooled.migrations.total < free.migrations.total / 4, "{:?}", cooled.migrations);
    assert!(cooled.blocked.cooling_down > 0);
    assert!(backed_off.migrations.total < cooled.migrations.total, "{:?}", backed_off.migrations);
    assert!(sustained.migrations.total < free.migrations.total / 2 && sustained.blocked.held_back > 0);
    assert_eq!(outcome(&text("hysteresis: 1.0")).migrations.total, 0);
}

/// Without soft taints the scheduler sees equal requests and puts VMs back on hot nodes.
#[test]
fn soft_taints_keep_the_scheduler_off_hot_nodes() {
    let total = |soft: bool| {
        let text = format!(
            "
name: requests
duration: 3h
nodes: [{{name: n, count: 5, cores: 32, memory: 128Gi}}]
vms:
- {{name: hot, count: 16, cores: 4, memory: 4Gi, cpu: 0.9, on: [n-1, n-2]}}
- {{name: idle, count: 36, cores: 8, memory: 4Gi, cpu: 0.02, on: [n-3, n-4, n-5]}}
rebalancing: {{algorithm: cpu_focused, semantics: descheduler, placement: scheduler, softTaints: {soft}}}
"
        );
        outcome(&text).migrations.total
    };
    let (with, without) = (total(true), total(false));
    assert!(with * 2 < without, "{with} with soft taints, {without} without");
}

/// A fault found by fuzzing: buckets by slot were used after a node had failed and slots had changed.
#[test]
fn a_migration_that_waits_while_a_node_fails_finds_a_destination_among_those_left() {
    let text = "
name: waits
step: 10s
duration: 10m
nodes: [{name: n, count: 6, cores: 32, memory: 128Gi}]
vms:
- {name: hot, count: 8, cores: 4, memory: 8Gi, cpu: 0.9, on: [n-1]}
- {name: cool, count: 5, cores: 1, memory: 1Gi, cpu: 0.1, on: [n-2, n-3, n-4, n-5, n-6]}
events: [{at: 20s, fail: n-2}, {at: 30s, fail: n-3}, {at: 40s, fail: n-4}, {at: 50s, fail: n-5}]
rebalancing:
  algorithm: cpu_focused
  semantics: descheduler
  limits: {total: 5, perNode: 5}
  migration: {model: preCopy, bandwidth: 10Gbps, cluster: 1}
";
    let (model, settings) = build(&scenario(text));
    for seed in 0..20 {
        let (outcome, run) = simulate(&model, &settings, seed);
        assert!(outcome.migrations.evicted > 0);
        assert_eq!(run.nodes().len(), 2);
    }
}
