//! The policy of a KubeDescheduler, release by release.

use advisor::{
    Answer, Change, Facts, ObjectRef, Query, kind::KUBE_DESCHEDULER, kube_descheduler::EXCLUSIONS, profiles,
};

use super::*;

/// The spec that the profile `load-aware-rebalancing` writes on a new cluster with this release.
fn plan(release: Release) -> Value {
    let file = format!("../../config/crd/third-party/kubedescheduler-{release}.yaml");
    let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let definition = Answer::Object { version: "v1", object: serde_saphyr::from_str(&text).unwrap() };
    let facts = Facts::of([(Query::Object(ObjectRef::definition(&KUBE_DESCHEDULER)), definition)]);
    let options = serde_json::from_value(json!({"loadAware": {"enablePSIMetrics": false}})).unwrap();
    let planner = profiles::find("load-aware-rebalancing").unwrap().resolve(Some(&options)).unwrap();
    let [intent] = &planner.plan(&facts).intents[..] else { panic!("more than the KubeDescheduler is planned") };
    let Change::Apply { fields, .. } = &intent.change else { panic!("{intent:?}") };
    fields["spec"].clone()
}

fn bare(release: Release) -> Value {
    json!({"profiles": [release.profile()], "deschedulingIntervalSeconds": 3600})
}

fn of(spec: &Value, release: Release) -> Result<Policy, PolicyError> {
    Policy::of(&Spec::read(spec).unwrap(), &PolicyContext { release, ..context() })
}

fn document_of(spec: &Value, release: Release) -> Value {
    serde_saphyr::from_str(&of(spec, release).unwrap().text).unwrap()
}

/// A spec for virtual machines with these customizations.
fn customized(release: Release, customizations: &Value) -> Value {
    let mut spec = bare(release);
    spec["profileCustomizations"] = customizations.clone();
    spec
}

#[test]
fn every_release_makes_its_own_policy_of_the_plan_and_of_a_bare_spec() {
    let golden: Value = serde_saphyr::from_str(include_str!("releases.yaml")).unwrap();
    for release in Release::ALL {
        for (name, spec) in [("plan", plan(release)), ("bare", bare(release))] {
            let is_it = |entry: &&Value| {
                entry["release"] == release.as_str() && entry["specs"].as_array().unwrap().iter().any(|it| it == name)
            };
            let expected = golden.as_array().unwrap().iter().find(is_it);
            let expected = expected.unwrap_or_else(|| panic!("no policy of {release} for {name}"));
            let found = document_of(&spec, release);
            assert_eq!(found, expected["policy"], "{release}, {name}:\n{}", object_text::yaml(Some(&found)));
        }
    }
}

#[test]
fn a_metric_is_known_from_its_release_on() {
    let knows = |release, metric: &str| {
        let spec = customized(release, &json!({"devActualUtilizationProfile": metric}));
        match of(&spec, release) {
            Ok(policy) => policy.text.contains("metricsUtilization") && policy.text.contains("metricsProviders"),
            Err(refusal) => {
                assert_eq!(refusal.to_string(), format!("unknown prometheus profile: {metric}"));
                false
            }
        }
    };
    for release in &Release::ALL[1..] {
        assert!(knows(*release, "PrometheusCPUCombined"), "{release}");
        assert!(knows(*release, "query:up"), "{release}");
        let is_new = *release >= Release::V4_21;
        assert_eq!(knows(*release, "PrometheusCPUMemoryCombinedProfile"), is_new, "{release}");
    }
}

#[test]
fn the_former_name_stays_in_the_policy_until_there_is_another() {
    for release in &Release::ALL[1..] {
        let mut spec = bare(*release);
        spec["profiles"] = json!(["DevKubeVirtRelieveAndMigrate"]);
        assert_eq!(document_of(&spec, *release)["profiles"][0]["name"], release.profile(), "{release}");
        spec["profiles"] = json!(["KubeVirtRelieveAndMigrate"]);
        assert_eq!(of(&spec, *release).is_ok(), *release >= Release::V4_20, "{release}");
    }
}

/// Of the record: the newest passes the limit on to the plugin of the fallback, too.
#[test]
fn a_limit_per_node_is_known_since_4_19_and_passed_on_by_the_newest() {
    for release in Release::ALL {
        let spec = json!({
            "profiles": ["LongLifecycle"], "deschedulingIntervalSeconds": 60, "evictionLimits": {"total": 7, "node": 3},
        });
        let document = document_of(&spec, release);
        assert_eq!(document["maxNoOfPodsToEvictTotal"], 7, "{release}");
        let per_node = (release >= Release::V4_19).then(|| json!(3));
        assert_eq!(document.get("maxNoOfPodsToEvictPerNode"), per_node.as_ref(), "{release}");
        let plugin = &document["profiles"][0]["pluginConfig"][1]["args"];
        let limits = (release == Release::V5_1).then(|| json!({"node": 3}));
        assert_eq!(plugin.get("evictionLimits"), limits.as_ref(), "{release}");
    }
}

#[test]
fn deviations_are_the_default_since_4_19() {
    for release in &Release::ALL[1..] {
        let arguments = |low: &Value| {
            let spec = customized(*release, &json!({"devLowNodeUtilizationThresholds": low}));
            document_of(&spec, *release)["profiles"][0]["pluginConfig"][0]["args"].clone()
        };
        for (low, is_deviation) in [(json!(null), true), (json!(""), true), (json!("Medium"), false)] {
            let expected = (is_deviation && *release >= Release::V4_19).then_some(&Value::Bool(true));
            assert_eq!(arguments(&low).get("useDeviationThresholds"), expected, "{release}: {low}");
        }
    }
}

#[test]
fn the_soft_tainter_comes_with_the_profile_since_4_19_and_when_asked_for_before() {
    for release in Release::ALL {
        let wants = |spec: &Value| Spec::read(spec).unwrap().wants_soft_tainter(release);
        assert_eq!(wants(&bare(release)), release >= Release::V4_19, "{release}");
        let asked = customized(release, &json!({"devEnableSoftTainter": true}));
        assert_eq!(wants(&asked), release >= Release::V4_18, "{release}");
    }
}

/// The plan and the stand-in use the same table.
#[test]
fn customizations_that_exclude_one_another_are_an_error_and_the_running_descheduler_stays() {
    let cases = [
        json!({"devLowNodeUtilizationThresholds": "Low", "devDeviationThresholds": "Low"}),
        json!({"thresholdPriority": 1, "thresholdPriorityClassName": "x"}),
        json!({"namespaces": {"included": ["a"], "excluded": ["b"]}}),
    ];
    for release in Release::ALL {
        for (exclusion, customizations) in EXCLUSIONS.iter().zip(&cases) {
            for field in exclusion.fields {
                let pointer = format!("/{}", field.replace('.', "/"));
                assert!(customizations.pointer(&pointer).is_some(), "no {field} in {customizations}");
            }
            let refused = of(&customized(release, customizations), release).err();
            let expected = (release >= exclusion.since).then_some(PolicyError::Excluded(exclusion));
            assert_eq!(refused, expected, "{release}: {customizations}");
            assert!(refused.is_none_or(|error| !error.scales_down()), "{release}: {customizations}");
        }
        // Only the profile of virtual machines looks at deviations.
        let mut spec = customized(release, &cases[0]);
        spec["profiles"] = json!(["LongLifecycle"]);
        assert!(of(&spec, release).is_ok(), "{release}");
    }
}
