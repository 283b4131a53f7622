//! What a run of the loop did, derived from the events that an independent observer recorded.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use api::VirtualMachine;
use kube::ResourceExt;
use lab::up::Lab;
use lab_parts::{vm::VmControllerSettings, webhook};
use testkit::replay::{self, History, Moment, Seen, node, status};

const NODES: usize = 5;
const CORES: f64 = 32.0;
const MEMORY: f64 = (128_u64 << 30) as f64;
/// The limit for migrations that have begun.
const AT_REST: Duration = Duration::from_secs(120);

/// The CPU and the memory that the VMs of a node use, as shares of its size.
pub(crate) type Demand = [f64; 2];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Move {
    pub(crate) vm: String,
    pub(crate) from: String,
    pub(crate) to: String,
    /// CPU use of the node that it left, minus the average of all nodes, before the move.
    pub(crate) excess: f64,
    /// The time from the eviction request until the VM ran on the other node.
    pub(crate) took: Duration,
    /// Whether the VM had an eviction request with a cause.
    pub(crate) was_evicted: bool,
}

pub(crate) struct Observer(replay::Observer);

impl Observer {
    /// Returns when it knows all VMs and pods.
    pub(crate) async fn start(lab: &Lab) -> Observer {
        Observer(replay::Observer::start(lab.client()).await)
    }

    /// The demand of each node, in the order of their numbers.
    pub(crate) fn demands(&self) -> Vec<Demand> {
        demands(&self.0.so_far().last()).into_values().collect()
    }

    /// The standard deviation of CPU use over the nodes.
    pub(crate) fn spread(&self) -> f64 {
        spread(&self.demands())
    }

    /// The node of each VM.
    pub(crate) fn homes(&self) -> BTreeMap<String, String> {
        self.0.so_far().last().vms.into_iter().map(|(name, vm)| (name, node(&vm))).collect()
    }

    /// All moves in the order of time.
    pub(crate) fn moves(&self) -> Vec<Move> {
        moves(&self.0.so_far())
    }

    /// Waits until no VM migrates and every VM has one pod.
    pub(crate) async fn at_rest(&self) {
        self.0.until(AT_REST, "every migration is over", |now| now.rests(now.vms.len())).await;
    }

    /// Checks the invariants of the VM controller, and that every move had an eviction request.
    pub(crate) async fn check_history(&self) {
        let history = self.0.history().await;
        history.check(&VmControllerSettings::default());
        history.check_counted();
        for moved in moves(&history) {
            assert!(moved.was_evicted, "nobody asked for it: {moved:?}");
        }
    }
}

pub(crate) fn mean_cpu(demands: &[Demand]) -> f64 {
    demands.iter().map(|[cpu, _]| cpu).sum::<f64>() / demands.len() as f64
}

fn spread(demands: &[Demand]) -> f64 {
    let (count, mean) = (demands.len() as f64, mean_cpu(demands));
    (demands.iter().map(|[cpu, _]| (cpu - mean).powi(2)).sum::<f64>() / count).sqrt()
}

fn demand(vm: &VirtualMachine) -> Demand {
    let (size, use_) = (&vm.spec.resources, &vm.spec.utilization);
    let cores = size.cpu.cores().unwrap() * use_.cpu.value().unwrap();
    let bytes = size.memory.bytes().unwrap() as f64 * use_.memory.value().unwrap();
    [cores / CORES, bytes / MEMORY]
}

fn demands(now: &Moment) -> BTreeMap<String, Demand> {
    let mut demands: BTreeMap<String, Demand> =
        (1..=NODES).map(|number| (format!("kwok-node-{number}"), Demand::default())).collect();
    for vm in now.vms.values().filter(|vm| !node(vm).is_empty()) {
        let [cpu, memory] = demands.entry(node(vm)).or_default();
        *cpu += demand(vm)[0];
        *memory += demand(vm)[1];
    }
    demands
}

fn moves(history: &History) -> Vec<Move> {
    let (mut moves, mut leaving) = (Vec::new(), BTreeMap::<String, Instant>::new());
    history.each(|step| {
        let Seen::Vm(vm) = step.seen else { return };
        let (name, to) = (vm.name_any(), node(vm));
        if let Some(before) = &step.vm_before
            && !node(before).is_empty()
            && node(before) != to
        {
            let (from, now) = (node(before), demands(step.now));
            let mean = mean_cpu(&now.values().copied().collect::<Vec<_>>());
            let since = leaving.get(&name);
            let is_asked_for = status(before).conditions.iter().any(|it| it.type_ == webhook::EVICTION_REQUESTED);
            moves.push(Move {
                excess: now[&from][0] + demand(before)[0] - mean,
                took: since.map_or(Duration::ZERO, |since| step.at - *since),
                was_evicted: since.is_some() && is_asked_for,
                vm: name.clone(),
                from,
                to,
            });
        }
        if status(vm).evacuation_node_name.is_some() {
            leaving.entry(name).or_insert(step.at);
        } else {
            leaving.remove(&name);
        }
    });
    moves
}
