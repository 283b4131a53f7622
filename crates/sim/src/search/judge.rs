//! Whether a run came near the optimum: a pure function of what the run did and of what was possible.

use serde::Serialize;

use crate::{history::Cause, history::Move, optimum::Optimum};

/// The end may have this many times the spread of the optimum.
pub const MOST_SPREAD: f64 = 1.1;
/// A run may have this many times the migrations of the optimum.
pub const MOST_MIGRATIONS: f64 = 1.3;
/// The last part of the time, in which a run that stops evicts nothing.
pub const LAST_PART: f64 = 0.25;
/// Sums of another order differ by rounding errors.
const ROUNDING: f64 = 1e-9;

/// What the optimum needs: the fewest migrations after which the cluster is balanced, and the least spread with that number. Where
/// balance is impossible, the least spread of all and the migrations for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Yardstick {
    pub migrations: u64,
    pub spread: f64,
}

impl Yardstick {
    pub fn of(optimum: &Optimum) -> Self {
        let migrations = optimum.balanced.unwrap_or_else(|| optimum.migrations_for(optimum.spread(optimum.last())));
        Self { migrations, spread: optimum.spread(migrations) }
    }

    /// The most migrations that are near the optimum.
    pub fn most_migrations(&self) -> u64 {
        (self.migrations as f64 * MOST_MIGRATIONS + ROUNDING) as u64
    }
}

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    pub migrations: u64,
    /// At the end.
    pub spread: f64,
    /// Migrations that brought a VM to a node that it had left before.
    pub back: u64,
    /// The share of the time after which nothing was evicted any more; 1 if something is still under way.
    pub busy_until: f64,
}

/// The four demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Judgement {
    pub even: bool,
    pub few_migrations: bool,
    pub none_back: bool,
    pub stops: bool,
}

impl Judgement {
    /// Whether all demands are met.
    pub fn is_near(&self) -> bool {
        self.even && self.few_migrations && self.none_back && self.stops
    }
}

pub fn judge(done: &Done, yardstick: &Yardstick) -> Judgement {
    Judgement {
        even: done.spread <= yardstick.spread * MOST_SPREAD + ROUNDING,
        few_migrations: done.migrations <= yardstick.most_migrations(),
        none_back: done.back == 0,
        stops: done.busy_until <= 1.0 - LAST_PART,
    }
}

/// How many evictions brought a VM to a node that it had left before.
pub fn moved_back(moves: &[Move]) -> u64 {
    let is_back = |(at, moved): &(usize, &Move)| {
        let left = |earlier: &Move| earlier.vm == moved.vm && earlier.from == moved.to;
        moved.cause == Cause::Eviction && moves[..*at].iter().any(left)
    };
    moves.iter().enumerate().filter(is_back).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const YARDSTICK: Yardstick = Yardstick { migrations: 10, spread: 0.02 };
    const DONE: Done = Done { migrations: 13, spread: 0.022, back: 0, busy_until: 0.75 };

    #[test]
    fn each_demand_holds_up_to_its_bound() {
        assert!(judge(&DONE, &YARDSTICK).is_near());
        let met = |done: Done| {
            let Judgement { even, few_migrations, none_back, stops } = judge(&done, &YARDSTICK);
            [even, few_migrations, none_back, stops]
        };
        assert_eq!(met(Done { spread: 0.0221, ..DONE }), [false, true, true, true]);
        assert_eq!(met(Done { migrations: 14, ..DONE }), [true, false, true, true]);
        assert_eq!(met(Done { back: 1, ..DONE }), [true, true, false, true]);
        assert_eq!(met(Done { busy_until: 0.76, ..DONE }), [true, true, true, false]);
    }

    #[test]
    fn few_migrations_leave_no_room_for_more() {
        let most = |migrations: u64| Yardstick { migrations, ..YARDSTICK }.most_migrations();
        assert_eq!([0, 1, 2, 3, 4, 7, 10, 20].map(most), [0, 1, 2, 3, 5, 9, 13, 26]);
    }

    #[test]
    fn a_vm_is_back_where_it_ever_was_before() {
        let moved = |vm: u32, from: u32, to: u32| Move { step: 0, vm, from, to, cause: Cause::Eviction };
        assert_eq!(moved_back(&[moved(1, 0, 1), moved(2, 1, 0), moved(1, 1, 2)]), 0);
        assert_eq!(moved_back(&[moved(1, 0, 1), moved(1, 1, 2), moved(1, 2, 0)]), 1);
        assert_eq!(moved_back(&[moved(1, 0, 1), moved(1, 1, 0), moved(1, 0, 1)]), 2);
    }
}
