//! How much longer than usual answers may take, because the way to the API server is slow.
//! A request that is given up takes its connection with it, and a new connection takes longer than the request. With fixed deadlines
//! a slow way would mean that no request ever succeeds. So deadlines grow after each one that was missed, and follow the answers.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// After the first missed deadline.
const FIRST: Duration = Duration::from_secs(10);
/// Enough for a new connection and a request if each direction takes ten seconds.
const LONGEST: Duration = Duration::from_secs(80);
/// A new connection takes up to three round trips before the request itself.
const ROUND_TRIPS: u32 = 4;

/// Shared by all requests of a client. In milliseconds.
#[derive(Debug, Default)]
pub(crate) struct ExtraTime(AtomicU64);

impl ExtraTime {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    /// A deadline that suffices for answers of the usual speed is left as it is.
    pub(crate) fn added_to(deadline: Duration, allowed: Duration) -> Duration {
        if allowed < deadline { deadline } else { deadline + allowed }
    }

    /// A request was not answered in time, although this much was allowed. Several at the same time count once.
    pub(crate) fn missed(&self, allowed: Duration) {
        let next = (allowed * 2).clamp(FIRST, LONGEST);
        self.0.fetch_max(millis(next), Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, took: Duration) {
        self.0.store(millis((took * ROUND_TRIPS).min(LONGEST)), Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn it_grows_with_every_missed_deadline_up_to_a_limit_and_follows_the_answers() {
        let extra_time = ExtraTime::default();
        let mut allowed = Vec::new();
        for _ in 0..5 {
            allowed.push(extra_time.get());
            // Two at the same time.
            let now = extra_time.get();
            extra_time.missed(now);
            extra_time.missed(now);
        }
        assert_eq!(allowed, [s(0), s(10), s(20), s(40), s(80)]);
        assert_eq!(extra_time.get(), s(80));
        for (took, expected) in [(20, 80), (60, 80), (6, 24), (2, 8), (0, 0), (3, 12)] {
            extra_time.answered(s(took));
            assert_eq!(extra_time.get(), s(expected), "after an answer in {took} s");
        }
        for (deadline, allowed, expected) in
            [(10, 0, 10), (10, 8, 10), (10, 10, 20), (3, 8, 11), (30, 24, 30), (30, 80, 110)]
        {
            assert_eq!(ExtraTime::added_to(s(deadline), s(allowed)), s(expected), "{deadline} s and {allowed} s");
        }
    }
}
