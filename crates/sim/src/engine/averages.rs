//! What a monitoring system shows of the nodes: the means of their signals over the last steps.

use std::collections::VecDeque;

use balance::{Means, Signals};

/// The newest samples, each with the signals of the nodes that were up, by node.
#[derive(Debug)]
pub(super) struct Averages {
    window: usize,
    samples: VecDeque<Vec<Option<[f64; 4]>>>,
    signals: Signals,
    means: Means,
}

impl Averages {
    /// None if there is nothing to average.
    pub(super) fn over(window: u64) -> Option<Self> {
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        let signals = Signals::new();
        (window > 1).then(|| Self { window, samples: VecDeque::new(), means: Means::of(&signals), signals })
    }

    pub(super) fn sample(&mut self, nodes: usize, slots: &[u32], signals: &Signals) {
        let mut sample =
            if self.samples.len() < self.window { Vec::new() } else { self.samples.pop_front().unwrap_or_default() };
        sample.clear();
        sample.resize(nodes, None);
        for (slot, node) in slots.iter().enumerate() {
            sample[*node as usize] = Some(signals.node(slot));
        }
        self.samples.push_back(sample);
    }

    /// The averages of these nodes, each over the samples in which it was up.
    pub(super) fn of(&mut self, slots: &[u32]) -> (&Signals, &Means) {
        self.signals.clear();
        for node in slots {
            let (mut sum, mut count) = ([0.0; 4], 0_u32);
            for values in self.samples.iter().filter_map(|sample| sample.get(*node as usize).copied().flatten()) {
                sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                count += 1;
            }
            self.signals.push(sum.map(|sum| sum / f64::from(count.max(1))));
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
        let mut averages = Averages::over(2).unwrap();
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
    fn one_sample_is_no_average() {
        assert!(Averages::over(0).is_none());
        assert!(Averages::over(1).is_none());
    }
}
