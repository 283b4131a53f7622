//! Clusters to test with: the golden one, and random ones that like ties and corners.

use balance::{PressureModel, Signals};
use proptest::prelude::*;

/// The input of the golden vectors.
pub(crate) fn golden() -> Signals {
    let half = [0.5, 0.035, 0.5, 0.035];
    [[0.92, 0.3, 0.4, 0.03], [0.75, 0.05, 0.8, 0.1], half, [0.2, 0.014, 0.3, 0.021], [0.1, 0.007, 0.7, 0.0], half]
        .into_iter()
        .collect()
}

/// A value of a signal: anything, or one of few so that there are ties.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![3 => 0.0..=1.0, 2 => (0_u8..=4).prop_map(|quarters| f64::from(quarters) / 4.0), 1 => Just(0.0)]
}

pub(crate) fn clusters(nodes: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Signals> {
    let nodes = nodes.into();
    let free = prop::collection::vec([value(), value(), value(), value()], nodes.clone());
    // As the pressure models make them: all four signals follow from two demands.
    let modelled = prop::collection::vec((0.0..1.6, 0.0..1.2), nodes.clone()).prop_map(|demands| {
        demands.into_iter().map(|(cpu, memory)| PressureModel::Reference.signals(cpu, memory)).collect()
    });
    let equal = ([value(), value(), value(), value()], prop::collection::vec(Just(()), nodes))
        .prop_map(|(node, count)| vec![node; count.len()]);
    prop_oneof![4 => free, 2 => modelled, 1 => equal].prop_map(|nodes| nodes.into_iter().collect())
}

/// Numbers that are the same everywhere, for clusters too big to shrink.
#[derive(Debug)]
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(crate) fn cluster(&mut self, nodes: usize) -> Signals {
        (0..nodes).map(|_| [self.next(), self.next(), self.next(), self.next()]).collect()
    }
}
