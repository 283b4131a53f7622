//! When a pool is done, from the time that its nodes have taken so far. Nothing is made up: before the first nodes are done, and when
//! it takes longer than ever before, nobody knows.

use jiff::Timestamp;

use crate::blast_radius::Estimate;

/// What is known of the rollout of a pool.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// When the rollout began.
    pub(super) begin: Timestamp,
    /// When nodes were done, in any order.
    pub(super) done: Vec<Timestamp>,
    /// How many nodes are left.
    pub(super) left: usize,
    /// How many nodes are updated at a time.
    pub(super) at_a_time: usize,
}

impl Pace {
    /// Where only the number of nodes that are done is known, and the time of the last one.
    pub(super) fn even(begin: Timestamp, last: Timestamp, count: usize, left: usize, at_a_time: usize) -> Self {
        let step = last.duration_since(begin) / i32::try_from(count.max(1)).unwrap_or(i32::MAX);
        let time = |number: usize| begin + step * i32::try_from(number).unwrap_or(i32::MAX);
        Pace { begin, done: (1..=count).map(time).collect(), left, at_a_time }
    }

    /// Nodes that are updated together are done at about the same time, so that whole groups of them are looked at.
    pub(super) fn remaining(mut self, now: Timestamp) -> Estimate {
        let group = self.at_a_time.max(1);
        self.done.retain(|done| *done >= self.begin);
        self.done.sort_unstable();
        let ends: Vec<Timestamp> = self.done.chunks_exact(group).filter_map(|group| group.last().copied()).collect();
        let starts = [self.begin].into_iter().chain(ends.iter().copied());
        let took = || ends.iter().zip(starts.clone()).map(|(end, start)| seconds(start, *end));
        let (Some(last), Some(least), Some(most)) = (ends.last(), took().min(), took().max()) else {
            return Estimate::UNKNOWN;
        };
        if self.left == 0 {
            return Estimate::NONE;
        }
        let open = self.left + self.done.len() % group;
        let groups = u64::try_from(open.div_ceil(group)).unwrap_or(u64::MAX);
        let elapsed = seconds(*last, now);
        let all = |each: u64| each.saturating_mul(groups).saturating_sub(elapsed);
        match elapsed > most {
            true => Estimate { min_seconds: least.saturating_mul(groups - 1), max_seconds: None },
            false => Estimate { min_seconds: all(least), max_seconds: Some(all(most)) },
        }
    }
}

fn seconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_secs()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_time_that_is_left_follows_from_the_time_that_nodes_took() {
        let known = |min, max| Estimate { min_seconds: min, max_seconds: Some(max) };
        for (case, done, left, at_a_time, now, expected) in [
            ("no node is done", vec![], 3, 1, 50, Estimate::UNKNOWN),
            ("one of three", vec![100], 2, 1, 100, known(200, 200)),
            ("and time goes on", vec![100], 2, 1, 160, known(140, 140)),
            ("the second took twice as long", vec![300, 100], 2, 1, 300, known(200, 400)),
            (
                "the third takes longer than any before",
                vec![100, 300],
                2,
                1,
                600,
                Estimate { min_seconds: 100, max_seconds: None },
            ),
            ("a half group tells nothing", vec![100], 3, 2, 100, Estimate::UNKNOWN),
            ("a group at a time", vec![90, 100], 4, 2, 100, known(200, 200)),
            ("half of the next group is done too", vec![90, 100, 150], 3, 2, 150, known(150, 150)),
            ("nodes that were done before do not count", vec![-500, 100], 1, 1, 100, known(100, 100)),
            ("all are done", vec![100, 200], 0, 1, 900, Estimate::NONE),
        ] {
            let done = done.into_iter().map(at).collect();
            let pace = Pace { begin: at(0), done, left, at_a_time };
            assert_eq!(pace.remaining(at(now)), expected, "{case}");
        }
    }

    #[test]
    fn a_count_and_the_time_of_the_last_node_are_enough() {
        let pace = Pace::even(at(0), at(400), 4, 2, 1);
        assert_eq!(pace.remaining(at(400)), Estimate { min_seconds: 200, max_seconds: Some(200) });
        assert_eq!(Pace::even(at(0), at(0), 0, 2, 1).remaining(at(9)), Estimate::UNKNOWN);
    }
}
