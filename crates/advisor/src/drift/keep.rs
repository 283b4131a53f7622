//! How to keep what somebody changed: by an option with which the profile wants it so.

use api::virt_platform_config::{Item, Options};
use serde_json::{Value, json};

use crate::{Profile, fields::Path};

/// The option, as a path below `spec.options`, and its value. The empty path stands for the whole object. None if there is no such
/// option, or if the value is not valid beside the other options.
pub fn option_to_keep(
    profile: &dyn Profile,
    options: Option<&Options>,
    item: &Item,
    field: &Path,
    now: Option<&Value>,
) -> Option<(&'static str, Value)> {
    let (option, value) = profile.option_for(&item.target_ref, field, now)?;
    let mut edited = options.map_or_else(|| json!({}), |options| json!(options));
    Path::dotted(option).set(&mut edited, value.clone());
    let edited: Options = serde_json::from_value(edited).ok()?;
    profile.resolve(Some(&edited)).ok()?;
    Some((option, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        drift::{self, changed_fields},
        profiles,
        test_cluster::{TestCluster, sample},
    };

    fn cluster() -> TestCluster {
        TestCluster::with_descheduler("5.1").with(sample("hyperconverged"))
    }

    fn kept(
        profile: &str,
        options: &Value,
        item: &Item,
        path: &str,
        now: Option<&Value>,
    ) -> Option<(&'static str, Value)> {
        let options: Option<Options> = serde_json::from_value(options.clone()).unwrap();
        let path = if path.is_empty() { Path::default() } else { Path::dotted(path) };
        option_to_keep(profiles::find(profile).unwrap(), options.as_ref(), item, &path, now)
    }

    /// The item of a profile that changes this kind.
    fn item(cluster: &TestCluster, profile: &str, kind: &str) -> Item {
        let plan = cluster.plan(profile, Value::Null);
        plan.items.into_iter().find(|planned| planned.item.target_ref.kind == kind).unwrap().item
    }

    #[test]
    fn with_the_option_the_plan_wants_what_is_there() {
        let limits = "spec.evictionLimits";
        for (profile, kind, path, value) in [
            ("load-aware-rebalancing", "KubeDescheduler", "spec.deschedulingIntervalSeconds", json!(180)),
            ("load-aware-rebalancing", "KubeDescheduler", "spec.mode", json!("Predictive")),
            (
                "load-aware-rebalancing",
                "KubeDescheduler",
                "spec.profileCustomizations.devDeviationThresholds",
                json!("High"),
            ),
            ("load-aware-rebalancing", "KubeDescheduler", &format!("{limits}.total"), json!(7)),
            ("load-aware-rebalancing", "KubeDescheduler", &format!("{limits}.node"), json!(3)),
            (
                "virt-higher-density",
                "HyperConverged",
                "spec.higherWorkloadDensity.memoryOvercommitPercentage",
                json!(175),
            ),
            (
                "virt-higher-density",
                "HyperConverged",
                "spec.ksmConfiguration.nodeLabelSelector",
                json!({"matchLabels": {"a": "b"}}),
            ),
        ] {
            let mut cluster = cluster();
            let mut item = item(&cluster, profile, kind);
            cluster.apply(profile, Value::Null);
            let path_names: Vec<&str> = path.split('.').collect();
            let live = |cluster: &TestCluster| {
                let target = &item.target_ref;
                let facts = cluster.plan(profile, Value::Null).facts;
                facts.target(target).flatten().cloned()
            };
            let applied = Some(drift::fingerprint(&item, live(&cluster).as_ref()));
            let kind = cluster.plan(profile, Value::Null).items.into_iter().find(|it| it.item.name == item.name);
            let kind = kind.unwrap().target.kind;
            cluster.edit(kind, &item.target_ref.name, &path_names, Some(value.clone()));
            let now = live(&cluster);
            item.applied_fingerprint = applied;
            let changed = changed_fields(&item, now.as_ref()).unwrap();
            assert!(!changed.is_empty(), "{path} has drifted");
            let (option, wanted) = kept(profile, &Value::Null, &item, path, Some(&value)).unwrap();
            let mut options = json!({});
            Path::dotted(option).set(&mut options, wanted);
            let plan = cluster.plan(profile, options);
            let planned = plan.items.iter().find(|planned| planned.item.name == item.name).unwrap();
            let desired = json!(planned.item.desired_state);
            assert_eq!(Path::dotted(path).find(&desired), Some(&value), "{option}: {desired:#}");
        }
    }

    #[test]
    fn without_a_machine_config_its_option_is_off() {
        for (profile, expected) in [
            ("load-aware-rebalancing", "loadAware.enablePSIMetrics"),
            ("virt-higher-density", "virtHigherDensity.enableSwap"),
        ] {
            let item = item(&cluster(), profile, "MachineConfig");
            assert_eq!(kept(profile, &Value::Null, &item, "", None), Some((expected, json!(false))));
            assert_eq!(kept(profile, &Value::Null, &item, "spec.kernelArguments", Some(&json!([]))), None);
        }
    }

    #[test]
    fn a_value_that_no_option_takes_cannot_be_kept_by_one() {
        let item = item(&cluster(), "load-aware-rebalancing", "KubeDescheduler");
        let kept = |path, value: Value| kept("load-aware-rebalancing", &Value::Null, &item, path, Some(&value));
        assert_eq!(kept("spec.deschedulingIntervalSeconds", json!(5)), None, "out of bounds");
        assert_eq!(kept("spec.mode", json!("Sometimes")), None, "no such word");
        assert_eq!(kept("spec.profiles", json!(["LongLifecycle"])), None, "not an option");
        let ratio = "spec.higherWorkloadDensity.memoryOvercommitPercentage";
        let density = self::item(&cluster(), "virt-higher-density", "HyperConverged");
        let no_swap = json!({"virtHigherDensity": {"enableSwap": false}});
        assert_eq!(self::kept("virt-higher-density", &no_swap, &density, ratio, Some(&json!(150))), None, "needs swap");
    }
}
