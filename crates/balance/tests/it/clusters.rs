//! Test clusters: the golden cluster, and random clusters with ties and extreme values.

use balance::{PressureModel, Signals};
use proptest::prelude::*;

/// The input of the golden vectors.
pub(crate) fn golden() -> Signals {
    let half = [0.5, 0.035, 0.5, 0.035];
    [[0.92, 0.3, 0.4, 0.03], [0.75, 0.05, 0.8, 0.1], half, [0.2, 0.014, 0.3, 0.021], [0.1, 0.007, 0.7, 0.0], half]
        .into_iter()
        .collect()
}

/// A value of a signal: any value, or one of a few values so that ties occur.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 0.0..=1.0, 2 => (0_u8..=4).prop_map(|quarters| f64::from(quarters) / 4.0), 1 => Just(0.0)]
}

pub(crate) fn clusters(nodes: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Signals> {
    let nodes = nodes.into();
    let free = prop::collection::vec([value(), value(), value(), value()], nodes.clone());
    // All four signals follow from two demands, as in the pressure models.
    let modeled = prop::collection::vec((0.0..1.6, 0.0..1.2), nodes.clone()).prop_map(|demands| {
        demands.into_iter().map(|(cpu, memory)| PressureModel::Reference.signals(cpu, memory)).collect()
    });
    let equal = ([value(), value(), value(), value()], prop::collection::vec(Just(()), nodes))
        .prop_map(|(node, count)| vec![node; count.len()]);
    prop_oneof![4 => free, 2 => modeled, 1 => equal].prop_map(|nodes| nodes.into_iter().collect())
}

/// A cluster of random nodes, for clusters that are too big to shrink.
pub(crate) fn random_cluster(rng: &mut fastrand::Rng, nodes: usize) -> Signals {
    (0..nodes).map(|_| [rng.f64(), rng.f64(), rng.f64(), rng.f64()]).collect()
}
