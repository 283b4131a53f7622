//! The shapes of loads over time, and the load of a VM at a step without its tasks.

use crate::{
    model::VmLoad,
    rng::{Purpose, Rng},
    scenario::{Daily, Samples},
};

const DAY: u64 = 86_400;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Constant,
    Daily(Daily),
    /// Straight lines between points of time and value.
    Points(Vec<(u64, f64)>),
    /// The same points in every period of this length.
    Periodic(u64, Vec<(u64, f64)>),
    Samples(Samples),
}

impl Shape {
    /// The value at a time. `time` is in seconds since the beginning, `clock` in seconds since Monday, 00:00.
    pub(crate) fn at(&self, time: u64, clock: u64) -> f64 {
        match self {
            Self::Constant => 1.0,
            Self::Daily(daily) => {
                let since_peak = (clock + DAY - daily.peak.0 * 60) % DAY;
                let angle = std::f64::consts::TAU * (since_peak as f64 / DAY as f64);
                let weekend = if clock / DAY % 7 >= 5 { daily.weekend } else { 1.0 };
                daily.low + (daily.high - daily.low) * weekend * (0.5 + 0.5 * libm::cos(angle))
            }
            Self::Points(points) => {
                let after = points.partition_point(|(at, _)| *at <= time);
                match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
                    (Some(before), Some(after)) => between(before, *after, time),
                    (Some((_, last)), None) => last,
                    (None, Some((_, first))) => *first,
                    (None, None) => 0.0,
                }
            }
            Self::Periodic(every, points) => {
                let (Some(first), Some(last)) = (points.first(), points.last()) else { return 0.0 };
                let time = time % every;
                let after = points.partition_point(|(at, _)| *at <= time);
                let (start, end) = match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
                    (Some(before), Some(after)) => (before, *after),
                    (Some(before), None) => (before, (first.0 + every, first.1)),
                    // The period before ended with its last point; all times are one period later.
                    (None, _) => return between(*last, (first.0 + every, first.1), time + every),
                };
                between(start, end, time)
            }
            Self::Samples(samples) => samples.at(time),
        }
    }
}

/// On the straight line between two points of time and value.
fn between((start, from): (u64, f64), (end, to): (u64, f64), time: u64) -> f64 {
    from + (to - from) * ((time - start) as f64 / (end - start) as f64)
}

impl VmLoad {
    /// The noise that is added to the CPU load at a step.
    pub(crate) fn noise_at(&self, seed: u64, step: u64) -> f64 {
        if self.noise > 0.0 {
            Rng::keyed(seed, Purpose::Noise, u64::from(self.vm), step).between(-self.noise, self.noise)
        } else {
            0.0
        }
    }

    /// The shares of its cores and memory that a VM uses: factor times shape, plus noise and tasks, limited to the
    /// whole VM.
    pub(crate) fn shares(&self, shape_values: &[f64], noise: f64, tasks: [f64; 2]) -> [f64; 2] {
        let share = |at: usize, extra: f64| {
            let own = self.factor[at] * shape_values[self.shape[at] as usize];
            let most = if own > 1.0 { own } else { 1.0 };
            let share = own + extra;
            if share < 0.0 {
                0.0
            } else if share > most {
                most
            } else {
                share
            }
        };
        [share(0, noise + tasks[0]), share(1, tasks[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::ClockTime;

    #[test]
    fn a_daily_curve_is_highest_at_its_peak_and_lowest_twelve_hours_later() {
        let daily = Daily { low: 0.1, high: 0.5, peak: ClockTime(14 * 60), weekend: 0.5 };
        let at = |day: u64, hour: u64| Shape::Daily(daily.clone()).at(0, day * DAY + hour * 3600);
        assert!((at(0, 14) - 0.5).abs() < 1e-12);
        assert!((at(0, 2) - 0.1).abs() < 1e-12);
        assert!((at(3, 8) - 0.3).abs() < 1e-12);
        assert!((at(5, 14) - 0.3).abs() < 1e-12, "a Saturday");
        assert!((at(7, 14) - 0.5).abs() < 1e-12, "the next Monday");
    }

    #[test]
    fn a_periodic_load_repeats_and_joins_its_last_point_to_the_first_of_the_next_period() {
        let shape = Shape::Periodic(100, vec![(20, 0.2), (60, 0.6)]);
        for (time, value) in
            [(20, 0.2), (40, 0.4), (60, 0.6), (90, 0.4), (0, 0.5 - 0.1 / 3.0 * 2.5), (120, 0.2), (240, 0.4)]
        {
            let value = if time == 0 { 0.6 - 0.4 * (40.0 / 60.0) } else { value };
            assert!((shape.at(time, 0) - value).abs() < 1e-12, "{time}: {}", shape.at(time, 0));
            assert_eq!(shape.at(time, 0).to_bits(), shape.at(time + 700, 0).to_bits(), "{time}");
        }
    }

    #[test]
    fn points_are_joined_by_straight_lines_and_hold_beyond_their_ends() {
        let shape = Shape::Points(vec![(100, 0.2), (200, 0.6)]);
        for (time, value) in [(0, 0.2), (100, 0.2), (150, 0.4), (200, 0.6), (900, 0.6)] {
            assert!((shape.at(time, 0) - value).abs() < 1e-12, "{time}");
        }
    }
}
