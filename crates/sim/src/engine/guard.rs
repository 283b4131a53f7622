//! Guards against VMs that move back and forth: cool-downs, and nodes that must be over-utilized for a while.

use balance::{Bucket, Buckets, Scores, TOLERANCE};

use super::{aware::Memory, state::ClusterState};
use crate::{model::ClusterModel, scenario::Guards};

/// The greatest factor of a cool-down that doubles.
const MOST_BACK_OFF: u64 = 24;

#[derive(Debug)]
pub(super) struct Guard {
    guards: Guards,
    step_seconds: u64,
    /// By VM: the number of its migrations, and the step of its last arrival.
    moves: Vec<u16>,
    arrived: Vec<u32>,
    /// By VM: its previous node.
    previous: Vec<u32>,
    /// By node: how many times in a row it was over-utilized.
    over_for: Vec<u32>,
    /// Whether VMs ever cool down.
    cools: bool,
    /// The memory of KubevirtMigrationAware, if it is on.
    aware: Option<Memory>,
}

impl Guard {
    pub(super) fn new(guards: Guards, model: &ClusterModel) -> Self {
        Self {
            guards,
            step_seconds: model.step,
            moves: vec![0; model.vms.len()],
            arrived: vec![0; model.vms.len()],
            previous: vec![super::NOWHERE; model.vms.len()],
            over_for: vec![0; model.nodes.len()],
            cools: guards.cool_down.0 > 0 || guards.migration_aware.is_some(),
            aware: guards.migration_aware.map(|rules| Memory::new(rules, model.vms.len())),
        }
    }

    /// Records a migration, and returns whether it brought the VM back to its previous node.
    pub(super) fn moved(&mut self, vm: u32, from: u32, to: u32, step: u64) -> bool {
        let vm = vm as usize;
        self.moves[vm] = self.moves[vm].saturating_add(1);
        self.arrived[vm] = step as u32;
        std::mem::replace(&mut self.previous[vm], from) == to
    }

    pub(super) fn moves(&self) -> &[u16] {
        &self.moves
    }

    /// Records that a migration has ended, well or not, which took this many seconds.
    pub(super) fn ended(&mut self, vm: u32, step: u64, took: f64) {
        if let Some(aware) = &mut self.aware {
            aware.ended(vm, step * self.step_seconds, took as u64);
        }
    }

    /// Records that a VM was lost with its node.
    pub(super) fn lost(&mut self, vm: u32) {
        if let Some(aware) = &mut self.aware {
            aware.forget(vm);
        }
    }

    /// Whether VMs that migrate are no candidates for evictions.
    pub(super) fn is_migration_aware(&self) -> bool {
        self.aware.is_some()
    }

    /// Whether a VM cools down, by the guards of the scenario or by the plugin.
    pub(super) fn is_cooling_down(&self, vm: u32, step: u64) -> bool {
        self.cools && (self.stays(vm, step) || self.is_deferred(vm, step))
    }

    /// Whether KubevirtMigrationAware defers an eviction of the VM.
    pub(super) fn is_deferred(&self, vm: u32, step: u64) -> bool {
        self.aware.as_ref().is_some_and(|aware| aware.is_cooling_down(vm, step * self.step_seconds))
    }

    /// Whether a VM stays where it arrived by the cool-down of the scenario.
    pub(super) fn stays(&self, vm: u32, step: u64) -> bool {
        let moves = self.moves[vm as usize];
        if self.guards.cool_down.0 == 0 || moves == 0 {
            return false;
        }
        let doubled = if self.guards.back_off { 1_u64 << (moves - 1).min(16) } else { 1 };
        let seconds = self.guards.cool_down.0.saturating_mul(doubled.min(MOST_BACK_OFF));
        (step - u64::from(self.arrived[vm as usize])) * self.step_seconds < seconds
    }

    /// Whether the settings ever hold nodes back.
    pub(super) fn holds_nodes(&self) -> bool {
        self.guards.sustained > 1 || self.guards.hysteresis > 0.0
    }

    /// Removes the nodes that must wait from the sources, and returns their number.
    pub(super) fn hold_back(
        &mut self,
        state: &ClusterState<'_>,
        buckets: &Buckets,
        scores: &Scores,
        sources: &mut Vec<usize>,
    ) -> u64 {
        let upper = buckets.upper() + self.guards.hysteresis - TOLERANCE;
        for (slot, node) in state.slots().iter().enumerate() {
            let over = &mut self.over_for[*node as usize];
            let is_over = buckets.of()[slot] == Bucket::Over && (*over > 0 || scores.values()[slot] > upper);
            *over = if is_over { over.saturating_add(1) } else { 0 };
        }
        let before = sources.len();
        let needed = self.guards.sustained.max(1);
        sources.retain(|slot| self.over_for[state.slots()[*slot] as usize] >= needed);
        (before - sources.len()) as u64
    }
}
