//! Load over time: the shapes that a scenario names, and the tasks that come and go at random.
//!
//! The load of a VM at a step is a function of the world, the seed and the step; only tasks that pick the hottest
//! nodes look at the cluster.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    rng::{Purpose, Rng},
    scenario::{Daily, Window},
    world::{Varying, World},
};

const DAY: u64 = 86_400;
/// Tasks beyond this many at a time are not started.
const MOST_TASKS: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// One, always.
    Constant,
    Daily(Daily),
    /// Straight lines between points of time and value.
    Points(Vec<(u64, f64)>),
}

impl Shape {
    /// The value at a time in seconds since the beginning; `clock` counts from Monday, 00:00.
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

impl Varying {
    /// What the noise adds to the CPU load at a step.
    pub(crate) fn noise_at(&self, seed: u64, step: u64) -> f64 {
        if self.noise > 0.0 {
            Rng::keyed(seed, Purpose::Noise, u64::from(self.vm), step).between(-self.noise, self.noise)
        } else {
            0.0
        }
    }

    /// The shares of its cores and its memory that a VM uses: its factor times its shape, noise and tasks, at most all
    /// that it has.
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

impl Window {
    pub(crate) fn is_open(&self, clock: u64) -> bool {
        let (from, to) = (self.from.0 * 60, self.to.0 * 60);
        let time = clock % DAY;
        let (inside, belongs_to_the_day_before) = match from.cmp(&to) {
            std::cmp::Ordering::Less => (time >= from && time < to, false),
            std::cmp::Ordering::Equal => (true, false),
            std::cmp::Ordering::Greater => (time >= from || time < to, time < to),
        };
        let day = (clock / DAY + if belongs_to_the_day_before { 6 } else { 0 }) % 7;
        inside && (self.days.is_empty() || self.days.iter().any(|open| *open as u64 == day))
    }
}

/// Tasks that run now, by VM.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: BTreeMap<u32, Vec<Running>>,
    /// When tasks end, and whose.
    ends: BTreeSet<(u64, u32)>,
    count: usize,
}

#[derive(Debug)]
struct Running {
    end: u64,
    load: [f64; 2],
}

impl Tasks {
    /// Whether there is nothing to do at any step.
    pub(crate) fn is_idle(&self, world: &World) -> bool {
        world.tasks.is_empty()
    }

    /// What all tasks of a VM use, in the order in which they came.
    pub(crate) fn load(&self, vm: u32) -> [f64; 2] {
        let mut load = [0.0; 2];
        for task in self.running.get(&vm).into_iter().flatten() {
            load = [load[0] + task.load[0], load[1] + task.load[1]];
        }
        load
    }

    /// Ends and starts tasks; `changed` gets the VMs concerned. `pick` names VMs for a target: it is given the number of
    /// the generator's nodes and a stream, and may find none.
    pub(crate) fn step(
        &mut self,
        world: &World,
        seed: u64,
        step: u64,
        changed: &mut Vec<u32>,
        mut pick: impl FnMut(usize, &mut Rng) -> Option<u32>,
    ) {
        while let Some(&(end, vm)) = self.ends.first() {
            if end > step {
                break;
            }
            self.ends.pop_first();
            if let Some(tasks) = self.running.get_mut(&vm) {
                let before = tasks.len();
                tasks.retain(|task| task.end > step);
                self.count -= before - tasks.len();
                if tasks.is_empty() {
                    self.running.remove(&vm);
                }
                changed.push(vm);
            }
        }
        for (number, task) in world.tasks.iter().enumerate() {
            let open = task.window.as_ref().is_none_or(|window| window.is_open(world.clock(step)));
            if !step.is_multiple_of(task.every) || !open {
                continue;
            }
            let mut rng = Rng::keyed(seed, Purpose::Task, number as u64, step);
            let count = task.count.draw(&mut rng) as usize;
            for _ in 0..count.min(MOST_TASKS - self.count.min(MOST_TASKS)) {
                let load = [task.cpu.draw(&mut rng), task.memory.draw(&mut rng)];
                let steps = (task.seconds.draw(&mut rng) / world.step as f64) as u64;
                let Some(vm) = pick(number, &mut rng) else { continue };
                let end = step + steps.max(1);
                self.running.entry(vm).or_default().push(Running { end, load });
                self.ends.insert((end, vm));
                self.count += 1;
                changed.push(vm);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{scenario::Day, units::ClockTime};

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

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_it_began_on() {
        let window = |days, from: u64, to: u64| Window { days, from: ClockTime(from * 60), to: ClockTime(to * 60) };
        let night = window(vec![Day::Fri], 22, 6);
        let at = |window: &Window, day: u64, hour: u64| window.is_open(day * DAY + hour * 3600);
        assert!(at(&night, 4, 23) && at(&night, 5, 3));
        assert!(!at(&night, 4, 3) && !at(&night, 5, 23) && !at(&night, 4, 12));
        let office = window(vec![], 10, 18);
        assert!(at(&office, 6, 10) && !at(&office, 6, 18));
        let monday_night = window(vec![Day::Sun], 22, 6);
        assert!(at(&monday_night, 7, 1), "the night from Sunday to Monday");
    }
}
