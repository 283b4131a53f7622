//! The descheduler's plugin `KubevirtMigrationAware`: a VM is not evicted for a while after a migration of it has ended. The time is
//! longer for a migration that took longer, and doubles with each migration that is remembered.

use crate::scenario::MigrationAware;

/// What the plugin knows of a VM. Times are in seconds since the beginning.
#[derive(Debug, Clone, Default)]
struct Ended {
    /// How long the last migration took.
    took: u64,
    /// When migrations ended, in order; some may be too old to count.
    at: Vec<u64>,
}

/// The memory of the plugin, by VM.
#[derive(Debug)]
pub(super) struct Memory {
    rules: MigrationAware,
    ended: Vec<Ended>,
}

impl Memory {
    pub(super) fn new(rules: MigrationAware, vms: usize) -> Self {
        Self { rules, ended: vec![Ended::default(); vms] }
    }

    /// Records that a migration of a VM has ended, whether or not it moved the VM and whoever wanted it.
    pub(super) fn ended(&mut self, vm: u32, now: u64, took: u64) {
        let oldest = self.oldest(now);
        let ended = &mut self.ended[vm as usize];
        ended.at.drain(..ended.at.partition_point(|at| *at < oldest));
        ended.at.push(now);
        ended.took = took;
    }

    /// A VM that is started again is new to the plugin.
    pub(super) fn forget(&mut self, vm: u32) {
        self.ended[vm as usize] = Ended::default();
    }

    pub(super) fn is_cooling_down(&self, vm: u32, now: u64) -> bool {
        self.ended[vm as usize].at.last().is_some_and(|last| now - last < self.cool_down(vm, now))
    }

    /// How long the VM is not evicted after its last migration, as it is known now.
    fn cool_down(&self, vm: u32, now: u64) -> u64 {
        let MigrationAware { cool_down, max_cool_down, .. } = self.rules;
        let ended = &self.ended[vm as usize];
        let oldest = self.oldest(now);
        let counted = ended.at.len() - ended.at.partition_point(|at| *at < oldest);
        let mut seconds = cool_down.0.max(ended.took);
        for _ in 1..counted {
            if seconds >= max_cool_down.0 {
                break;
            }
            seconds = seconds.saturating_mul(2);
        }
        seconds.min(max_cool_down.0)
    }

    /// The oldest end that counts: one that is as old as the window is forgotten.
    fn oldest(&self, now: u64) -> u64 {
        (now + 1).saturating_sub(self.rules.history_window.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;

    fn memory() -> Memory {
        Memory::new(MigrationAware::default(), 2)
    }

    #[test]
    fn the_cool_down_doubles_with_each_migration_up_to_the_greatest() {
        // How long each migration takes, and the cool-downs after the first, the second and so on, in minutes.
        let table = [
            (0, [15, 30, 60, 120, 240, 360, 360]),
            (10 * MINUTE, [15, 30, 60, 120, 240, 360, 360]),
            (25 * MINUTE, [25, 50, 100, 200, 360, 360, 360]),
            (30 * MINUTE, [30, 60, 120, 240, 360, 360, 360]),
            (90 * MINUTE, [90, 180, 360, 360, 360, 360, 360]),
            (7 * HOUR, [360; 7]),
        ];
        for (took, minutes) in table {
            let mut memory = memory();
            for (number, expected) in minutes.into_iter().enumerate() {
                let now = (number as u64 + 1) * 6 * HOUR;
                memory.ended(0, now, took);
                assert_eq!(memory.cool_down(0, now), expected * MINUTE, "migration {} of {took} s", number + 1);
                assert!(memory.is_cooling_down(0, now + expected * MINUTE - 1));
                assert!(!memory.is_cooling_down(0, now + expected * MINUTE), "it ends exactly then");
                assert!(!memory.is_cooling_down(1, now), "another VM did not move");
            }
        }
    }

    #[test]
    fn the_last_migration_says_how_long_one_takes() {
        let mut memory = memory();
        memory.ended(0, HOUR, 40 * MINUTE);
        memory.ended(0, 2 * HOUR, MINUTE);
        assert_eq!(memory.cool_down(0, 2 * HOUR), 30 * MINUTE);
    }

    #[test]
    fn a_migration_is_forgotten_when_it_is_as_old_as_the_window() {
        let mut memory = memory();
        for hour in [0, 1, 3] {
            memory.ended(0, hour * HOUR, 0);
        }
        let at = |memory: &Memory, now: u64| memory.cool_down(0, now) / MINUTE;
        assert_eq!(at(&memory, 48 * HOUR - 1), 60, "three count");
        assert_eq!(at(&memory, 48 * HOUR), 30, "two count");
        assert_eq!(at(&memory, 49 * HOUR), 15, "one counts");
        memory.ended(0, 50 * HOUR, 0);
        assert_eq!(memory.ended[0].at, [3 * HOUR, 50 * HOUR], "what does not count is not kept");
        assert_eq!(at(&memory, 50 * HOUR), 30);
        assert_eq!(at(&memory, 51 * HOUR), 15);
    }

    #[test]
    fn a_vm_that_starts_again_has_no_past() {
        let mut memory = memory();
        memory.ended(0, HOUR, 0);
        memory.ended(0, 2 * HOUR, 0);
        memory.forget(0);
        assert!(!memory.is_cooling_down(0, 2 * HOUR));
        memory.ended(0, 3 * HOUR, 0);
        assert_eq!(memory.cool_down(0, 3 * HOUR), 15 * MINUTE);
    }

    #[test]
    fn no_setting_overflows() {
        let rules =
            MigrationAware { max_cool_down: Span(u64::MAX), history_window: Span(u64::MAX), ..Default::default() };
        let mut memory = Memory::new(rules, 1);
        (0..100).for_each(|now| memory.ended(0, now, 1 << 40));
        assert_eq!(memory.cool_down(0, 100), u64::MAX);
    }
}
