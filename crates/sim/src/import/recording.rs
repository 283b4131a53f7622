//! The samples of one quantity over a grid of times, with gaps until they are filled.

/// No sample.
const NONE: f32 = f32::NAN;
const NO_NODE: u32 = u32::MAX;

/// What was measured of one VM or node, and on which node.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    values: Vec<f32>,
    /// By sample; empty as long as no node was given.
    nodes: Vec<u32>,
}

/// A recording without gaps, and what was missing.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Filled {
    pub(super) values: Vec<f32>,
    /// Samples between others that were not there.
    pub(super) missing: usize,
    pub(super) longest_gap: usize,
    /// Samples before the first one and after the last one.
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Recording {
    pub fn new(count: usize) -> Self {
        Self { values: vec![NONE; count], nodes: Vec::new() }
    }

    /// The same value at all times.
    pub fn constant(count: usize, value: f64) -> Self {
        Self { values: vec![value as f32; count], nodes: Vec::new() }
    }

    /// Adds a sample. Where there is one already, the higher one counts.
    pub fn put(&mut self, position: usize, value: f64, node: Option<usize>) {
        if !value.is_finite() || value < 0.0 {
            return;
        }
        let Some(sample) = self.values.get_mut(position) else { return };
        if *sample >= value as f32 {
            return;
        }
        *sample = value as f32;
        if let Some(node) = node {
            self.nodes.resize(self.values.len(), NO_NODE);
            self.nodes[position] = node as u32;
        }
    }

    /// Adds a sample to what is there already: after a migration, the rates of both series are parts of one.
    pub fn add(&mut self, position: usize, value: f64, node: Option<usize>) {
        let before = self.values.get(position).copied().filter(|before| !before.is_nan());
        let Some(before) = before else { return self.put(position, value, node) };
        if !value.is_finite() || value < 0.0 {
            return;
        }
        if value as f32 > before
            && let Some(node) = node
        {
            self.nodes.resize(self.values.len(), NO_NODE);
            self.nodes[position] = node as u32;
        }
        self.values[position] = before + value as f32;
    }

    pub fn is_empty(&self) -> bool {
        self.values.iter().all(|value| value.is_nan())
    }

    /// The last sample.
    pub fn last(&self) -> Option<f64> {
        self.values.iter().rev().find(|value| !value.is_nan()).map(|value| f64::from(*value))
    }

    /// The samples that are there: position, value, and node if it is known.
    pub(super) fn samples(&self) -> impl Iterator<Item = (usize, f32, Option<usize>)> + '_ {
        let known = self.values.iter().enumerate().filter(|(_, value)| !value.is_nan());
        known.map(|(at, value)| {
            let node = self.nodes.get(at).filter(|node| **node != NO_NODE);
            (at, *value, node.map(|node| *node as usize))
        })
    }

    /// Whether samples are of more than one node.
    pub(super) fn moved(&self) -> bool {
        let mut known = self.nodes.iter().filter(|node| **node != NO_NODE);
        let first = known.next();
        known.any(|node| Some(node) != first)
    }

    /// Fills gaps by straight lines. Before the first sample the mean of all samples counts, after the last one that one.
    pub(super) fn fill(mut self) -> Filled {
        let count = self.values.len();
        let Some(first) = self.values.iter().position(|value| !value.is_nan()) else {
            return Filled { values: vec![0.0; count], before: count, ..Filled::default() };
        };
        let (sum, known) =
            self.samples().fold((0.0, 0), |(sum, known), (_, value, _)| (sum + f64::from(value), known + 1));
        let mut filled = Filled { before: first, ..Filled::default() };
        self.values[..first].fill((sum / f64::from(known)) as f32);
        let mut last = first;
        for at in first + 1..count {
            if self.values[at].is_nan() {
                continue;
            }
            let gap = at - last - 1;
            let (from, to) = (self.values[last], self.values[at]);
            for step in 1..=gap {
                self.values[last + step] = from + (to - from) * (step as f32 / (gap + 1) as f32);
            }
            filled.missing += gap;
            filled.longest_gap = filled.longest_gap.max(gap);
            last = at;
        }
        let end = self.values[last];
        self.values[last + 1..].fill(end);
        filled.after = count - 1 - last;
        filled.values = self.values;
        filled
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recording(samples: &[Option<f64>]) -> Recording {
        let mut recording = Recording::new(samples.len());
        for (at, value) in samples.iter().enumerate() {
            value.iter().for_each(|value| recording.put(at, *value, None));
        }
        recording
    }

    #[test]
    fn gaps_are_straight_lines_and_what_is_not_known_yet_is_the_mean() {
        let filled = recording(&[None, None, Some(1.0), None, None, None, Some(5.0), None]).fill();
        assert_eq!(filled.values, [3.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0, 5.0]);
        let Filled { missing, longest_gap, before, after, .. } = filled;
        assert_eq!((missing, longest_gap, before, after), (3, 3, 2, 1));
        assert_eq!(recording(&[None, None]).fill().before, 2);
    }

    #[test]
    fn of_two_series_at_a_time_the_higher_one_counts_with_its_node() {
        let mut vm = Recording::new(3);
        for (position, value, node) in [(0, 1.0, 4), (1, 2.0, 4), (1, 0.5, 7), (2, 0.1, 4), (2, 1.5, 7), (9, 1.0, 7)] {
            vm.put(position, value, Some(node));
        }
        vm.put(0, f64::NAN, Some(7));
        vm.put(0, f64::INFINITY, Some(7));
        let samples: Vec<_> = vm.samples().collect();
        assert_eq!(samples, [(0, 1.0, Some(4)), (1, 2.0, Some(4)), (2, 1.5, Some(7))]);
        assert!(vm.moved() && vm.last() == Some(1.5));
    }

    #[test]
    fn rates_of_two_nodes_after_a_migration_add_up_and_belong_to_the_node_with_more() {
        let mut vm = Recording::new(2);
        for (position, value, node) in [(0, 1.0, 4), (1, 0.4, 4), (1, 0.6, 7)] {
            vm.add(position, value, Some(node));
        }
        vm.add(1, f64::NAN, Some(4));
        assert_eq!(vm.samples().collect::<Vec<_>>(), [(0, 1.0, Some(4)), (1, 1.0, Some(7))]);
    }

    proptest! {
        #[test]
        fn filling_changes_no_sample_and_stays_within_what_was_measured(
            samples in prop::collection::vec(prop::option::of(0.0..8.0_f64), 1..60)
        ) {
            let before = recording(&samples);
            let filled = before.clone().fill();
            prop_assert_eq!(filled.values.len(), samples.len());
            let known: Vec<_> = before.samples().collect();
            let missing = samples.len() - known.len();
            prop_assert_eq!(filled.missing + filled.before + filled.after, missing);
            for (at, value, _) in &known {
                prop_assert_eq!(filled.values[*at], *value);
            }
            let (low, high) = known.iter().fold((f32::MAX, 0.0_f32), |(low, high), (_, value, _)| (low.min(*value), high.max(*value)));
            if !known.is_empty() {
                for value in &filled.values {
                    prop_assert!(*value >= low * 0.9999 - 1e-6 && *value <= high * 1.0001 + 1e-6, "{value} of {low} to {high}");
                }
            }
        }
    }
}
