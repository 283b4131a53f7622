//! The load of VMs at a step: the shapes of their loads, noise, and tasks.

use super::{Run, state::ClusterState};
use crate::{
    model::{ClusterModel, TaskTarget, VmLoad},
    rng::Rng,
    scenario::Condition,
};

impl Run<'_> {
    /// The cores and the bytes of memory that a VM uses.
    pub fn usage(&self, vm: u32) -> [f64; 2] {
        self.state.usage(vm)
    }

    pub(super) fn set_shape_values(&mut self) {
        let (time, clock) = (self.step * self.model.step, self.model.clock(self.step));
        for (value, shape) in self.shape_values.iter_mut().zip(&self.model.shapes) {
            *value = shape.at(time, clock);
        }
    }

    /// Sets what the nodes use themselves at this step, where that changes over time.
    pub(super) fn set_own_loads(&mut self) {
        for node in &self.model.varying_nodes {
            let stated = &self.model.stated[*node as usize];
            let own = [0, 1].map(|kind| stated.own[kind] * self.shape_values[stated.shape[kind] as usize]);
            self.state.set_own(*node, own);
        }
    }

    /// Sets the cores and the memory that a VM uses at this step.
    pub(super) fn set_load(&mut self, of: &VmLoad) {
        let tasks = if self.model.tasks.is_empty() { [0.0; 2] } else { self.tasks.load(of.vm) };
        let noise = of.noise_at(self.seed, self.step);
        let [cpu, memory] = of.shares(&self.shape_values, noise, tasks);
        let usage = [cpu * of.size[0], memory * of.size[1]];
        self.state.set_usage(of.vm, usage);
    }

    pub(super) fn run_tasks(&mut self) {
        let mut changed = std::mem::take(&mut self.changed);
        let (model, state) = (self.model, &self.state);
        let mut nodes: Vec<u32> = Vec::new();
        let mut nodes_of = usize::MAX;
        let holds = |condition: &Condition| {
            let signals = state.signals();
            condition.holds(&signals.cpu_usage, &signals.memory_usage)
        };
        self.tasks.step(model, self.seed, self.step, &mut changed, holds, |number, rng| {
            let target = model.tasks[number].target;
            if nodes_of != number {
                nodes_of = number;
                nodes = targets(state, target, rng);
            }
            pick(model, state, target, &nodes, rng)
        });
        changed.sort_unstable();
        changed.dedup();
        for vm in changed.drain(..) {
            self.set_load(&self.model.load_of(vm));
        }
        self.changed = changed;
    }
}

/// The nodes whose VMs get tasks. It is empty when the target does not depend on nodes.
fn targets(state: &ClusterState<'_>, target: TaskTarget, rng: &mut Rng) -> Vec<u32> {
    let slots = state.slots();
    match target {
        TaskTarget::Any | TaskTarget::Group(_) => Vec::new(),
        TaskTarget::Random(count) => {
            (0..(count as usize).min(slots.len())).map(|_| slots[rng.below(slots.len())]).collect()
        }
        TaskTarget::Hottest(count) | TaskTarget::Coldest(count) => {
            let use_of = &state.signals().cpu_usage;
            let mut order: Vec<usize> = (0..slots.len()).collect();
            let is_hottest = matches!(target, TaskTarget::Hottest(_));
            order.sort_by(|a, b| match is_hottest {
                true => use_of[*b].total_cmp(&use_of[*a]),
                false => use_of[*a].total_cmp(&use_of[*b]),
            });
            order.into_iter().take(count as usize).map(|slot| slots[slot]).collect()
        }
    }
}

fn pick(
    model: &ClusterModel,
    state: &ClusterState<'_>,
    target: TaskTarget,
    nodes: &[u32],
    rng: &mut Rng,
) -> Option<u32> {
    match target {
        TaskTarget::Any => (!model.vms.is_empty()).then(|| rng.below(model.vms.len()) as u32),
        TaskTarget::Group(group) => {
            let group = &model.groups[group as usize];
            Some(group.first + rng.below(group.count as usize) as u32)
        }
        TaskTarget::Hottest(_) | TaskTarget::Coldest(_) | TaskTarget::Random(_) => {
            let vms = state.vms(*nodes.get(rng.below(nodes.len()))?);
            vms.get(rng.below(vms.len())).copied()
        }
    }
}
