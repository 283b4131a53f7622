//! Algorithms that look at each node by itself: weighted sums of its signals.

use super::{Focus, Weights};
use crate::expression::{CPU_PRESSURE, CPU_USAGE, MEMORY_PRESSURE, MEMORY_USAGE, Op};

/// The weighted sum of all four signals.
pub(super) fn weighted_average(weight: Weights) -> impl Op {
    (CPU_USAGE.times(weight.cpu_usage)
        + CPU_PRESSURE.times(weight.cpu_pressure)
        + MEMORY_USAGE.times(weight.memory_usage)
        + MEMORY_PRESSURE.times(weight.memory_pressure))
    .at_most_one()
}

/// The greatest of the four signals.
pub(super) fn max_metric() -> impl Op {
    CPU_USAGE.or_greater(CPU_PRESSURE).or_greater(MEMORY_USAGE).or_greater(MEMORY_PRESSURE)
}

/// The mean of both pressures, counted `multiplier` times, and of both uses, counted once.
pub(super) fn pressure_focused(multiplier: f64) -> impl Op {
    let pressure = (CPU_PRESSURE + MEMORY_PRESSURE).over(2.0);
    let usage = (CPU_USAGE + MEMORY_USAGE).over(2.0);
    (pressure.times(multiplier) + usage).over(multiplier + 1.0).at_most_one()
}

/// Use and pressure of the CPU alone.
pub(super) fn cpu_focused(weight: Focus) -> impl Op {
    (CPU_USAGE.times(weight.usage) + CPU_PRESSURE.times(weight.pressure)).at_most_one()
}

/// Use and pressure of memory alone.
pub(super) fn memory_focused(weight: Focus) -> impl Op {
    (MEMORY_USAGE.times(weight.usage) + MEMORY_PRESSURE.times(weight.pressure)).at_most_one()
}
