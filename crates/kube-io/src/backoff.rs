//! How long to wait before the next attempt: twice as long after each failure, up to a limit.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::jiff::Timestamp;

use crate::Clock;

/// The wait after the first failure, and the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackoffPolicy {
    pub first: Duration,
    pub longest: Duration,
}

impl BackoffPolicy {
    /// For requests that change something, of which nobody waits for a single one.
    pub const REQUESTS: BackoffPolicy =
        BackoffPolicy { first: Duration::from_millis(200), longest: Duration::from_secs(60) };
    /// For watches: a change that was missed has to be noticed soon after the API server is back.
    pub const WATCHES: BackoffPolicy =
        BackoffPolicy { first: Duration::from_millis(200), longest: Duration::from_secs(15) };
    /// For the parts of a lab and for stand-ins, which run beside their API server.
    pub const LOCAL: BackoffPolicy =
        BackoffPolicy { first: Duration::from_millis(50), longest: Duration::from_secs(5) };

    /// The wait after so many earlier failures.
    pub fn delay(self, failures: u32) -> Duration {
        self.first.saturating_mul(1 << failures.min(16)).min(self.longest)
    }
}

/// The waits of one activity, with jitter.
#[derive(Debug)]
pub struct Backoff {
    policy: BackoffPolicy,
    failures: u32,
    clock: Clock,
}

impl Backoff {
    pub fn new(policy: BackoffPolicy, clock: Clock) -> Self {
        Backoff { policy, failures: 0, clock }
    }

    /// Counts a failure, and returns how long to wait.
    pub fn failed(&mut self) -> Duration {
        let delay = self.policy.delay(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.clock.jittered(delay)
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn jittered(&self, duration: Duration) -> Duration {
        self.clock.jittered(duration)
    }
}

/// The waits of many objects, each with failures of its own. Without jitter: one process decides about all of them.
#[derive(Debug)]
pub struct KeyedBackoff<K> {
    policy: BackoffPolicy,
    entries: BTreeMap<K, Entry>,
}

#[derive(Debug, Default)]
struct Entry {
    failures: u32,
    until: Option<Timestamp>,
}

impl<K: Ord> KeyedBackoff<K> {
    pub fn new(policy: BackoffPolicy) -> Self {
        KeyedBackoff { policy, entries: BTreeMap::new() }
    }

    /// Counts a failure.
    pub fn failed(&mut self, key: K, now: Timestamp) {
        let entry = self.entries.entry(key).or_default();
        entry.until = now.checked_add(self.policy.delay(entry.failures)).ok();
        entry.failures = entry.failures.saturating_add(1);
    }

    pub fn reset(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Until when the object is left alone, if it is.
    pub fn until(&self, key: &K, now: Timestamp) -> Option<Timestamp> {
        self.entries.get(key).and_then(|entry| entry.until).filter(|until| *until > now)
    }

    /// When the next object may be tried again.
    pub fn next(&self, now: Timestamp) -> Option<Timestamp> {
        self.entries.values().filter_map(|entry| entry.until).filter(|until| *until > now).min()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.entries.retain(|key, _| keep(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit_and_start_over() {
        let BackoffPolicy { first, longest } = BackoffPolicy::REQUESTS;
        let mut backoff = Backoff::new(BackoffPolicy::REQUESTS, Clock::default());
        let waits: Vec<Duration> = (0..12).map(|_| backoff.failed()).collect();
        assert!(waits.windows(2).take(7).all(|pair| pair[1] > pair[0]), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= longest.mul_f64(1.1)), "{waits:?}");
        backoff.reset();
        assert!(backoff.failed() <= first.mul_f64(1.1));
    }

    #[test]
    fn failures_of_an_object_make_it_wait_and_no_other() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let mut backoff = KeyedBackoff::new(BackoffPolicy::LOCAL);
        let mut waits = Vec::new();
        for _ in 0..10 {
            backoff.failed("a", at(0));
            waits.push(backoff.next(at(0)).unwrap().as_millisecond());
        }
        assert_eq!(waits, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
        assert_eq!(backoff.until(&"a", at(4999)), Some(at(5000)));
        assert_eq!(backoff.until(&"a", at(5000)), None);
        assert_eq!(backoff.until(&"b", at(0)), None);
        backoff.reset(&"a");
        assert_eq!(backoff.next(at(0)), None);
        backoff.failed("a", at(10));
        assert_eq!(backoff.next(at(10)), Some(at(60)), "failures are counted anew");
        backoff.retain(|key| *key != "a");
        assert_eq!(backoff.next(at(10)), None);
    }
}
