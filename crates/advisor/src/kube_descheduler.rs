//! The releases of the Kube Descheduler Operator: how its definition shows the release, which fields exclude each other, and what
//! holds where a field is not set. Releases are named after their OpenShift release. The plan, its forecast, the simulated descheduler
//! of the lab and the documentation use these tables.

use std::fmt;

use serde_json::Value;

use crate::schema;

/// The profile for virtual machines, its former name, and the profile before it.
pub const RELIEVE_AND_MIGRATE: &str = "KubeVirtRelieveAndMigrate";
pub const DEV_RELIEVE_AND_MIGRATE: &str = "DevKubeVirtRelieveAndMigrate";
pub const LONG_LIFECYCLE: &str = "LongLifecycle";

/// A release of the operator that differs from the one before it, the oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Release {
    /// No profile for virtual machines.
    V4_17,
    /// The profile has its former name; load is measured only if a metric is chosen.
    V4_18,
    /// Load is measured by default, and evictions are limited per node.
    V4_19,
    /// The profile has its current name.
    V4_20,
    /// Rules in the definition, and memory counts as load.
    V4_21,
    /// Virtual machines that were just migrated are not moved for a while. The newest.
    V5_1,
}

impl Release {
    pub const ALL: [Release; 6] =
        [Release::V4_17, Release::V4_18, Release::V4_19, Release::V4_20, Release::V4_21, Release::V5_1];

    pub const NEWEST: Release = Release::V5_1;

    /// The release, from the schema of `spec`. A release between two of these counts as the older one, and an unknown schema as the
    /// newest.
    pub fn of(schema: Option<&Value>) -> Release {
        let Some(schema) = schema else { return Release::NEWEST };
        let has = |path: &str| schema::field(schema, path).is_some();
        let allows = |profile: &str| schema::list_allows(schema, "profiles", profile);
        let has_rules =
            || schema::field(schema, "profiles").is_some_and(|list| list.get("x-kubernetes-validations").is_some());
        if allows(RELIEVE_AND_MIGRATE) {
            match () {
                () if has("profileCustomizations.devMigrationCooldown") => Release::V5_1,
                () if has_rules() => Release::V4_21,
                () => Release::V4_20,
            }
        } else if allows(DEV_RELIEVE_AND_MIGRATE) {
            if has("evictionLimits.node") { Release::V4_19 } else { Release::V4_18 }
        } else if allows(LONG_LIFECYCLE) {
            Release::V4_17
        } else {
            Release::NEWEST
        }
    }

    /// The best profile for virtual machines of this release.
    pub fn profile(self) -> &'static str {
        match self {
            Release::V4_17 => LONG_LIFECYCLE,
            Release::V4_18 | Release::V4_19 => DEV_RELIEVE_AND_MIGRATE,
            Release::V4_20 | Release::V4_21 | Release::V5_1 => RELIEVE_AND_MIGRATE,
        }
    }

    /// The limits of a policy, from those in `spec.evictionLimits`. The profile for virtual machines has defaults: as many as
    /// KubeVirt migrates at a time.
    pub fn eviction_limits(self, total: Option<i64>, node: Option<i64>, is_kubevirt: bool) -> PolicyLimits {
        // The operator converts a negative limit to a huge one, which limits nothing.
        let given = |limit: Option<i64>| limit.map(|limit| limit as u64);
        let default = |limit: u64| (is_kubevirt && self >= Release::V4_19).then_some(limit);
        let node = node.filter(|_| self >= Release::V4_19);
        let (total, node) = (given(total).or(default(5)), given(node).or(default(2)));
        PolicyLimits { total, node, plugin: node.filter(|_| self >= Release::V5_1) }
    }

    /// Whether the profile for virtual machines has a soft tainter. `is_enabled` is devEnableSoftTainter, which 4.18 needs.
    pub fn has_soft_tainter(self, is_enabled: bool) -> bool {
        self >= Release::V4_19 || is_enabled
    }

    /// Whether the descheduler has the plugin KubevirtMigrationAware, which lets virtual machines stay for a while after a migration.
    pub fn is_migration_aware(self) -> bool {
        self >= Release::V5_1
    }

    /// Its name, as `4.21`, also in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Release::V4_17 => "4.17",
            Release::V4_18 => "4.18",
            Release::V4_19 => "4.19",
            Release::V4_20 => "4.20",
            Release::V4_21 => "4.21",
            Release::V5_1 => "5.1",
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many pods the descheduler may evict. None is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PolicyLimits {
    /// At a time: those of a cycle, and those of earlier cycles whose migration has not ended.
    pub total: Option<u64>,
    /// The same, of one node.
    pub node: Option<u64>,
    /// Of one node in a cycle, by the plugin LowNodeUtilization. Without it, the plugin evicts one pod of each node.
    pub plugin: Option<u64>,
}

/// Two customizations that exclude each other: the operator then changes nothing, and at most logs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exclusion {
    /// Below `spec.profileCustomizations`.
    pub fields: [&'static str; 2],
    /// The first release that has both.
    pub since: Release,
    /// What the operator writes to its log.
    pub message: &'static str,
}

pub const EXCLUSIONS: [Exclusion; 3] = [
    Exclusion {
        fields: ["devLowNodeUtilizationThresholds", "devDeviationThresholds"],
        since: Release::V4_18,
        message: "only one of DevLowNodeUtilizationThresholds and DevDeviationThresholds customizations can be configured \
                  simultaneously",
    },
    Exclusion {
        fields: ["thresholdPriority", "thresholdPriorityClassName"],
        since: Release::V4_17,
        message: "It is invalid to set both .spec.profileCustomizations.thresholdPriority and \
                  .spec.profileCustomizations.ThresholdPriorityClassName fields",
    },
    Exclusion {
        fields: ["namespaces.included", "namespaces.excluded"],
        since: Release::V4_17,
        message: "It is forbidden to combine both included and excluded namespaces",
    },
];

impl Exclusion {
    /// The exclusions of a release.
    pub fn of(release: Release) -> impl Iterator<Item = &'static Exclusion> {
        EXCLUSIONS.iter().filter(move |exclusion| release >= exclusion.since)
    }

    /// The field that `field` excludes.
    pub fn counterpart(&self, field: &str) -> Option<&'static str> {
        let [one, other] = self.fields;
        if field == one {
            Some(other)
        } else if field == other {
            Some(one)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_cluster::{definition, spec_schema};

    #[test]
    fn every_release_is_told_from_its_definition() {
        for release in Release::ALL {
            let definition = definition(&format!("kubedescheduler-{release}"));
            assert_eq!(Release::of(Some(spec_schema(&definition, "v1"))), release);
        }
    }

    #[test]
    fn the_documentation_lists_the_same_releases_and_exclusions() {
        let text = include_str!("profiles/load_aware/README.md");
        for release in Release::ALL.into_iter().filter(|release| *release != Release::NEWEST) {
            let row = text.lines().find(|line| line.starts_with(&format!("| {release}")));
            assert!(row.is_some_and(|row| row.contains(&format!("`{}`", release.profile()))), "{release}");
        }
        for Exclusion { fields: [one, other], since, .. } in EXCLUSIONS {
            assert!(text.contains(&format!("| `{one}` | `{other}` | {since} |")), "{one} beside {other}");
        }
    }

    #[test]
    fn what_a_schema_does_not_tell_is_taken_for_the_newest() {
        for schema in [None, Some(json!({})), Some(json!({"properties": {"profiles": {"type": "array"}}}))] {
            assert_eq!(Release::of(schema.as_ref()), Release::NEWEST, "{schema:?}");
        }
    }

    #[test]
    fn the_profile_of_a_release_is_one_that_its_definition_allows() {
        for release in Release::ALL {
            let definition = definition(&format!("kubedescheduler-{release}"));
            assert!(schema::list_allows(spec_schema(&definition, "v1"), "profiles", release.profile()), "{release}");
        }
    }

    #[test]
    fn limits_and_the_soft_tainter_are_those_of_the_release() {
        let limits = |total, node, plugin| PolicyLimits { total, node, plugin };
        let (five, two, seven, three) = (Some(5), Some(2), Some(7), Some(3));
        // By release: without limits, with both, and whether nodes get soft taints without being asked for.
        let table = [
            (Release::V4_17, limits(None, None, None), limits(seven, None, None), false),
            (Release::V4_18, limits(None, None, None), limits(seven, None, None), false),
            (Release::V4_19, limits(five, two, None), limits(seven, three, None), true),
            (Release::V4_20, limits(five, two, None), limits(seven, three, None), true),
            (Release::V4_21, limits(five, two, None), limits(seven, three, None), true),
            (Release::V5_1, limits(five, two, two), limits(seven, three, three), true),
        ];
        for (release, unset, set, taints) in table {
            assert_eq!(release.eviction_limits(None, None, true), unset, "{release}");
            assert_eq!(release.eviction_limits(Some(7), Some(3), true), set, "{release}");
            assert_eq!(release.has_soft_tainter(false), taints, "{release}");
            assert!(release.has_soft_tainter(true), "{release}");
        }
        assert_eq!(Release::V5_1.eviction_limits(None, None, false), limits(None, None, None), "another profile");
        assert_eq!(Release::V5_1.eviction_limits(Some(-1), None, true).total, Some(u64::MAX));
    }

    /// As recorded: 4.18, 4.20, 4.21 and the newest refuse two thresholds; 4.19 lies between two that do.
    #[test]
    fn a_field_has_a_rival_where_its_release_knows_both() {
        let rivals = |release, field| Exclusion::of(release).find_map(|exclusion| exclusion.counterpart(field));
        assert_eq!(rivals(Release::V4_17, "devDeviationThresholds"), None);
        for release in &Release::ALL[1..] {
            assert_eq!(
                rivals(*release, "devDeviationThresholds"),
                Some("devLowNodeUtilizationThresholds"),
                "{release}"
            );
            assert_eq!(
                rivals(*release, "devLowNodeUtilizationThresholds"),
                Some("devDeviationThresholds"),
                "{release}"
            );
            assert_eq!(rivals(*release, "devEnableSoftTainter"), None, "{release}");
        }
        for release in Release::ALL {
            assert_eq!(rivals(release, "thresholdPriority"), Some("thresholdPriorityClassName"), "{release}");
            let definition = definition(&format!("kubedescheduler-{release}"));
            for field in Exclusion::of(release).flat_map(|exclusion| exclusion.fields) {
                let path = format!("profileCustomizations.{field}");
                assert!(schema::field(spec_schema(&definition, "v1"), &path).is_some(), "{release} has no {field}");
            }
        }
    }
}
