//! The times at which a load is sampled, and the order in which a scenario plays the samples.

/// Equal steps of time up to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    /// The last time, in seconds since 1970.
    pub end: u64,
    /// The seconds between two times.
    pub step: u64,
    pub count: usize,
}

impl Grid {
    /// The times of a span that ends at the last multiple of the step up to `now`. There is at least one.
    pub fn new(now: u64, span: u64, step: u64) -> Self {
        let step = step.max(1);
        Self { end: now - now % step, step, count: (span / step).max(1) as usize }
    }

    pub fn start(&self) -> u64 {
        self.end.saturating_sub((self.count as u64 - 1) * self.step)
    }

    /// The number of a time. None if it is not within half a step of one.
    pub fn position(&self, time: f64) -> Option<usize> {
        let steps = ((time - self.start() as f64) / self.step as f64).round();
        (steps >= 0.0 && steps < self.count as f64).then_some(steps as usize)
    }
}

/// What a scenario plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// It begins with the load of the end; then the span comes again and again, as if the future were like it.
    #[default]
    Forecast,
    /// It begins with the load of the start, and ends with the span.
    Replay,
}

impl Order {
    /// The samples as a scenario plays them.
    pub(super) fn arrange<T>(self, mut samples: Vec<T>) -> Vec<T> {
        if self == Self::Forecast && !samples.is_empty() {
            samples.rotate_right(1);
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_ends_at_a_multiple_of_the_step_and_has_as_many_times_as_steps_fit() {
        let grid = Grid::new(1_000_123, 3600, 300);
        assert_eq!((grid.end, grid.count, grid.start()), (999_900, 12, 999_900 - 11 * 300));
        assert_eq!(Grid::new(50, 10, 60), Grid { end: 0, step: 60, count: 1 }, "a snapshot");
        for (time, position) in [(grid.start() as f64, Some(0)), (999_900.0, Some(11)), (999_760.0, Some(11))] {
            assert_eq!(grid.position(time), position, "{time}");
        }
        for time in [0.0, 1_000_060.0, f64::NAN] {
            assert_eq!(grid.position(time), None, "{time}");
        }
    }

    /// With a span of whole days, a time of day in the forecast has the load of that time of day.
    #[test]
    fn a_forecast_begins_now_and_goes_on_as_the_span_did() {
        assert_eq!(Order::Forecast.arrange(vec!["then", "later", "now"]), ["now", "then", "later"]);
        assert_eq!(Order::Replay.arrange(vec!["then", "later", "now"]), ["then", "later", "now"]);
        assert!(Order::Forecast.arrange(Vec::<u8>::new()).is_empty());
    }
}
