//! What time it is, and chance. Tests bring both; then a run can be repeated.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;

#[derive(Clone)]
pub struct Surroundings {
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    chance: Arc<AtomicU64>,
}

impl Default for Surroundings {
    fn default() -> Self {
        Surroundings::new(Timestamp::now, RandomState::new().hash_one(()))
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Surroundings at {}", self.now())
    }
}

impl Surroundings {
    pub fn new(clock: impl Fn() -> Timestamp + Send + Sync + 'static, seed: u64) -> Self {
        Surroundings { clock: Arc::new(clock), chance: Arc::new(AtomicU64::new(seed)) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The duration, up to a tenth shorter or longer, so that not everything happens at once.
    pub(crate) fn spread(&self, duration: Duration) -> Duration {
        let share = f64::from((self.next() >> 32) as u32) / f64::from(u32::MAX);
        duration.mul_f64(0.9 + share / 5.0)
    }

    /// The next number of SplitMix64.
    fn next(&self) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut number = self.chance.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_fair_within_a_tenth_and_the_same_for_the_same_seed() {
        let waits = |seed| {
            let surroundings = Surroundings::new(Timestamp::now, seed);
            (0..1000).map(|_| surroundings.spread(Duration::from_secs(100))).collect::<Vec<_>>()
        };
        let some = waits(1);
        assert_eq!(some, waits(1));
        assert_ne!(some, waits(2));
        let within = |wait: &Duration| (90.0..=110.0).contains(&wait.as_secs_f64());
        assert!(some.iter().all(within), "{some:?}");
        assert!(some.iter().any(|wait| wait.as_secs() < 92) && some.iter().any(|wait| wait.as_secs() >= 108));
    }
}
