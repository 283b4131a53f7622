//! Properties of any run of any small cluster.

use proptest::prelude::*;
use sim::{
    Cause, ClusterModel, Move, Run, Scenario,
    scenario::{MigrationModel, Placement, Semantics},
};

use crate::support::{build, check, scenario};

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn vms_are_conserved_and_limits_hold_at_every_step(scenario in scenario(), seed in 0..1000_u64) {
        let (model, settings) = build(&scenario);
        let mut run = Run::new(&model, settings, seed);
        for _ in 0..model.steps() {
            let before = run.history().moves().len();
            run.step();
            check(&model, &run, &scenario);
            limits_hold(&scenario, &run.history().moves()[before..]);
        }
    }

    #[test]
    fn no_move_brings_a_node_over_its_memory(scenario in scenario(), seed in 0..1000_u64) {
        let (model, settings) = build(&scenario);
        let mut run = Run::new(&model, settings, seed);
        let memory: Vec<u64> = memory(&scenario, &model);
        let asked = |run: &Run<'_>| -> Vec<u64> { (0..memory.len() as u32).map(|node| run.memory_requested(node)).collect() };
        for _ in 0..model.steps() {
            let (before, moves) = (asked(&run), run.history().moves().len());
            let used_before: Vec<f64> = (0..memory.len() as u32).map(|node| run.memory_used(node)).collect();
            run.step();
            if scenario.rebalancing.placement == Placement::Scheduler {
                for (node, after) in asked(&run).iter().enumerate() {
                    prop_assert!(*after <= memory[node].max(before[node]), "requests grew beyond the node");
                }
            } else if scenario.rebalancing.migration.model == MigrationModel::Instant {
                for moved in &run.history().moves()[moves..] {
                    if moved.cause == Cause::Eviction {
                        let used = run.memory_used(moved.to);
                        let bound = memory[moved.to as usize] as f64;
                        prop_assert!(used <= bound.max(used_before[moved.to as usize]) * (1.0 + 1e-12), "use grew beyond the node");
                    }
                }
            }
        }
    }

    #[test]
    fn a_vm_goes_only_where_it_may(scenario in scenario(), seed in 0..1000_u64) {
        let (model, settings) = build(&scenario);
        let mut run = Run::new(&model, settings, seed);
        for _ in 0..model.steps() {
            let before = run.history().moves().len();
            run.step();
            for moved in run.history().moves()[before..].iter().filter(|moved| moved.to != Move::NOWHERE) {
                let group = group_of_vm(&scenario, &model, moved.vm);
                let node = group_of_node(&scenario, &model, moved.to);
                let labels = group.affinity.nodes.iter().all(|(key, value)| node.labels.get(key) == Some(value));
                prop_assert!(labels, "labels");
                prop_assert!(node.taints.is_empty() || !group.tolerations.is_empty(), "taints");
                prop_assert!(group.migratable || moved.cause == Cause::Restart, "migratable");
                if let Some(word) = &group.affinity.apart {
                    let together = run.vms(moved.to).iter().filter(|vm| group_of_vm(&scenario, &model, **vm).affinity.apart.as_ref() == Some(word)).count();
                    prop_assert!(together <= 1 || !group.on.is_empty(), "apart");
                }
            }
        }
    }

    #[test]
    fn replaying_the_moves_gives_the_same_signals_at_every_step(scenario in scenario(), seed in 0..1000_u64) {
        let (model, settings) = build(&scenario);
        let mut live = Run::new(&model, settings, seed);
        let mut seen = Vec::new();
        for _ in 0..model.steps() {
            live.step_and_inspect(|run| seen.push((run.signals().clone(), run.buckets().of().to_vec())));
        }
        live.observe();
        let mut again = Run::replay(&model, settings, seed, live.history());
        for (step, (signals, buckets)) in seen.iter().enumerate() {
            again.step_and_inspect(|run| {
                assert_eq!(run.signals(), signals, "step {step}");
                assert_eq!(run.buckets().of(), buckets, "step {step}");
            });
        }
        again.observe();
        prop_assert_eq!(again.signals(), live.signals());
    }
}

fn memory(scenario: &Scenario, model: &ClusterModel) -> Vec<u64> {
    (0..model.node_count() as u32).map(|node| group_of_node(scenario, model, node).memory.0).collect()
}

fn group_of_vm<'a>(scenario: &'a Scenario, model: &ClusterModel, vm: u32) -> &'a sim::scenario::VmGroup {
    let name = model.vm_name(vm);
    let group = name.split('-').next().unwrap();
    scenario.vms.iter().find(|known| known.name == group).unwrap()
}

fn group_of_node<'a>(scenario: &'a Scenario, model: &ClusterModel, node: u32) -> &'a sim::scenario::NodeGroup {
    let group = model.node_name(node).split('-').next().unwrap();
    scenario.nodes.iter().find(|known| known.name == group).unwrap()
}

/// Checks the limits of one step. With instant migrations its moves are its decisions.
fn limits_hold(scenario: &Scenario, moves: &[Move]) {
    let rules = &scenario.rebalancing;
    if rules.migration.model != MigrationModel::Instant {
        return;
    }
    let evictions: Vec<&Move> = moves.iter().filter(|moved| moved.cause == Cause::Eviction).collect();
    assert!(evictions.len() <= rules.limits.total as usize, "total, {:?}", rules.semantics);
    for source in evictions.iter().map(|moved| moved.from) {
        let of_one = evictions.iter().filter(|moved| moved.from == source).count();
        assert!(of_one <= rules.limits.per_node as usize, "per node");
    }
}

/// The reference never ends here, because the only under-utilized node has no room for any VM.
/// Holds L4 (endless simulation).
#[test]
fn a_cluster_in_which_nothing_fits_ends_and_says_that_nothing_had_room() {
    for (semantics, placement) in [
        (Semantics::Reference, Placement::Random),
        (Semantics::Reference, Placement::Scheduler),
        (Semantics::Descheduler, Placement::Random),
        (Semantics::Descheduler, Placement::Scheduler),
    ] {
        let text = "
name: stuck
nodes: [{name: n, count: 2, cores: 32, memory: 128Gi}]
vms:
- {name: hot, count: 12, cores: 4, memory: 8Gi, cpu: 0.6, memoryUse: 1.0, on: [n-1]}
- {name: fat, cores: 1, memory: 127Gi, cpu: 0.01, memoryUse: 1.0, migratable: false, on: [n-2]}
rebalancing: {algorithm: cpu_focused}
";
        let mut scenario = sim::scenario::parse(text).unwrap().remove(0);
        scenario.rebalancing.semantics = semantics;
        scenario.rebalancing.placement = placement;
        let (model, settings) = build(&scenario);
        let (outcome, _) = sim::simulate(&model, &settings, 1);
        assert_eq!(outcome.migrations.total, 0, "{semantics:?} {placement:?}");
        assert!(outcome.blocked.no_room > 0, "{semantics:?} {placement:?}: {:?}", outcome.blocked);
    }
}
