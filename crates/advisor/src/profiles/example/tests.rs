//! The example profile, which is handled like the others.

use api::virt_platform_config::Severity;
use serde_json::{Value, json};

use super::Example;
use crate::{
    Profile, Verb, drift,
    profile::missing,
    test_cluster::{TestCluster, planner},
};

const NAME: &str = "example-profile";

#[test]
fn it_requires_nothing_and_is_not_advertised() {
    let cluster = TestCluster::empty();
    let planner = planner(NAME, Value::Null);
    let (rounds, facts) = cluster.rounds(planner.as_ref());
    assert_eq!(rounds, [["ConfigMap openshift-cnv/example-config"]]);
    assert_eq!(missing(&planner.requirements(&facts), &facts), None);
    let about = Example.about();
    assert_eq!((about.name, about.category, about.impact, about.advertised), (NAME, "example", Severity::Low, false));
}

/// D13 (server-side diffs): no diff of its own making.
#[test]
fn its_plan_is_one_config_map_and_previewed_like_any_other() {
    let mut cluster = TestCluster::empty();
    let plan = cluster.plan(NAME, json!({}));
    let [planned] = &plan.items[..] else { panic!("{plan:?}") };
    assert_eq!(planned.item.name, "configure-example-component");
    assert_eq!(planned.item.message.as_deref(), Some("ConfigMap 'example-config' will be configured"));
    assert_eq!(planned.item.managed_fields, ["data"]);
    assert_eq!((planned.verb, plan.severity), (Verb::Created, Severity::Low));
    let expected = "\
--- /dev/null
+++ example-config (ConfigMap)
@@ -0,0 +1,7 @@
+apiVersion: v1
+data:
+  example-key: example-value
+kind: ConfigMap
+metadata:
+  name: example-config
+  namespace: openshift-cnv
";
    assert_eq!(planned.item.diff.as_deref(), Some(expected));
    assert_eq!(
        drift::leaves(&planned.item, None).iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["data.example-key"]
    );

    cluster.apply(NAME, json!({}));
    assert!(!cluster.plan(NAME, json!({})).has_changes());
}

#[test]
fn options_of_other_profiles_mean_nothing_to_it() {
    let with = TestCluster::empty().draft(NAME, json!({"loadAware": {"deschedulingIntervalSeconds": 120}}));
    assert_eq!(with, TestCluster::empty().draft(NAME, Value::Null));
}
