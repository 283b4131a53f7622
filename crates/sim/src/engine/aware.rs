//! The descheduler's plugin `KubevirtMigrationAware`: a VM is not evicted for a while after a migration of it has ended. This is its
//! memory; [`CoolDown`] says how long.

use balance::CoolDown;

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
    rules: CoolDown,
    ended: Vec<Ended>,
}

impl Memory {
    pub(super) fn new(rules: MigrationAware, vms: usize) -> Self {
        Self { rules: rules.into(), ended: vec![Ended::default(); vms] }
    }

    /// Records that a migration of a VM has ended, whether or not it moved the VM and whoever wanted it.
    pub(super) fn ended(&mut self, vm: u32, now: u64, took: u64) {
        let oldest = self.rules.oldest(now);
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
        let Ended { took, at } = &self.ended[vm as usize];
        self.rules.end(*took, at, now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;

    fn memory() -> Memory {
        Memory::new(MigrationAware::default(), 2)
    }

    /// The cool-down of a VM, as it is known now.
    fn minutes(memory: &Memory, vm: usize, now: u64) -> u64 {
        memory.rules.length(memory.ended[vm].took, &memory.ended[vm].at, now) / MINUTE
    }

    #[test]
    fn a_vm_that_moved_cools_down_and_others_do_not() {
        let mut memory = memory();
        memory.ended(0, HOUR, 0);
        assert!(memory.is_cooling_down(0, HOUR + 15 * MINUTE - 1));
        assert!(!memory.is_cooling_down(0, HOUR + 15 * MINUTE));
        assert!(!memory.is_cooling_down(1, HOUR));
    }

    #[test]
    fn the_last_migration_says_how_long_one_takes() {
        let mut memory = memory();
        memory.ended(0, HOUR, 40 * MINUTE);
        memory.ended(0, 2 * HOUR, MINUTE);
        assert_eq!(minutes(&memory, 0, 2 * HOUR), 30);
    }

    #[test]
    fn what_does_not_count_is_not_kept() {
        let mut memory = memory();
        for hour in [0, 1, 3] {
            memory.ended(0, hour * HOUR, 0);
        }
        assert_eq!(minutes(&memory, 0, 48 * HOUR), 30, "two count");
        memory.ended(0, 50 * HOUR, 0);
        assert_eq!(memory.ended[0].at, [3 * HOUR, 50 * HOUR]);
        assert_eq!(minutes(&memory, 0, 50 * HOUR), 30);
        assert_eq!(minutes(&memory, 0, 51 * HOUR), 15);
    }

    #[test]
    fn a_vm_that_starts_again_has_no_past() {
        let mut memory = memory();
        memory.ended(0, HOUR, 0);
        memory.ended(0, 2 * HOUR, 0);
        memory.forget(0);
        assert!(!memory.is_cooling_down(0, 2 * HOUR));
        memory.ended(0, 3 * HOUR, 0);
        assert_eq!(minutes(&memory, 0, 3 * HOUR), 15);
    }
}
