//! What keeps VMs from moving to and fro: cool-downs of VMs, and nodes that must be over-utilized for a while.

use balance::{Bucket, Buckets, Scores};

use super::state::ClusterState;
use crate::{model::ClusterModel, scenario::Guards};

/// A cool-down that doubles stops growing here.
const MOST_BACK_OFF: u64 = 24;

#[derive(Debug)]
pub(super) struct Guard {
    guards: Guards,
    step_seconds: u64,
    /// By VM: how often it was migrated to balance load, and the step of its last arrival.
    moves: Vec<u16>,
    arrived: Vec<u32>,
    /// By VM: the node it was on before.
    previous: Vec<u32>,
    /// By node: for how many looks in a row it has been over-utilized.
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

    /// Notes a migration; whether it brought the VM back to where it had just come from.
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

    /// Whether nodes may be held back at all.
    pub(super) fn holds_nodes(&self) -> bool {
        self.guards.sustained > 1 || self.guards.hysteresis > 0.0
    }

    /// Takes from the over-utilized nodes those that must wait, and says how many.
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
