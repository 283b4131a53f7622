//! How long to wait before trying again: longer each time, and never in step with others.

use std::time::Duration;

use crate::Surroundings;

const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Patience {
    next: Duration,
    longest: Duration,
    surroundings: Surroundings,
}

impl Patience {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Patience { next: FIRST, longest: LONGEST, surroundings }
    }

    pub(crate) fn up_to(self, longest: Duration) -> Self {
        Patience { longest, ..self }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.longest);
        self.surroundings.spread(now)
    }

    pub(crate) fn reset(&mut self) {
        self.next = FIRST;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_a_limit_and_starts_over() {
        let mut patience = Patience::new(Surroundings::default());
        let waits: Vec<Duration> = (0..12).map(|_| patience.next()).collect();
        assert!(waits.windows(2).take(7).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST.mul_f64(1.1)), "{waits:?}");
        patience.reset();
        assert!(patience.next() <= FIRST.mul_f64(1.1));
    }
}
