//! The shapes of loads over time, and the load of a VM at a step without its tasks.

use crate::{
    model::VmLoad,
    rng::{Purpose, Rng},
    scenario::Daily,
};

const DAY: u64 = 86_400;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    Constant,
    Daily(Daily),
    /// Straight lines between points of time and value.
    Points(Vec<(u64, f64)>),
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
                    (Some((start, from)), Some((end, to))) => {
                        from + (to - from) * ((time - start) as f64 / (end - start) as f64)
                    }
                    (Some((_, last)), None) => last,
                    (None, Some((_, first))) => *first,
                    (None, None) => 0.0,
                }
            }
        }
    }
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
    fn points_are_joined_by_straight_lines_and_hold_beyond_their_ends() {
        let shape = Shape::Points(vec![(100, 0.2), (200, 0.6)]);
        for (time, value) in [(0, 0.2), (100, 0.2), (150, 0.4), (200, 0.6), (900, 0.6)] {
            assert!((shape.at(time, 0) - value).abs() < 1e-12, "{time}");
        }
    }
}
