//! Small random scenarios, and the invariants of any run.

use proptest::prelude::*;
use sim::{
    ClusterModel, Run, RunSettings, Scenario,
    scenario::{
        Affinity, Condition, Guards, Limits, Load, Measured, MigrationModel, MigrationSettings, NodeEventSpec,
        NodeGroup, OwnLoad, Placement, Ramp, Semantics, Taint, Target, TaskGroup, VmGroup,
    },
    units::{Bytes, Rate, Span},
};

pub(crate) fn build(scenario: &Scenario) -> (ClusterModel, RunSettings) {
    (ClusterModel::new(scenario).unwrap(), RunSettings::new(scenario).unwrap())
}

fn nodes() -> impl Strategy<Value = Vec<NodeGroup>> {
    let node = (1..4_u32, 4.0..64.0_f64, 8..256_u64, 1..40_u32, any::<bool>(), 0..8_u8).prop_map(
        |(count, cores, memory, max_vms, labeled, state)| NodeGroup {
            count: Some(count),
            cores,
            memory: Bytes(memory << 30),
            max_vms,
            labels: labeled.then(|| ("zone".to_owned(), "a".to_owned())).into_iter().collect(),
            taints: if state == 1 { vec![Taint { key: "odd".to_owned(), effect: Default::default() }] } else { vec![] },
            cordoned: state == 2,
            own_load: if state == 3 { OwnLoad::constant(0.3, 0.1) } else { OwnLoad::default() },
            measured: (state > 5).then_some(Measured {
                cpu: 0.9,
                cpu_pressure: 0.4,
                memory: 0.3,
                memory_pressure: 0.1,
            }),
            ..NodeGroup::reference("")
        },
    );
    prop::collection::vec(node, 1..4).prop_map(|mut groups| {
        groups.iter_mut().enumerate().for_each(|(at, group)| group.name = format!("g{at}"));
        groups
    })
}

fn load() -> impl Strategy<Value = Load> {
    prop_oneof![
        (0.0..1.0_f64).prop_map(Load::Constant),
        (0.0..0.5_f64, 0.5..1.0_f64).prop_map(|(low, high)| Load::Between([low, high])),
        (0.0..1.0_f64, 0.0..1.0_f64).prop_map(|(from, to)| Load::Ramp(Ramp {
            from,
            to,
            start: Span(60),
            end: Span(900)
        })),
    ]
}

fn vms() -> impl Strategy<Value = Vec<VmGroup>> {
    let shape = (0..12_u32, 0.5..16.0_f64, 1..24_u64, load(), 0.0..1.0_f64);
    let nature = (0.0..0.5_f64, 0..9000_u64, -2..3_i32, 0..8_u8, 0..6_u8);
    let vm =
        (shape, nature).prop_map(|((count, cores, memory, cpu, memory_use), (noise, dirty, priority, kind, on))| {
            VmGroup {
                count: Some(count + 1),
                cores,
                memory: Bytes(memory << 30),
                cpu,
                memory_use: Load::Constant(memory_use),
                noise: if kind == 5 { noise } else { 0.0 },
                dirty_rate: Rate(dirty * 1_000_000),
                priority,
                migratable: kind != 0,
                affinity: Affinity {
                    nodes: if kind == 1 { [("zone".to_owned(), "a".to_owned())].into() } else { Default::default() },
                    apart: (kind == 2).then(|| "lonely".to_owned()),
                },
                tolerations: if kind == 3 { vec!["*".to_owned()] } else { vec![] },
                on: if on < 3 { vec!["g0".to_owned()] } else { vec![] },
                ..VmGroup::new("")
            }
        });
    prop::collection::vec(vm, 0..6).prop_map(|mut groups| {
        groups.iter_mut().enumerate().for_each(|(at, group)| group.name = format!("v{at}"));
        groups
    })
}

fn events() -> impl Strategy<Value = Vec<NodeEventSpec>> {
    let event = (0..1500_u64, 0..6_u8).prop_map(|(at, kind)| {
        let node = Some("g0-1".to_owned());
        let event = NodeEventSpec { at: Span(at), ..NodeEventSpec::default() };
        match kind {
            0 => NodeEventSpec { cordon: node, ..event },
            1 => NodeEventSpec { uncordon: node, ..event },
            2 => NodeEventSpec { drain: node, ..event },
            3 => NodeEventSpec { fail: node, ..event },
            _ => NodeEventSpec { recover: node, ..event },
        }
    });
    prop::collection::vec(event, 0..5)
}

fn tasks() -> impl Strategy<Value = Vec<TaskGroup>> {
    let target = prop_oneof![
        Just(Target::Any),
        (0..3_u32).prop_map(Target::HottestNodes),
        (0..3_u32).prop_map(Target::ColdestNodes),
        (0..3_u32).prop_map(Target::RandomNodes)
    ];
    let when = prop::option::of(
        (0.0..1.0_f64).prop_map(|bound| Condition { node_cpu_above: Some(bound), ..Condition::default() }),
    );
    let task = (target, 1..5_u64, 0.0..1.0_f64, when).prop_map(|(target, every, cpu, when)| TaskGroup {
        name: "task".to_owned(),
        every: Span(every * 60),
        count: sim::scenario::Amount::Between([0.0, 4.0]),
        target,
        cpu: sim::scenario::Amount::Fixed(cpu),
        memory: sim::scenario::Amount::Fixed(0.1),
        seconds: sim::scenario::Amount::Between([30.0, 400.0]),
        window: None,
        when,
    });
    prop::collection::vec(task, 0..2)
}

/// A small scenario with any nodes, VMs, events, tasks and rules.
pub(crate) fn scenario() -> impl Strategy<Value = Scenario> {
    let rules = (0..20_usize, 0..6_usize, any::<[bool; 5]>(), 0..8_u32, 0..4_u32);
    let guards = (0..4_u64, any::<bool>(), 0..4_u32, 0.0..0.2_f64);
    (nodes(), vms(), events(), tasks(), rules, guards).prop_map(
        |(
            nodes,
            vms,
            events,
            tasks,
            (algorithm, mode, flags, total, per_node),
            (cool, back_off, sustained, margin),
        )| {
            let mut scenario = Scenario { events, tasks, duration: Span(1500), ..Scenario::new("random", nodes, vms) };
            let rules = &mut scenario.rebalancing;
            rules.algorithm = balance::Algorithm::all()[algorithm].slug();
            rules.mode = balance::Mode::ALL[mode].slug().to_owned();
            let [descheduler, scheduler, pre_copy, fails, guarded] = flags;
            rules.semantics = if descheduler { Semantics::Descheduler } else { Semantics::Reference };
            rules.placement = if scheduler { Placement::Scheduler } else { Placement::Random };
            rules.limits = Limits { total, per_node };
            rules.migration = MigrationSettings {
                model: if pre_copy { MigrationModel::PreCopy } else { MigrationModel::Instant },
                bandwidth: Rate(4_000_000_000),
                per_node: 1 + per_node,
                cluster: 1 + total,
                failure_rate: if fails { 0.3 } else { 0.0 },
                ..MigrationSettings::default()
            };
            if guarded {
                rules.guards = Guards {
                    cool_down: Span(cool * 120),
                    back_off,
                    sustained,
                    hysteresis: margin,
                    migration_aware: None,
                };
            }
            scenario
        },
    )
}

/// Checks the invariants of a run after a step.
pub(crate) fn check(model: &ClusterModel, run: &Run<'_>, scenario: &Scenario) {
    let mut seen = vec![0_u32; model.vm_count()];
    for node in 0..model.node_count() as u32 {
        assert!(run.vms(node).is_sorted(), "a node's VMs are in order");
        run.vms(node).iter().for_each(|vm| seen[*vm as usize] += 1);
    }
    run.pending().iter().for_each(|vm| seen[*vm as usize] += 1);
    assert!(seen.iter().all(|count| *count == 1), "every VM is in one place: {seen:?}");
    run.signals().check().unwrap();
    assert!(run.scores().values().iter().all(|score| (0.0..=1.0).contains(score)));
    let limits = scenario.rebalancing.migration;
    assert!(run.migrating().count() <= limits.cluster as usize);
    for node in 0..model.node_count() as u32 {
        let leaving = run.migrating().filter(|(_, from, _)| *from == node).count();
        assert!(leaving <= limits.per_node as usize, "{leaving} migrations leave a node");
    }
    for (vm, from, to) in run.migrating() {
        assert!(from != to && run.vms(from).contains(&vm), "a VM in migration is at its source");
    }
}
