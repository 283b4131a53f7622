//! A schedule: what happens when, all from one number.

use std::time::Duration;

use crate::{
    dice::Dice,
    fate::{Climate, Trouble},
};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    pub(crate) seed: u64,
    pub(crate) climate: Climate,
    /// Numbers of the deeds of others, and when they are done.
    pub(crate) deeds: Vec<(u64, Duration)>,
    /// Which replica dies when, whatever it does at the time.
    pub(crate) crashes: Vec<(usize, Duration)>,
    /// Two replicas and a lease.
    pub(crate) elects: bool,
    pub(crate) order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Deeds follow each other at any distance, and trouble goes on all the time.
    Storm,
    /// After each deed there is trouble for a while, and then time to come to rest. The end follows from the deeds alone.
    Spaced,
}

/// How far deeds are apart, and how long there is trouble after each. Reverts count for ten minutes.
pub(crate) const SPACE: Duration = Duration::from_secs(20 * 60);
pub(crate) const TROUBLED: Duration = Duration::from_secs(4 * 60);

impl Schedule {
    pub(crate) fn of(seed: u64) -> Schedule {
        let mut dice = Dice::of(seed, "schedule", 0);
        let order = if dice.permille(200) { Order::Spaced } else { Order::Storm };
        let elects = order == Order::Storm && dice.permille(150);
        let mut climate = Climate::of(seed);
        let deeds = match order {
            Order::Spaced => {
                // What is old by chance may be acted on by chance.
                climate.troubles.retain(|trouble| *trouble != Trouble::Stale);
                (0..2 + dice.below(5)).map(|number| (number, SPACE * u32::try_from(number).unwrap())).collect()
            }
            Order::Storm => {
                let longest = *dice.pick(if elects { &[2_000, 20_000, 40_000] } else { &[2_000, 30_000, 200_000] });
                let mut at = Duration::from_secs(5);
                (0..3 + dice.below(12))
                    .map(|number| {
                        at += dice.millis(1, longest);
                        (number, at)
                    })
                    .collect()
            }
        };
        let mut schedule = Schedule { seed, climate, deeds, crashes: Vec::new(), elects, order };
        let end = schedule.storm();
        let often = *dice.pick(&[0, 0, 3, 8]);
        let crashes = (0..dice.below(often + 1)).map(|_| {
            let replica = dice.below(if elects { 2 } else { 1 }) as usize;
            (replica, dice.millis(1, end.as_millis() as u64))
        });
        schedule.crashes = crashes.collect();
        if order == Order::Spaced {
            schedule.crashes.retain(|(_, at)| at.as_millis() % SPACE.as_millis() < TROUBLED.as_millis());
        }
        schedule
    }

    /// When nobody does anything any more, but set right what keeps plans from ending. That is a deed, too, and has to be as far
    /// from the last one as others are.
    pub(crate) fn storm(&self) -> Duration {
        let last = self.deeds.last().map_or(Duration::ZERO, |(_, at)| *at);
        last + if self.order == Order::Spaced { SPACE } else { Duration::from_secs(60) }
    }

    /// The same deeds without any trouble.
    pub(crate) fn undisturbed(&self) -> Schedule {
        Schedule { climate: Climate::fair(), crashes: Vec::new(), ..self.clone() }
    }

    /// Every schedule that lacks one thing of this one.
    pub(crate) fn smaller(&self) -> Vec<Schedule> {
        let mut smaller = Vec::new();
        for position in 0..self.deeds.len() {
            let mut less = self.clone();
            less.deeds.remove(position);
            smaller.push(less);
        }
        for position in 0..self.climate.troubles.len() {
            let mut less = self.clone();
            less.climate.troubles.remove(position);
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
