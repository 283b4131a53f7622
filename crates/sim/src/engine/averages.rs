//! The signals that a monitoring system shows: means over a window of steps, which ends some steps ago.

use std::collections::VecDeque;

use balance::{Means, Signals};

/// The newest samples. A sample has the signals of the nodes that were up, by node.
#[derive(Debug)]
pub(super) struct Averages {
    window: usize,
    /// How many of the newest samples are not shown yet.
    lag: usize,
    samples: VecDeque<Vec<Option<[f64; 4]>>>,
    signals: Signals,
    means: Means,
}

impl Averages {
    /// None if the newest signals are shown without a window or lag.
    pub(super) fn over(window: u64, lag: u64) -> Option<Self> {
        let [window, lag] = [window.max(1), lag].map(|steps| usize::try_from(steps).unwrap_or(usize::MAX / 2));
        let signals = Signals::new();
        let is_other = window > 1 || lag > 0;
        is_other.then(|| Self { window, lag, samples: VecDeque::new(), means: Means::of(&signals), signals })
    }

    pub(super) fn sample(&mut self, nodes: usize, slots: &[u32], signals: &Signals) {
        let is_full = self.samples.len() >= self.window + self.lag;
        let mut sample = if is_full { self.samples.pop_front().unwrap_or_default() } else { Vec::new() };
        sample.clear();
        sample.resize(nodes, None);
        for (slot, node) in slots.iter().enumerate() {
            sample[*node as usize] = Some(signals.node(slot));
        }
        self.samples.push_back(sample);
    }

    /// The averages of these nodes over the shown samples in which they were up. A node without one has its newest
    /// signals.
    pub(super) fn of(&mut self, slots: &[u32]) -> (&Signals, &Means) {
        self.signals.clear();
        let shown = self.samples.len().saturating_sub(self.lag).max(1);
        for node in slots {
            let of_node = |sample: &Vec<Option<[f64; 4]>>| sample.get(*node as usize).copied().flatten();
            let (mut sum, mut count) = ([0.0; 4], 0_u32);
            for values in self.samples.iter().take(shown).filter_map(of_node) {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                count += 1;
            }
            self.signals.push(match count {
                0 => self.samples.back().and_then(of_node).unwrap_or_default(),
                _ => sum.map(|sum| sum / f64::from(count)),
            });
        }
        self.means.reset(&self.signals);
        (&self.signals, &self.means)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_is_averaged_over_the_newest_samples_in_which_it_was_up() {
        let mut averages = Averages::over(2, 0).unwrap();
        let mut sample = |slots: &[u32], values: &[f64]| {
            let mut signals = Signals::new();
            values.iter().for_each(|value| signals.push([*value; 4]));
            averages.sample(3, slots, &signals);
            averages.of(slots).0.cpu_usage.clone()
        };
        assert_eq!(sample(&[0, 1], &[0.2, 0.4]), [0.2, 0.4]);
        assert_eq!(sample(&[0, 1], &[0.6, 0.4]), [0.4, 0.4]);
        assert_eq!(sample(&[0, 2], &[1.0, 0.5]), [0.8, 0.5]);
        assert_eq!(sample(&[0, 1, 2], &[1.0, 0.3, 0.7]), [1.0, 0.3, 0.6]);
    }

    #[test]
    fn new_signals_are_shown_after_the_lag() {
        for (window, expected) in [(1, [0.25, 0.25, 0.5, 0.75]), (2, [0.25, 0.25, 0.375, 0.625])] {
            let mut averages = Averages::over(window, 1).unwrap();
            let seen = [0.25, 0.5, 0.75, 1.0].map(|value| {
                let mut signals = Signals::new();
                signals.push([value; 4]);
                averages.sample(1, &[0], &signals);
                averages.of(&[0]).0.cpu_usage[0]
            });
            assert_eq!(seen, expected);
        }
    }

    #[test]
    fn a_node_that_has_just_come_up_has_its_newest_signals() {
        let mut averages = Averages::over(1, 1).unwrap();
        for (slots, values) in [(&[0][..], &[0.1][..]), (&[0, 1], &[0.2, 0.7])] {
            let mut signals = Signals::new();
            values.iter().for_each(|value| signals.push([*value; 4]));
            averages.sample(2, slots, &signals);
        }
        assert_eq!(averages.of(&[0, 1]).0.cpu_usage, [0.1, 0.7]);
    }

    #[test]
    fn one_sample_is_no_average() {
        assert!(Averages::over(0, 0).is_none());
        assert!(Averages::over(1, 0).is_none());
    }
}
