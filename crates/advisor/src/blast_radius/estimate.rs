//! Ranges of time. A range without an end is one of which nobody knows the end.

use std::{cmp::Reverse, collections::BinaryHeap};

use schemars::JsonSchema;
use serde::Serialize;

/// A range of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub min_seconds: u64,
    /// Null if nothing tells when it ends.
    pub max_seconds: Option<u64>,
}

impl Estimate {
    pub(crate) const NONE: Estimate = Estimate { min_seconds: 0, max_seconds: Some(0) };
    pub(crate) const UNKNOWN: Estimate = Estimate { min_seconds: 0, max_seconds: None };

    /// One after the other.
    pub(super) fn then(self, next: Estimate) -> Self {
        let sum = |(one, other): (u64, u64)| one.saturating_add(other);
        Estimate {
            min_seconds: sum((self.min_seconds, next.min_seconds)),
            max_seconds: self.max_seconds.zip(next.max_seconds).map(sum),
        }
    }

    /// At the same time.
    pub(super) fn beside(self, other: Estimate) -> Self {
        Estimate {
            min_seconds: self.min_seconds.max(other.min_seconds),
            max_seconds: self.max_seconds.zip(other.max_seconds).map(|(one, other)| one.max(other)),
        }
    }

    /// Some of them at a time, in this order: whenever one has ended, the next one begins.
    pub(super) fn rolling(all: &[Estimate], at_a_time: usize) -> Self {
        let span = |times: Vec<u64>| {
            let mut free: BinaryHeap<Reverse<u64>> = std::iter::repeat_n(Reverse(0), at_a_time.max(1)).collect();
            for time in times {
                let Reverse(start) = free.pop().unwrap_or_default();
                free.push(Reverse(start.saturating_add(time)));
            }
            free.into_iter().map(|Reverse(end)| end).max().unwrap_or(0)
        };
        Estimate {
            min_seconds: span(all.iter().map(|one| one.min_seconds).collect()),
            max_seconds: all.iter().map(|one| one.max_seconds).collect::<Option<Vec<u64>>>().map(span),
        }
    }

    pub(super) fn endless(self) -> Self {
        Estimate { max_seconds: None, ..self }
    }

    /// `20m–1h30m`, `up to 5m`, `at least 2h`, `?`
    pub fn text(&self) -> String {
        match (self.min_seconds, self.max_seconds) {
            (0, None) => "?".into(),
            (min, None) => format!("at least {}", at_least(min)),
            (0, Some(max)) => format!("up to {}", at_most(max)),
            (min, Some(max)) if at_least(min) == at_most(max) => at_most(max),
            (min, Some(max)) => format!("{}–{}", at_least(min), at_most(max)),
        }
    }
}

/// `45s`, `12m`, `3h05m`. From a minute on full minutes, rounded up: seconds would pretend to be exact.
pub(super) fn at_most(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds}s") } else { of_minutes(seconds.div_ceil(60)) }
}

/// The same for the lower end of a range, which is rounded down.
pub(super) fn at_least(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds}s") } else { of_minutes(seconds / 60) }
}

fn of_minutes(minutes: u64) -> String {
    if minutes < 60 { format!("{minutes}m") } else { format!("{}h{:02}m", minutes / 60, minutes % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_as_far_as_they_are_known() {
        for (min_seconds, max_seconds, expected) in [
            (0, None, "?"),
            (120, None, "at least 2m"),
            (0, Some(90), "up to 2m"),
            (45, Some(45), "45s"),
            (61, None, "at least 1m"),
            (61, Some(110), "1m–2m"),
            (60, Some(60), "1m"),
            (7199, Some(7199), "1h59m–2h00m"),
            (1200, Some(5400), "20m–1h30m"),
            (3600, Some(7260), "1h00m–2h01m"),
        ] {
            assert_eq!(Estimate { min_seconds, max_seconds }.text(), expected);
        }
    }

    #[test]
    fn a_pool_takes_the_next_node_whenever_one_is_done() {
        let times = |all: &[u64]| -> Vec<Estimate> {
            all.iter().map(|max| Estimate { min_seconds: max / 2, max_seconds: Some(*max) }).collect()
        };
        for (case, all, at_a_time, expected) in [
            ("nothing to do", &[][..], 1, (0, 0)),
            ("one after the other", &[100, 20, 100], 1, (110, 220)),
            ("a short one makes room for the next", &[100, 20, 100, 20], 2, (60, 120)),
            ("all at the same time", &[100, 20], 5, (50, 100)),
        ] {
            let found = Estimate::rolling(&times(all), at_a_time);
            assert_eq!((found.min_seconds, found.max_seconds), (expected.0, Some(expected.1)), "{case}");
        }
        let open = [times(&[100]), vec![Estimate { min_seconds: 30, max_seconds: None }]].concat();
        assert_eq!(Estimate::rolling(&open, 1), Estimate { min_seconds: 80, max_seconds: None });
    }
}
