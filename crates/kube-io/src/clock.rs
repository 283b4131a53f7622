//! The time of day, and random jitter. Tests replace both, so that a run can be repeated.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;

#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl Default for Clock {
    fn default() -> Self {
        Clock::new(Timestamp::now, fastrand::u64(..))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock at {}", self.now())
    }
}

impl Clock {
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static, seed: u64) -> Self {
        Clock { now: Arc::new(now), random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The duration, up to a tenth shorter or longer, so that clients do not send their requests at the same moment.
    pub fn jittered(&self, duration: Duration) -> Duration {
        let random = self.random.lock().unwrap_or_else(PoisonError::into_inner).f64();
        duration.mul_f64(0.9 + random / 5.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_covers_a_tenth_on_both_sides_and_repeats_with_its_seed() {
        let waits = |seed| {
            let clock = Clock::new(Timestamp::now, seed);
            (0..1000).map(|_| clock.jittered(Duration::from_secs(100))).collect::<Vec<_>>()
        };
        let some = waits(1);
        assert_eq!(some, waits(1));
        assert_ne!(some, waits(2));
        let within = |wait: &Duration| (90.0..=110.0).contains(&wait.as_secs_f64());
        assert!(some.iter().all(within), "{some:?}");
        assert!(some.iter().any(|wait| wait.as_secs() < 92) && some.iter().any(|wait| wait.as_secs() >= 108));
    }
}
