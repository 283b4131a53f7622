//! Algorithms that weigh how far each signal is from its mean over the nodes.

use super::Weights;
use crate::expression::{CPU_PRESSURE, CPU_USAGE, CRITICAL, Expr, MEMORY_PRESSURE, MEMORY_USAGE, Op};

/// The root of the weighted mean of the squared excesses.
pub(super) fn weighted_rms(weight: Weights) -> impl Op {
    mean_square(weight).root()
}

/// The weighted mean of the squared excesses.
pub(super) fn weighted_mean_square(weight: Weights) -> impl Op {
    mean_square(weight)
}

fn mean_square(weight: Weights) -> Expr<impl Op> {
    (CPU_USAGE.excess().squared().times(weight.cpu_usage)
        + CPU_PRESSURE.excess().squared().times(weight.cpu_pressure)
        + MEMORY_USAGE.excess().squared().times(weight.memory_usage)
        + MEMORY_PRESSURE.excess().squared().times(weight.memory_pressure))
    .over(weight.sum())
}

/// The weighted sum of the excesses.
pub(super) fn linear_weighted(weight: Weights) -> impl Op {
    excesses(weight).at_most_one()
}

/// The root of the weighted squared deviations, in any direction.
pub(super) fn variance(weight: Weights) -> impl Op {
    (CPU_USAGE.deviation().squared().times(weight.cpu_usage)
        + CPU_PRESSURE.deviation().squared().times(weight.cpu_pressure)
        + MEMORY_USAGE.deviation().squared().times(weight.memory_usage)
        + MEMORY_PRESSURE.deviation().squared().times(weight.memory_pressure))
    .root()
}

/// The weighted sum of the excesses. It is linear in spite of its name, as in the reference.
pub(super) fn directional_variance(weight: Weights) -> impl Op {
    excesses(weight)
}

fn excesses(weight: Weights) -> Expr<impl Op> {
    CPU_USAGE.excess().times(weight.cpu_usage)
        + CPU_PRESSURE.excess().times(weight.cpu_pressure)
        + MEMORY_USAGE.excess().times(weight.memory_usage)
        + MEMORY_PRESSURE.excess().times(weight.memory_pressure)
}

/// The excess in the one dimension in which the cluster as a whole is least even.
pub(super) fn critical_dimension() -> impl Op {
    CRITICAL
}
