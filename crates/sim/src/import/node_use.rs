//! What a node uses, what its VMs use of that, and so what is left for the node itself.

use super::{Grid, Order, Recording, summary::Summary};
use crate::scenario::{Load, Measured, NodeGroup, OwnLoad, Packed, Samples};
use crate::units::Span;

/// VMs count as using more than their node only beyond this share of it: they are not measured at the same time.
const TOLERANCE: f32 = 0.05;

/// A node with what was measured of it.
#[derive(Debug)]
pub(super) struct NodeUse {
    pub(super) group: NodeGroup,
    /// In the order of `balance::Signal::ALL`.
    pub(super) signals: [Recording; 4],
    /// Cores and bytes that its VMs use, at each time.
    of_vms: [Vec<f32>; 2],
    /// Cores and bytes of the VMs whose use is not known.
    pub(super) unknown: [f64; 2],
}

impl NodeUse {
    pub(super) fn new(group: NodeGroup, count: usize) -> Self {
        let signals = [0; 4].map(|_| Recording::new(count));
        Self { group, signals, of_vms: [0; 2].map(|_| vec![0.0; count]), unknown: [0.0; 2] }
    }

    pub(super) fn add(&mut self, kind: usize, position: usize, value: f32) {
        self.of_vms[kind][position] += value;
    }

    fn size(&self, kind: usize) -> f32 {
        if kind == 0 { self.group.cores as f32 } else { self.group.memory.0 as f32 }
    }

    /// Whether CPU (0) or memory (1) use was measured.
    pub(super) fn is_measured(&self, kind: usize) -> bool {
        !self.signals[kind * 2].is_empty()
    }

    /// The share that the VMs whose use is not known have of their cores or memory, and what is left for the node.
    fn shares(&self, kind: usize, summary: &mut Summary, step: u64) -> (Vec<f64>, Vec<f64>) {
        let filled = self.signals[kind * 2].clone().fill();
        summary.recorded(&filled, step);
        let (size, unknown) = (self.size(kind), self.unknown[kind] as f32);
        let mut beyond = 0.0_f32;
        let mut share = |(used, of_vms): (&f32, &f32)| {
            let left = used * size - of_vms;
            beyond = beyond.max(-left / size);
            let left = left.max(0.0);
            let guessed = if unknown > 0.0 { (left / unknown).min(1.0) } else { 0.0 };
            let own = ((left - guessed * unknown) / size).clamp(0.0, 1.0);
            (f64::from(guessed), f64::from(own))
        };
        let shares = filled.values.iter().zip(&self.of_vms[kind]).map(&mut share).unzip();
        summary.beyond_node += usize::from(beyond > TOLERANCE);
        shares
    }

    /// The load of its VMs whose use is not known, and the node with its own load.
    pub(super) fn finish(
        mut self,
        grid: Grid,
        order: Order,
        every: Span,
        summary: &mut Summary,
    ) -> ([Option<Load>; 2], NodeGroup) {
        let mut guesses = [None, None];
        let mut own = [Load::Constant(0.0), Load::Constant(0.0)];
        for (kind, (guess, own)) in guesses.iter_mut().zip(&mut own).enumerate() {
            if self.is_measured(kind) {
                let (guessed, left) = self.shares(kind, summary, grid.step);
                *guess = Some(load(order.arrange(guessed), every, order));
                *own = load(order.arrange(left), every, order);
            } else {
                summary.nodes_without_use += usize::from(kind == 0);
            }
        }
        let [cpu, memory] = own;
        self.group.own_load = OwnLoad { cpu, memory };
        // In a replay the first step is long ago.
        if order == Order::Forecast {
            self.group.measured = self.measured();
        }
        (guesses, self.group)
    }

    fn measured(&self) -> Option<Measured> {
        let last = |signal: usize| self.signals[signal].last().map(|value| rounded(value.clamp(0.0, 1.0)));
        let [cpu, cpu_pressure, memory, memory_pressure] = [last(0)?, last(1)?, last(2)?, last(3)?];
        Some(Measured { cpu, cpu_pressure, memory, memory_pressure })
    }
}

/// As many digits as samples have, so that a file is short.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The load of these shares, in the order in which they are played.
pub(super) fn load(shares: Vec<f64>, every: Span, order: Order) -> Load {
    let values = Packed::of(shares);
    match values.constant() {
        Some(constant) => Load::Constant(constant),
        None => Load::Samples(Samples { every, repeat: order == Order::Forecast, values }),
    }
}
