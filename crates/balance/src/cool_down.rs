//! The cool-down of the descheduler's plugin `KubevirtMigrationAware`: how long a VM is not evicted after a migration of it has ended.
//! The time is longer for a migration that took longer, and doubles with each migration that is remembered. All times are in one unit,
//! whichever the caller uses: the simulator counts seconds, and the lab milliseconds of its own clock.

/// The settings of the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoolDown {
    /// The least cool-down; the plugin's `migrationCooldown`.
    pub least: u64,
    /// The greatest cool-down; the plugin's `maxMigrationCooldown`.
    pub greatest: u64,
    /// How long a migration is remembered; the plugin's `migrationHistoryWindow`.
    pub window: u64,
}

impl CoolDown {
    /// The defaults of the plugin, in seconds: 15 minutes, 6 hours and 48 hours.
    pub const SECONDS: CoolDown = CoolDown { least: 15 * 60, greatest: 6 * 3600, window: 48 * 3600 };

    /// How long a VM is not evicted after its last migration, as it is known now. `took` is how long that migration took, and `ended`
    /// when migrations ended, in order.
    pub fn length(&self, took: u64, ended: &[u64], now: u64) -> u64 {
        let oldest = self.oldest(now);
        let counted = ended.len() - ended.partition_point(|at| *at < oldest);
        let mut length = self.least.max(took);
        for _ in 1..counted {
            if length >= self.greatest {
                break;
            }
            length = length.saturating_mul(2);
        }
        length.min(self.greatest)
    }

    /// When the VM may be evicted again. None if it may be now.
    pub fn end(&self, took: u64, ended: &[u64], now: u64) -> Option<u64> {
        let end = ended.last()?.saturating_add(self.length(took, ended, now));
        (now < end).then_some(end)
    }

    /// The oldest end of a migration that counts: one that is as old as the window is forgotten.
    pub fn oldest(&self, now: u64) -> u64 {
        now.saturating_add(1).saturating_sub(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;
    const PLUGIN: CoolDown = CoolDown::SECONDS;

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
            let mut ended = Vec::new();
            for (number, minutes) in minutes.into_iter().enumerate() {
                let now = (number as u64 + 1) * 6 * HOUR;
                ended.push(now);
                let end = now + minutes * MINUTE;
                assert_eq!(PLUGIN.length(took, &ended, now), minutes * MINUTE, "migration {} of {took} s", number + 1);
                assert_eq!(PLUGIN.end(took, &ended, end - 1), Some(end));
                assert_eq!(PLUGIN.end(took, &ended, end), None, "it ends exactly then");
            }
        }
    }

    #[test]
    fn a_migration_is_forgotten_when_it_is_as_old_as_the_window() {
        let ended = [0, HOUR, 3 * HOUR];
        let minutes = |now| PLUGIN.length(0, &ended, now) / MINUTE;
        assert_eq!([48 * HOUR - 1, 48 * HOUR, 49 * HOUR].map(minutes), [60, 30, 15], "three, two and one count");
    }

    #[test]
    fn without_a_migration_there_is_no_cool_down() {
        assert_eq!(PLUGIN.end(HOUR, &[], 0), None);
    }

    /// The clocks of the one who records the end and of the one who asks differ.
    #[test]
    fn an_end_in_the_future_counts() {
        assert_eq!(PLUGIN.end(0, &[HOUR], HOUR - 5), Some(HOUR + 15 * MINUTE));
    }

    #[test]
    fn no_setting_overflows() {
        let rules = CoolDown { greatest: u64::MAX, window: u64::MAX, ..PLUGIN };
        let ended: Vec<u64> = (0..100).collect();
        assert_eq!(rules.length(1 << 40, &ended, 100), u64::MAX);
        assert_eq!(rules.end(1 << 40, &ended, u64::MAX - 1), Some(u64::MAX));
    }
}
