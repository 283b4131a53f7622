//! A figure of a forecast: what is expected, and the interval that holds nine of ten runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{LEVEL, outcome::Outcome};

/// The share of runs that an interval leaves out at each end.
const TAIL: f64 = (1.0 - LEVEL) / 2.0;

/// The median over runs, and the interval from the 5th to the 95th percentile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    pub expected: f64,
    pub low: f64,
    pub high: f64,
}

impl Figure {
    /// None without values.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)? as f64;
        let at = |share: f64| values[libm::round(last * share) as usize];
        Some(Self { expected: at(0.5), low: at(TAIL), high: at(1.0 - TAIL) })
    }

    /// Whether the interval over so many runs leaves none of them out.
    pub(super) fn holds_all(runs: usize) -> bool {
        libm::round(runs.saturating_sub(1) as f64 * TAIL) == 0.0
    }

    pub(super) fn over(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> Self {
        let none = Self { expected: 0.0, low: 0.0, high: 0.0 };
        Self::of(outcomes.iter().map(of).collect()).unwrap_or(none)
    }

    /// Whether the interval holds a value that was measured to within `resolution`.
    pub fn holds(&self, value: f64, resolution: f64) -> bool {
        self.low - resolution <= value && value <= self.high + resolution
    }

    /// Whether all of this interval is below the other one, by at least `least` from median to median.
    pub(super) fn is_below(&self, other: &Self, least: f64) -> bool {
        self.high < other.low && other.expected - self.expected >= least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_leaves_out_a_twentieth_of_the_runs_at_each_end() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(Figure::of(values), Some(Figure { expected: 50.0, low: 5.0, high: 95.0 }));
        assert_eq!(Figure::of(vec![7.0]), Some(Figure { expected: 7.0, low: 7.0, high: 7.0 }));
        assert_eq!(Figure::of(Vec::new()), None);
        assert!(Figure::holds_all(10) && !Figure::holds_all(12));
    }

    #[test]
    fn intervals_that_touch_are_not_apart_and_a_small_difference_does_not_count() {
        let figure = |low: f64, high: f64| Figure { expected: (low + high) / 2.0, low, high };
        assert!(figure(1.0, 2.0).is_below(&figure(3.0, 4.0), 1.0));
        assert!(!figure(1.0, 3.0).is_below(&figure(3.0, 4.0), 1.0));
        assert!(!figure(1.0, 1.0).is_below(&figure(1.1, 1.1), 1.0));
        assert!(figure(1.0, 2.0).holds(2.05, 0.1) && !figure(1.0, 2.0).holds(2.2, 0.1));
    }
}
