//! The plugin `KubevirtMigrationAware`, as the operator would configure it. The upstream descheduler does not have it, so no policy
//! names it. The eviction webhook of the lab plays it, and asks here with which settings.

use std::time::Duration;

use advisor::kube_descheduler::Release;
use balance::CoolDown;
use jiff::SignedDuration;

use super::Spec;

impl Spec {
    /// Whether the operator of a release puts the plugin into the policy: since 5.1, in the profile for virtual machines.
    pub fn has_migration_aware(&self, release: Release) -> bool {
        release >= Release::V5_1 && self.kubevirt_profile().is_some()
    }

    /// The settings of the plugin in milliseconds, divided by the time scale. What is missing or no length of time has its default.
    pub fn cool_down(&self, time_scale: f64) -> CoolDown {
        let customizations = &self.profile_customizations;
        let scaled = |text: &Option<String>, default: u64| {
            let given = text.as_deref().and_then(|text| text.parse::<SignedDuration>().ok());
            let given = given.and_then(|given| Duration::try_from(given).ok());
            let time = given.unwrap_or(Duration::from_secs(default));
            (time.as_secs_f64() * 1000.0 / time_scale.max(f64::MIN_POSITIVE)) as u64
        };
        CoolDown {
            least: scaled(&customizations.dev_migration_cooldown, CoolDown::SECONDS.least),
            greatest: scaled(&customizations.dev_max_migration_cooldown, CoolDown::SECONDS.greatest),
            window: scaled(&customizations.dev_migration_history_window, CoolDown::SECONDS.window),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(profile: &str, customizations: Value) -> Spec {
        Spec::read(&json!({"profiles": [profile], "profileCustomizations": customizations})).unwrap()
    }

    #[test]
    fn only_the_newest_release_has_the_plugin_and_only_in_the_profile_for_vms() {
        let of = |profile| Release::ALL.map(|release| spec(profile, json!({})).has_migration_aware(release));
        assert_eq!(of("KubeVirtRelieveAndMigrate"), [false, false, false, false, false, true]);
        assert_eq!(of("DevKubeVirtRelieveAndMigrate"), [false, false, false, false, false, true]);
        assert_eq!(of("LongLifecycle"), [false; 6]);
    }

    #[test]
    fn times_are_those_of_the_object_or_the_plugins_divided_by_the_time_scale() {
        let cool_down = |customizations, scale| {
            let CoolDown { least, greatest, window } = spec("LongLifecycle", customizations).cool_down(scale);
            [least, greatest, window]
        };
        assert_eq!(cool_down(json!({}), 1.0), [900_000, 21_600_000, 172_800_000]);
        assert_eq!(cool_down(json!({}), 20.0), [45_000, 1_080_000, 8_640_000]);
        let own = json!({"devMigrationCooldown": "1m30s", "devMaxMigrationCooldown": "1h",
            "devMigrationHistoryWindow": "12h"});
        assert_eq!(cool_down(own, 10.0), [9000, 360_000, 4_320_000]);
        let wrong = json!({"devMigrationCooldown": "soon", "devMaxMigrationCooldown": "-1h"});
        assert_eq!(cool_down(wrong, 1.0), [900_000, 21_600_000, 172_800_000]);
    }
}
