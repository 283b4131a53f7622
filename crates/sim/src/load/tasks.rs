//! Tasks: load that begins at random times and lasts for a while.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    model::ClusterModel,
    rng::{Purpose, Rng},
    scenario::{Condition, Window},
};

const DAY: u64 = 86_400;
/// More tasks than this do not run at a time.
const MOST_TASKS: usize = 1_000_000;

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

/// The tasks that run now, by VM.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    running: BTreeMap<u32, Vec<Running>>,
    /// The steps at which tasks end, with their VMs.
    ends: BTreeSet<(u64, u32)>,
    count: usize,
}

#[derive(Debug)]
struct Running {
    end: u64,
    load: [f64; 2],
}

impl Tasks {
    /// The sum of the loads of a VM's tasks, in the order of their start.
    pub(crate) fn load(&self, vm: u32) -> [f64; 2] {
        let mut load = [0.0; 2];
        for task in self.running.get(&vm).into_iter().flatten() {
            load = [load[0] + task.load[0], load[1] + task.load[1]];
        }
        load
    }

    /// Ends and starts tasks, and adds their VMs to `changed`. `holds` says whether the condition of a task does, and `pick` chooses
    /// the VM for a task, which is given by its number in the model.
    pub(crate) fn step(
        &mut self,
        model: &ClusterModel,
        seed: u64,
        step: u64,
        changed: &mut Vec<u32>,
        holds: impl Fn(&Condition) -> bool,
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
        for (number, task) in model.tasks.iter().enumerate() {
            let open = task.window.as_ref().is_none_or(|window| window.is_open(model.clock(step)));
            if !step.is_multiple_of(task.every) || !open || !task.when.as_ref().is_none_or(&holds) {
                continue;
            }
            let mut rng = Rng::keyed(seed, Purpose::Task, number as u64, step);
            let count = task.count.draw(&mut rng) as usize;
            for _ in 0..count.min(MOST_TASKS - self.count.min(MOST_TASKS)) {
                let load = [task.cpu.draw(&mut rng), task.memory.draw(&mut rng)];
                let steps = (task.seconds.draw(&mut rng) / model.step as f64) as u64;
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
