//! The time of day, the time since a start, and random jitter. Tests replace all of them, so that a run can be repeated.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};

#[derive(Clone)]
pub struct Clock {
    now: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    uptime: Arc<dyn Fn() -> Duration + Send + Sync>,
    random: Arc<Mutex<fastrand::Rng>>,
}

impl Default for Clock {
    fn default() -> Self {
        Clock { uptime: Arc::new(since_boot), ..Clock::new(Timestamp::now, fastrand::u64(..)) }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock at {}", self.now())
    }
}

impl Clock {
    /// A clock whose every time follows from `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static, seed: u64) -> Self {
        let now = Arc::new(now);
        let since = now.clone();
        let uptime = move || Duration::try_from(since().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default();
        Clock { now, uptime: Arc::new(uptime), random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))) }
    }

    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// The time since an arbitrary start. It never goes back, and it passes while the process is stopped or the machine sleeps.
    pub fn uptime(&self) -> Duration {
        (self.uptime)()
    }

    /// The duration, up to a tenth shorter or longer, so that clients do not send their requests at the same moment.
    pub fn jittered(&self, duration: Duration) -> Duration {
        let random = self.random.lock().unwrap_or_else(PoisonError::into_inner).f64();
        duration.mul_f64(0.9 + random / 5.0)
    }
}

/// [`std::time::Instant`] does not count the time during which the machine sleeps.
fn since_boot() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_since_a_start_passes_and_follows_from_the_time_that_a_test_sets() {
        let clock = Clock::default();
        let before = clock.uptime();
        assert!(before > Duration::ZERO && clock.uptime() >= before);
        let fixed = Clock::new(|| Timestamp::from_second(7).unwrap(), 0);
        assert_eq!(fixed.uptime(), Duration::from_secs(7));
    }

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
