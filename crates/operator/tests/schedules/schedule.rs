//! A schedule: edits, faults and crashes with their times, all from one seed.

use std::time::Duration;

use crate::{
    fault_plan::{Fault, FaultPlan},
    random::Random,
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    pub(crate) fault_plan: FaultPlan,
    /// The numbers of the edits, and their times.
    pub(crate) edits: Vec<(u64, Duration)>,
    /// The replicas that die, and their times.
    pub(crate) crashes: Vec<(usize, Duration)>,
    /// Whether there are two replicas and a lease.
    pub(crate) elects: bool,
    pub(crate) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Edits come at any distance, and faults occur all the time.
    Overlapping,
    /// Faults occur for a while after each edit, and then there is time to settle. The end follows from the edits alone.
    Spaced,
}

/// The distance of spaced edits, and the time of faults after each. Reverts count for ten minutes.
pub(crate) const INTERVAL: Duration = Duration::from_secs(20 * 60);
pub(crate) const FAULTY: Duration = Duration::from_secs(4 * 60);

impl Schedule {
    pub(crate) fn of(seed: u64) -> Schedule {
        let mut random = Random::of(seed, "schedule", 0);
        let order = if random.permille(200) { Order::Spaced } else { Order::Overlapping };
        let elects = order == Order::Overlapping && random.permille(150);
        let mut fault_plan = FaultPlan::of(seed);
        let edits = match order {
            Order::Spaced => {
                // The operator may act on a stale read: the end would not follow from the edits alone.
                fault_plan.faults.retain(|fault| *fault != Fault::Stale);
                (0..2 + random.below(5)).map(|number| (number, INTERVAL * u32::try_from(number).unwrap())).collect()
            }
            Order::Overlapping => {
                let longest = *random.pick(if elects { &[2_000, 20_000, 40_000] } else { &[2_000, 30_000, 200_000] });
                let mut at = Duration::from_secs(5);
                (0..3 + random.below(12))
                    .map(|number| {
                        at += random.millis(1, longest);
                        (number, at)
                    })
                    .collect()
            }
        };
        let mut schedule = Schedule { seed, fault_plan, edits, crashes: Vec::new(), elects, order };
        let end = schedule.end_of_faults();
        let often = *random.pick(&[0, 0, 3, 8]);
        let crashes = (0..random.below(often + 1)).map(|_| {
            let replica = random.below(if elects { 2 } else { 1 }) as usize;
            (replica, random.millis(1, end.as_millis() as u64))
        });
        schedule.crashes = crashes.collect();
        if order == Order::Spaced {
            schedule.crashes.retain(|(_, at)| at.as_millis() % INTERVAL.as_millis() < FAULTY.as_millis());
        }
        schedule
    }

    /// The time from which on there are neither edits nor faults, except that what keeps plans from ending is set right.
    pub(crate) fn end_of_faults(&self) -> Duration {
        let last = self.edits.last().map_or(Duration::ZERO, |(_, at)| *at);
        last + if self.order == Order::Spaced { INTERVAL } else { Duration::from_secs(60) }
    }

    /// The same edits without faults and crashes.
    pub(crate) fn without_faults(&self) -> Schedule {
        Schedule { fault_plan: FaultPlan::none(), crashes: Vec::new(), ..self.clone() }
    }

    /// Every schedule with one edit, fault or crash less.
    pub(crate) fn smaller(&self) -> Vec<Schedule> {
        let mut smaller = Vec::new();
        for position in 0..self.edits.len() {
            let mut less = self.clone();
            less.edits.remove(position);
            smaller.push(less);
        }
        for position in 0..self.fault_plan.faults.len() {
            let mut less = self.clone();
            less.fault_plan.faults.remove(position);
            smaller.push(less);
        }
        for position in 0..self.crashes.len() {
            let mut less = self.clone();
            less.crashes.remove(position);
            smaller.push(less);
        }
        smaller
    }
}
