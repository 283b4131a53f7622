//! Counters of a node: its signals, integrated over time.
//! A signal counts for exactly as long as it lasted: neither the number of scrapes nor their times change a counter. Nothing
//! is subtracted, so no counter decreases.

use std::time::Duration;

/// The share of busy time that counts as `user`; the rest is `system`.
const USER: f64 = 0.6;

/// In seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    pub busy: f64,
    pub idle: f64,
    pub cpu_waiting: f64,
    pub memory_waiting: f64,
}

impl Counters {
    pub fn user(&self) -> f64 {
        USER * self.busy
    }

    pub fn system(&self) -> f64 {
        (1.0 - USER) * self.busy
    }
}

#[derive(Debug, Clone)]
pub(super) struct Meter {
    counters: Counters,
    signals: [f64; 4],
    since: Duration,
}

impl Meter {
    pub(super) fn new(now: Duration) -> Meter {
        Meter { counters: Counters::default(), signals: [0.0; 4], since: now }
    }

    pub(super) fn signals(&self) -> [f64; 4] {
        self.signals
    }

    /// Sets the signals from `now` on.
    pub(super) fn set(&mut self, signals: [f64; 4], now: Duration) {
        self.counters = self.read(now);
        self.since = self.since.max(now);
        self.signals = signals;
    }

    /// The counters at this time. A time before the last change counts as the time of that change.
    pub(super) fn read(&self, now: Duration) -> Counters {
        let passed = now.saturating_sub(self.since).as_secs_f64();
        let [cpu_usage, cpu_pressure, _, memory_pressure] = self.signals;
        let Counters { busy, idle, cpu_waiting, memory_waiting } = self.counters;
        Counters {
            busy: busy + cpu_usage * passed,
            idle: idle + (1.0 - cpu_usage) * passed,
            cpu_waiting: cpu_waiting + cpu_pressure * passed,
            memory_waiting: memory_waiting + memory_pressure * passed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_counts_for_as_long_as_it_lasted_whenever_it_is_read() {
        let at = Duration::from_secs;
        let mut meter = Meter::new(at(10));
        meter.set([0.5, 0.1, 0.9, 0.2], at(10));
        for second in 10..20 {
            meter.read(at(second));
        }
        meter.set([1.0, 0.8, 0.0, 0.0], at(20));
        let counters = meter.read(at(25));
        let expected = [5.0 + 5.0, 5.0, 1.0 + 4.0, 2.0];
        let Counters { busy, idle, cpu_waiting, memory_waiting } = counters;
        for (found, expected) in [busy, idle, cpu_waiting, memory_waiting].into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9, "{counters:?}");
        }
        assert!((counters.user() + counters.system() + idle - 15.0).abs() < 1e-9, "modes add up to the time");
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut meter = Meter::new(Duration::from_secs(10));
        meter.set([1.0; 4], Duration::from_secs(10));
        let before = meter.read(Duration::from_secs(12));
        meter.set([1.0; 4], Duration::from_secs(12));
        meter.set([0.5; 4], Duration::from_secs(3));
        assert_eq!(meter.read(Duration::from_secs(5)), before);
        assert_eq!(meter.read(Duration::from_secs(12)), before);
    }
}
