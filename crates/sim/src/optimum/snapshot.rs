//! The problem that a scenario poses: its first placement, and its load at the end.

use super::problem::{Problem, ProblemNode, ProblemVm};
use crate::{
    engine::Run,
    history::Cause,
    model::{ClusterModel, NodeEvent},
    scenario::{Limits, Placement},
    settings::RunSettings,
};

/// The problem of a scenario. Its load is that of the end, without rebalancing.
pub fn problem(model: &ClusterModel, settings: &RunSettings, seed: u64) -> Problem {
    let idle = RunSettings { limits: Limits { total: 0, per_node: 0 }, measure: false, ..*settings };
    let mut run = Run::new(model, idle, seed);
    run.finish();
    let mut started_again = vec![false; model.vm_count()];
    for moved in run.history().moves().iter().filter(|moved| moved.cause == Cause::Restart) {
        started_again[moved.vm as usize] = true;
    }
    let scheduled = settings.placement == Placement::Scheduler;
    let nodes = (0..).zip(&model.nodes).map(|(number, node)| {
        let [cores, memory] = own(&run, number);
        ProblemNode {
            cores: node.cores,
            own: cores,
            open: run.nodes().contains(&number) && run.is_open(number),
            room: [
                if scheduled { node.memory - node.reserved[1] as f64 } else { node.memory - memory },
                if scheduled { node.cores * 1000.0 - node.reserved[0] as f64 } else { f64::INFINITY },
                f64::from(node.max_vms),
            ],
        }
    });
    let described = |vm: u32| {
        let (group, usage, request) = (model.group(vm), run.usage(vm), run.request(vm));
        let home = model.vms[vm as usize].node.filter(|_| !started_again[vm as usize]);
        ProblemVm {
            cores: usage[0],
            node: home.map(|node| node as usize),
            movable: group.migratable,
            class: group.class as usize,
            apart: group.anti_affinity,
            takes: [if scheduled { request.memory as f64 } else { usage[1] }, request.cpu as f64, 1.0],
        }
    };
    let numbers = 0..model.node_count() as u32;
    Problem {
        nodes: nodes.collect(),
        vms: (0..model.vm_count() as u32).map(described).collect(),
        allowed: model.classes.iter().map(|class| numbers.clone().map(|node| class.allows(node)).collect()).collect(),
        room_varies: !scheduled && !model.is_steady(),
    }
}

/// The cores and bytes that a node uses besides its VMs.
fn own(run: &Run<'_>, node: u32) -> [f64; 2] {
    let of_vms = |kind: usize| run.vms(node).iter().map(|vm| run.usage(*vm)[kind]).sum::<f64>();
    let all = run.used(node);
    // Sums of another order differ by rounding errors.
    [0, 1].map(|kind| if all[kind] * (1.0 - 1e-12) > of_vms(kind) { all[kind] - of_vms(kind) } else { 0.0 })
}

/// Why the bounds of a scenario are estimates and not proofs, if they are.
pub fn doubt(model: &ClusterModel) -> Option<&'static str> {
    if model.depends_on_nodes() {
        return Some("the load depends on where VMs run");
    }
    if model.stated.iter().any(|stated| stated.starts_empty && stated.signals.is_some()) {
        return Some("nodes without VMs keep the load that the file states");
    }
    let fails = |(_, event): &(u64, NodeEvent)| matches!(event, NodeEvent::Fail(_));
    model.events.iter().any(fails).then_some("VMs of a node that fails start again elsewhere without a migration")
}

/// Whether the problem is the same with every seed.
pub fn is_same_for_all_seeds(model: &ClusterModel) -> bool {
    model.is_steady() && model.events.is_empty()
}
