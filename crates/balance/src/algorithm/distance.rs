//! Algorithms that measure a distance in the space of the four signals: from zero, from the cluster's mean, or how far
//! beyond that mean.

use crate::expression::{CPU_PRESSURE, CPU_USAGE, Expr, MEMORY_PRESSURE, MEMORY_USAGE, Op};

/// The distance from an idle node; 2 is the farthest there is.
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
    beyond_the_mean()
}

/// The distance by which a node exceeds the mean: 0 for one that exceeds it nowhere.
pub(super) fn ideal_point() -> impl Op {
    beyond_the_mean().at_most_one()
}

/// The same, made `k` times as steep. Small excesses become visible and great ones meet at 1.
pub(super) fn amplified_ideal_point(k: f64) -> impl Op {
    beyond_the_mean().times(k).at_most_one()
}

fn beyond_the_mean() -> Expr<impl Op> {
    (CPU_USAGE.excess().squared()
        + CPU_PRESSURE.excess().squared()
        + MEMORY_USAGE.excess().squared()
        + MEMORY_PRESSURE.excess().squared())
    .root()
}
