//! Random numbers from a seed. What happens to a request depends on what it is and how often it was made, not on the order
//! in which requests arrive: so one fault can be left out without changing all that follow.

use std::time::Duration;

use sim::Rng;

#[derive(Debug, Clone)]
pub(crate) struct Random(Rng);

impl Random {
    /// The stream of one topic. The names of topics are part of what a seed means.
    pub(crate) fn of(seed: u64, topic: &str, number: u64) -> Random {
        Random(Rng::named(seed, topic, number))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number from 0 on, below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit as usize) as u64
    }

    /// True so many times in a thousand.
    pub(crate) fn permille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}
