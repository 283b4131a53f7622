//! Algorithms that measure a distance in the space of the four signals: from zero, from the cluster's mean, or above
//! that mean.

use crate::expression::{CPU_PRESSURE, CPU_USAGE, Expr, MEMORY_PRESSURE, MEMORY_USAGE, Op};

/// The distance from an idle node, divided by 2, the greatest possible distance.
pub(super) fn euclidean() -> impl Op {
    (CPU_USAGE.squared() + CPU_PRESSURE.squared() + MEMORY_USAGE.squared() + MEMORY_PRESSURE.squared()).root().over(2.0)
}

/// The distance from the mean of all nodes, in any direction.
pub(super) fn centroid() -> impl Op {
    (CPU_USAGE.deviation().squared()
        + CPU_PRESSURE.deviation().squared()
        + MEMORY_USAGE.deviation().squared()
        + MEMORY_PRESSURE.deviation().squared())
    .root()
}

/// The distance from the mean of all nodes, counting only what lies above it.
pub(super) fn directional_centroid() -> impl Op {
    excess_distance()
}

/// The distance by which a node exceeds the mean: 0 for a node that exceeds it in no signal.
pub(super) fn ideal_point() -> impl Op {
    excess_distance().at_most_one()
}

/// The same distance times `k`, at most 1, so that small excesses become visible.
pub(super) fn amplified_ideal_point(k: f64) -> impl Op {
    excess_distance().times(k).at_most_one()
}

fn excess_distance() -> Expr<impl Op> {
    (CPU_USAGE.excess().squared()
        + CPU_PRESSURE.excess().squared()
        + MEMORY_USAGE.excess().squared()
        + MEMORY_PRESSURE.excess().squared())
    .root()
}
