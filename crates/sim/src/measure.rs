//! Measures of balance. They use the load of nodes, never a score. Spread is the population standard deviation over the nodes that
//! take VMs. Balanced means that the highest and the lowest CPU use differ by at most a tenth, or by the share of the heaviest VM
//! where that is more, because no move could help.

use balance::{Bucket, Buckets};
use serde::Serialize;

use crate::engine::state::ClusterState;

/// From this pressure on, the VMs of a node count as under pressure. Both models have it at 90 % use.
pub const UNDER_PRESSURE: f64 = 0.2;
/// Nodes whose use differs by no more than this are balanced.
pub(crate) const SMALLEST_GAP: f64 = 0.10;

/// One signal over all nodes that take VMs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Spread {
    pub mean: f64,
    /// Population standard deviation.
    pub sigma: f64,
    pub min: f64,
    pub max: f64,
}

/// The measures of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sample {
    pub step: u64,
    pub cpu: Spread,
    pub cpu_pressure: Spread,
    pub memory: Spread,
    pub memory_pressure: Spread,
    pub nodes: u32,
    pub under: u32,
    pub over: u32,
    /// The share of a node that the heaviest VM uses.
    pub heaviest: f64,
    pub balanced: bool,
    /// VMs on nodes under pressure.
    pub vms_under_pressure: u32,
    /// VMs in migration, and VMs without a node.
    pub migrating: u32,
    pub pending: u32,
}

impl Sample {
    pub(crate) fn numbers(&self) -> impl Iterator<Item = f64> {
        let spreads = [self.cpu, self.cpu_pressure, self.memory, self.memory_pressure];
        let counts = [self.nodes, self.under, self.over, self.vms_under_pressure, self.migrating, self.pending];
        let values = spreads.into_iter().flat_map(|spread| [spread.mean, spread.sigma, spread.min, spread.max]);
        values.chain(counts.map(f64::from)).chain([self.heaviest, f64::from(u8::from(self.balanced))])
    }
}

pub(crate) fn sample(step: u64, state: &ClusterState<'_>, buckets: &Buckets) -> Sample {
    let signals = state.signals();
    let open: Option<Vec<bool>> =
        (state.cordons() > 0).then(|| state.slots().iter().map(|node| state.is_open(*node)).collect());
    let [cpu, cpu_pressure, memory, memory_pressure] = signals.columns().map(|column| spread(column, open.as_deref()));
    let heaviest = most(state.heaviest(), open.as_deref());
    let mut vms_under_pressure = 0;
    if cpu_pressure.max >= UNDER_PRESSURE || memory_pressure.max >= UNDER_PRESSURE || open.is_some() {
        for (slot, node) in state.slots().iter().enumerate() {
            if signals.cpu_pressure[slot] >= UNDER_PRESSURE || signals.memory_pressure[slot] >= UNDER_PRESSURE {
                vms_under_pressure += state.vms(*node).len() as u32;
            }
        }
    }
    let gap = cpu.max - cpu.min;
    Sample {
        step,
        cpu,
        cpu_pressure,
        memory,
        memory_pressure,
        nodes: state.slots().len() as u32,
        under: buckets.count(Bucket::Under) as u32,
        over: buckets.count(Bucket::Over) as u32,
        heaviest,
        balanced: is_balanced(gap, heaviest),
        vms_under_pressure,
        migrating: 0,
        pending: 0,
    }
}

/// Whether nodes are balanced whose highest and lowest CPU use differ by `gap`.
pub(crate) fn is_balanced(gap: f64, heaviest: f64) -> bool {
    gap <= if heaviest > SMALLEST_GAP { heaviest } else { SMALLEST_GAP }
}

/// The population standard deviation.
pub(crate) fn sigma(values: &[f64]) -> f64 {
    spread(values, None).sigma
}

/// Sums have eight lanes by position, so that they have the same bits everywhere.
fn spread(column: &[f64], open: Option<&[bool]>) -> Spread {
    let filtered: Vec<f64>;
    let values = match open {
        None => column,
        Some(open) => {
            filtered = column.iter().zip(open).filter(|(_, open)| **open).map(|(value, _)| *value).collect();
            &filtered
        }
    };
    if values.is_empty() {
        return Spread::default();
    }
    let count = values.len() as f64;
    let mean = lanes(values, |value| value) / count;
    let variance = lanes(values, |value| (value - mean) * (value - mean)) / count;
    let min = fold(values, values[0], |least, value| if value < least { value } else { least });
    let max = fold(values, values[0], |most, value| if value > most { value } else { most });
    Spread { mean, sigma: variance.sqrt(), min, max }
}

fn most(column: &[f64], open: Option<&[bool]>) -> f64 {
    let greater = |most: f64, value: f64| if value > most { value } else { most };
    match open {
        None => fold(column, 0.0, greater),
        Some(open) => {
            column.iter().zip(open).filter(|(_, open)| **open).fold(0.0, |most, (value, _)| greater(most, *value))
        }
    }
}

#[inline]
fn lanes(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let mut lane = [0.0; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for (lane, value) in lane.iter_mut().zip(eight) {
            *lane += of(*value);
        }
    }
    for (lane, value) in lane.iter_mut().zip(rest) {
        *lane += of(*value);
    }
    ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]))
}

#[inline]
fn fold(values: &[f64], start: f64, pick: impl Fn(f64, f64) -> f64) -> f64 {
    let mut lane = [start; 8];
    let (eights, rest) = values.as_chunks::<8>();
    for eight in eights {
        for (lane, value) in lane.iter_mut().zip(eight) {
            *lane = pick(*lane, *value);
        }
    }
    rest.iter().chain(&lane).fold(start, |chosen, value| pick(chosen, *value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_is_the_population_standard_deviation_over_open_nodes() {
        let column = [0.2, 0.4, 0.4, 0.4, 0.5, 0.5, 0.7, 0.9, 5.0];
        let open = [true, true, true, true, true, true, true, true, false];
        let spread = spread(&column, Some(&open));
        assert!((spread.sigma - 0.2).abs() < 1e-12 && (spread.mean - 0.5).abs() < 1e-12);
        assert_eq!((spread.min, spread.max), (0.2, 0.9));
        assert_eq!(super::spread(&[], None), Spread::default());
    }
}
