//! Generated scenarios in seven families, for the search. The same seed and number give the same scenario.

use serde::Serialize;

use crate::{
    rng::{Purpose, Rng},
    scenario::{
        Amount, Daily, Load, MigrationModel, MigrationSettings, NodeGroup, Placement, Rebalancing, Scenario, Semantics,
        TaskGroup, VmGroup, Window,
    },
    units::{Bytes, ClockTime, Span},
};

/// What makes the clusters of a family unbalanced, or hard to balance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Family {
    /// Nodes of 16, 32 and 64 cores, each with another use.
    UnevenNodes,
    /// A third of the nodes is hot, and most memory of all nodes is requested.
    MemoryBound,
    /// Up to a third of the nodes is hot, and in the first half of the time VMs get bursts of load.
    Bursts,
    /// The load of a third of the nodes rises for twelve hours, and is near its peak for the rest.
    DailyCurves,
    /// Two to four VMs on a node.
    FewBigVms,
    OneHotNode,
    AllHotButOne,
}

impl Family {
    pub const ALL: [Family; 7] = [
        Family::UnevenNodes,
        Family::MemoryBound,
        Family::Bursts,
        Family::DailyCurves,
        Family::FewBigVms,
        Family::OneHotNode,
        Family::AllHotButOne,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Family::UnevenNodes => "uneven nodes",
            Family::MemoryBound => "memory-bound",
            Family::Bursts => "bursts",
            Family::DailyCurves => "daily curves",
            Family::FewBigVms => "few big VMs",
            Family::OneHotNode => "one hot node",
            Family::AllHotButOne => "all hot but one",
        }
    }

    /// The family of the scenario with this number: they take turns.
    pub fn of(number: u64) -> Self {
        Family::ALL[(number % Family::ALL.len() as u64) as usize]
    }
}

/// What was drawn for a cluster as a whole.
struct Drawn {
    /// By node: its cores, and the share of them that its VMs use.
    nodes: Vec<(f64, f64)>,
    /// The number of VMs on a node of 32 cores, where nodes differ in the load of their VMs and not in their number.
    vms: usize,
    /// Whether a node with a higher use has more VMs, instead of VMs with a higher load.
    more_vms: bool,
    /// How unlike VMs are: the load of each is multiplied by a factor from 1 − unlike to 1 + unlike.
    unlike: f64,
    /// The share of their memory that nodes have promised to VMs.
    memory: f64,
}

/// The scenario with a number. All run for six hours, or for fourteen with daily curves, under the rules of the real descheduler.
pub fn scenario(seed: u64, number: u64) -> Scenario {
    let family = Family::of(number);
    let mut rng = Rng::keyed(seed, Purpose::Search, number, 0);
    let drawn = draw(family, &mut rng);
    let nodes: Vec<NodeGroup> = (1..).zip(&drawn.nodes).map(|(at, (cores, _))| node(at, *cores)).collect();
    let mut vms = Vec::new();
    for (at, (cores, usage)) in drawn.nodes.iter().enumerate() {
        let rises = family == Family::DailyCurves && *usage > HOT;
        vms.extend(vms_of(&drawn, at, *cores, *usage, rises, &mut rng));
    }
    let mut scenario = Scenario {
        seed: number,
        description: format!("{}, generated with seed {seed}.", family.name()),
        duration: Span(6 * 3600),
        start: ClockTime(8 * 60),
        rebalancing: rules(),
        ..Scenario::new(&format!("search-{number}"), nodes, vms)
    };
    match family {
        Family::DailyCurves => {
            (scenario.step, scenario.duration, scenario.start) = (Span(120), Span(14 * 3600), ClockTime(2 * 60));
        }
        Family::Bursts => scenario.tasks = vec![bursts(&mut rng)],
        _ => {}
    }
    scenario
}

/// From this use on, the load of a node has a daily curve.
const HOT: f64 = 0.6;

fn draw(family: Family, rng: &mut Rng) -> Drawn {
    let count = match family {
        Family::FewBigVms => 3 + rng.below(6),
        _ => 4 + rng.below(13),
    };
    let hot = match family {
        Family::OneHotNode => 1,
        Family::AllHotButOne => count - 1,
        Family::Bursts => 1 + rng.below(count / 3),
        _ => (count / 3).max(1),
    };
    let base = rng.between(0.2, 0.45);
    let (low, high) = match family {
        Family::AllHotButOne => (rng.between(0.02, 0.25), rng.between(0.5, 0.8)),
        _ => (base, rng.between(0.7, 0.95)),
    };
    let node = |at: usize| match family {
        Family::UnevenNodes => ([16.0, 32.0, 64.0][rng.below(3)], rng.between(0.15, 0.85)),
        Family::FewBigVms => (32.0, rng.between(0.2, 0.95)),
        _ => (32.0, (if at < hot { high } else { low }) + rng.between(-0.03, 0.03)),
    };
    let nodes = (0..count).map(node).map(|(cores, usage)| (cores, if usage > 0.01 { usage } else { 0.01 })).collect();
    Drawn {
        nodes,
        vms: if family == Family::FewBigVms { 2 + rng.below(3) } else { 6 + rng.below(19) },
        more_vms: !matches!(family, Family::FewBigVms | Family::MemoryBound) && rng.below(2) == 0,
        unlike: rng.between(0.0, 0.5),
        memory: if family == Family::MemoryBound { rng.between(0.75, 0.9) } else { rng.between(0.3, 0.5) },
    }
}

fn node(number: usize, cores: f64) -> NodeGroup {
    let memory = Bytes((cores as u64 * 4) << 30);
    NodeGroup { cores, memory, ..NodeGroup::reference(&format!("node-{number}")) }
}

/// The VMs of a node, which use this share of its cores together.
fn vms_of(drawn: &Drawn, at: usize, cores: f64, usage: f64, rises: bool, rng: &mut Rng) -> Vec<VmGroup> {
    let size = cores / 32.0;
    let mean = drawn.nodes.iter().map(|(_, usage)| usage).sum::<f64>() / drawn.nodes.len() as f64;
    let by_use = if drawn.more_vms { usage / mean } else { 1.0 };
    let count = libm::round(drawn.vms as f64 * size * by_use) as usize;
    let shares: Vec<f64> = (0..count.max(1)).map(|_| rng.between(1.0 - drawn.unlike, 1.0 + drawn.unlike)).collect();
    let all: f64 = shares.iter().sum();
    let memory = 128.0 * drawn.memory / drawn.vms as f64;
    let vm = |(number, share): (usize, &f64)| {
        let used = usage * cores * share / all;
        let vcpus =
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].into_iter().find(|size| *size >= used * 1.1).unwrap_or(128.0);
        let load = rounded(used / vcpus);
        VmGroup {
            cores: vcpus,
            // In quarters of a GiB.
            memory: Bytes(((memory * 4.0 * rng.between(1.0 - drawn.unlike, 1.0)) as u64).max(1) << 28),
            cpu: match rises {
                true => {
                    Load::Daily(Daily { low: rounded(load / 4.0), high: load, peak: ClockTime(14 * 60), weekend: 1.0 })
                }
                false => Load::Constant(load),
            },
            on: vec![format!("node-{}", at + 1)],
            ..VmGroup::new(&format!("vm-{}-{number}", at + 1))
        }
    };
    shares.iter().enumerate().map(vm).collect()
}

/// Load that comes to some VMs for some minutes, in the first three of six hours.
fn bursts(rng: &mut Rng) -> TaskGroup {
    TaskGroup {
        name: "burst".to_owned(),
        every: Span(60 * (1 + rng.below(5) as u64)),
        count: Amount::Between([0.0, 3.0]),
        target: crate::scenario::Target::Any,
        cpu: Amount::Between([0.2, 0.6]),
        memory: Amount::Fixed(0.0),
        seconds: Amount::Between([60.0, 600.0]),
        window: Some(Window { days: Vec::new(), from: ClockTime(8 * 60), to: ClockTime(11 * 60) }),
        when: None,
    }
}

/// The rules of the real descheduler, with a scheduler that knows requests alone and migrations that take time.
fn rules() -> Rebalancing {
    Rebalancing {
        semantics: Semantics::Descheduler,
        placement: Placement::Scheduler,
        migration: MigrationSettings { model: MigrationModel::PreCopy, ..MigrationSettings::default() },
        ..Rebalancing::default()
    }
}

/// Few digits keep the file readable and exact.
fn rounded(value: f64) -> f64 {
    libm::round(value * 10_000.0) / 10_000.0
}
