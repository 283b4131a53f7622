//! The choice of a destination: a random under-utilized node as in the reference, or the choice of a scheduler.

use balance::{Bucket, Buckets};

use super::{migrations::Migrations, state::ClusterState};
use crate::{
    model::{ClusterModel, Group},
    rng::Rng,
};

/// The number of random draws before all nodes are searched.
pub(super) const ATTEMPTS: usize = 64;

/// The score of a node as in kube-scheduler: 0 to 100 from each plugin, and taints count three times.
const HIGHEST: u64 = 100;
const WEIGHT_OF_TAINTS: u64 = 3;

#[derive(Debug, Default)]
pub(super) struct Placer {
    /// By node: the number of soft taints that follow from its bucket.
    soft: Vec<u8>,
    feasible: Vec<Feasible>,
}

#[derive(Debug, Clone, Copy)]
struct Feasible {
    node: u32,
    unwanted: u32,
    points: u64,
}

/// Whether labels, taints, the number of VMs and anti-affinity allow the node.
fn allowed(model: &ClusterModel, state: &ClusterState<'_>, migrations: &Migrations, group: &Group, node: u32) -> bool {
    let anti_affinity = |anti_affinity: u32| is_taken(model, state, migrations, anti_affinity, node);
    state.is_open(node)
        && model.classes[group.class as usize].allows(node)
        && state.vm_count(node) < model.nodes[node as usize].max_vms
        && !group.anti_affinity.is_some_and(anti_affinity)
}

/// Whether a VM with this anti-affinity number is on the node, or will arrive.
pub(super) fn is_taken(
    model: &ClusterModel,
    state: &ClusterState<'_>,
    migrations: &Migrations,
    anti_affinity: u32,
    node: u32,
) -> bool {
    state.vms(node).iter().any(|other| model.group(*other).anti_affinity == Some(anti_affinity))
        || migrations.has_arriving(model, node, anti_affinity)
}

/// Whether the memory in use leaves room for the memory that the VM uses, as the reference checks it.
pub(super) fn has_room(
    model: &ClusterModel,
    state: &ClusterState<'_>,
    migrations: &Migrations,
    vm: u32,
    node: u32,
) -> bool {
    let used = state.memory_used(node) + migrations.arriving_memory(state, node);
    used + state.usage(vm)[1] <= model.nodes[node as usize].memory
        && allowed(model, state, migrations, model.group(vm), node)
}

/// A uniformly random under-utilized node. Draws from all nodes until one is under-utilized.
pub(super) fn random_under_utilized(buckets: &Buckets, rng: &mut Rng) -> Option<usize> {
    let (all, under) = (buckets.of(), buckets.count(Bucket::Under));
    if under == 0 {
        return None;
    }
    for _ in 0..ATTEMPTS {
        let slot = rng.below(all.len());
        if all[slot] == Bucket::Under {
            return Some(slot);
        }
    }
    buckets.nodes(Bucket::Under).nth(rng.below(under))
}

impl Placer {
    /// Sets the soft taints by bucket: none on under-utilized nodes, one on appropriate nodes, two on over-utilized
    /// nodes. If no node is under-utilized, appropriate nodes get none.
    pub(super) fn taint(&mut self, state: &ClusterState<'_>, buckets: &Buckets, nodes: usize) {
        self.soft.clear();
        self.soft.resize(nodes, 0);
        let appropriate = u8::from(buckets.count(Bucket::Under) > 0);
        for (slot, node) in state.slots().iter().enumerate() {
            self.soft[*node as usize] = match buckets.of()[slot] {
                Bucket::Under => 0,
                Bucket::Appropriate => appropriate,
                Bucket::Over => 2,
            };
        }
    }

    /// The node that a scheduler would choose for the VM, other than `source`. Ties are broken at random.
    pub(super) fn schedule(
        &mut self,
        model: &ClusterModel,
        state: &ClusterState<'_>,
        migrations: &Migrations,
        vm: u32,
        source: u32,
        rng: &mut Rng,
    ) -> Option<u32> {
        let group = model.group(vm);
        let class = &model.classes[group.class as usize];
        let request = state.request(vm);
        self.feasible.clear();
        let mut most_unwanted = 0;
        for node in state.slots() {
            let spec = &model.nodes[*node as usize];
            let (memory, cpu) = (spec.memory as u64, (spec.cores * 1000.0) as u64);
            let requested = state.requested(*node);
            let (memory_after, cpu_after) = (requested.memory + request.memory, requested.cpu + request.cpu);
            if *node == source || memory_after > memory || cpu_after > cpu {
                continue;
            }
            if !allowed(model, state, migrations, group, *node) {
                continue;
            }
            let unwanted = class.unwanted(*node) + u32::from(self.soft.get(*node as usize).copied().unwrap_or(0));
            most_unwanted = most_unwanted.max(unwanted);
            let least_allocated = ((memory - memory_after) * HIGHEST / memory + (cpu - cpu_after) * HIGHEST / cpu) / 2;
            let (memory_share, cpu_share) = (memory_after as f64 / memory as f64, cpu_after as f64 / cpu as f64);
            let gap = if memory_share > cpu_share { memory_share - cpu_share } else { cpu_share - memory_share };
            let balanced = ((1.0 - gap / 2.0) * HIGHEST as f64) as u64;
            self.feasible.push(Feasible { node: *node, unwanted, points: least_allocated + balanced });
        }
        let mut best: Option<(u64, u32)> = None;
        let mut equals = 0;
        for feasible in &self.feasible {
            let most = u64::from(most_unwanted.max(1));
            let taints = HIGHEST - HIGHEST * u64::from(feasible.unwanted) / most;
            let points = feasible.points + WEIGHT_OF_TAINTS * taints;
            match best {
                Some((highest, _)) if points < highest => continue,
                Some((highest, _)) if points == highest => equals += 1,
                _ => equals = 1,
            }
            if equals == 1 || rng.below(equals) == 0 {
                best = Some((points, feasible.node));
            }
        }
        best.map(|(_, node)| node)
    }
}
