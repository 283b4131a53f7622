//! How long to wait before trying again: longer each time, and never in step with others.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Patience {
    next: Duration,
    longest: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience::up_to(LONGEST)
    }
}

impl Patience {
    pub(crate) fn up_to(longest: Duration) -> Self {
        Patience { next: FIRST, longest }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.longest);
        spread(now)
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

/// The duration, up to a tenth shorter or longer, so that not everything happens at once.
pub(crate) fn spread(duration: Duration) -> Duration {
    let share = f64::from(RandomState::new().hash_one(()) as u32) / f64::from(u32::MAX);
    duration.mul_f64(0.9 + share / 5.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_a_limit_and_starts_over() {
        let mut patience = Patience::default();
        let waits: Vec<Duration> = (0..12).map(|_| patience.next()).collect();
        assert!(waits.windows(2).take(7).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST.mul_f64(1.1)), "{waits:?}");
        patience.reset();
        assert!(patience.next() <= FIRST.mul_f64(1.1));
    }
}
