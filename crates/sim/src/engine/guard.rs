//! Guards against VMs that move back and forth: cool-downs, and nodes that must be over-utilized for a while.

use balance::{Bucket, Buckets, Scores};

use super::state::ClusterState;
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

    pub(super) fn is_cooling_down(&self, vm: u32, step: u64) -> bool {
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
        let upper = buckets.upper() + self.guards.hysteresis;
        for (slot, node) in state.slots().iter().enumerate() {
            let over = &mut self.over_for[*node as usize];
            let is_over = buckets.of()[slot] == Bucket::Over && (*over > 0 || scores.values()[slot] >= upper);
            *over = if is_over { over.saturating_add(1) } else { 0 };
        }
        let before = sources.len();
        let needed = self.guards.sustained.max(1);
        sources.retain(|slot| self.over_for[state.slots()[*slot] as usize] >= needed);
        (before - sources.len()) as u64
    }
}
