//! The algorithm that compares nodes with the hottest and the coldest of all.

use crate::expression::{CPU_USAGE, Op};

/// While the highest and the lowest CPU use differ by more than `gap`: 1 for nodes within `width` of the highest, 0 for
/// nodes within `width` of the lowest, and a half for those between. Otherwise 0 for all.
pub(super) fn hottest_to_coldest(gap: f64, width: f64) -> impl Op {
    let distance = CPU_USAGE.above_lowest() + CPU_USAGE.below_highest();
    let level = (CPU_USAGE.below_highest().within(width) + CPU_USAGE.above_lowest().exceeds(width)).over(2.0);
    distance.exceeds(gap).and(level)
}
