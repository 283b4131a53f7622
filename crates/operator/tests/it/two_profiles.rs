//! Two profiles on one object, on a real API server: each keeps its fields, in any order of apply, drift and removal.

use std::time::Duration;

use advisor::{
    machine::Intervals,
    test_cluster::sharing::{LEFT, LEFT_AND_RIGHT, LEFT_MANAGER, RIGHT, RIGHT_MANAGER, config_map},
};
use api::names::FIELD_MANAGER;
use operator::OperatorSettings;
use serde_json::{Value, json};
use testkit::{
    configs::{condition, item, phase, reason},
    eventually,
    platform::Platform,
    running_operator::RunningOperator,
};

const ITEM: &str = "share";

/// A cluster without the object.
async fn platform() -> Platform {
    let platform = Platform::shared().await;
    platform.delete(&config_map(Value::Null)).await;
    platform
}

async fn start(platform: &Platform) -> RunningOperator {
    start_version(platform, "v0.0.2").await
}

/// An operator with short intervals: a refused plan is made again after an interval.
async fn start_version(platform: &Platform, version: &str) -> RunningOperator {
    let interval = Duration::from_millis(300);
    let intervals = Intervals { recheck: interval, prerequisites: interval, ..Intervals::default() };
    let settings = OperatorSettings {
        profiles: LEFT_AND_RIGHT,
        version: version.into(),
        intervals,
        ..OperatorSettings::default()
    };
    RunningOperator::start_with(platform, settings).await
}

fn left(options: Value) -> Value {
    json!({"options": {"loadAware": options}})
}

fn right(options: Value) -> Value {
    json!({"options": {"virtHigherDensity": options}})
}

fn bypassing(mut spec: Value) -> Value {
    spec["bypassOptimisticLock"] = true.into();
    spec
}

/// Options with which the right profile wants another value than the left one with `evictionLimitTotal`.
fn other_value() -> Value {
    right(json!({"ksmConfiguration": {}}))
}

async fn apply(platform: &Platform, profile: &str, mut spec: Value) -> Value {
    spec["action"] = "Apply".into();
    platform.configure(profile, spec).await
}

async fn data(platform: &Platform) -> Value {
    platform.find(&config_map(Value::Null)).await.map_or(Value::Null, |object| object["data"].clone())
}

/// The managers that have applied fields of the object.
async fn appliers(platform: &Platform) -> Vec<String> {
    let object = platform.get(&config_map(Value::Null)).await;
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let applied = entries.iter().filter(|entry| entry["operation"] == "Apply");
    let mut managers: Vec<_> = applied.map(|entry| entry["manager"].as_str().unwrap().to_owned()).collect();
    managers.sort();
    managers
}

/// Waits until both profiles have rechecked a few times.
async fn look_around(platform: &Platform) {
    for _ in 0..3 {
        let mark = platform.mark().await;
        eventually("looked again", async || {
            let requests = platform.requests_since(mark).await;
            let looks = requests.iter().filter(|request| request.resource == "configmaps").count();
            (looks >= 2).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_applies_its_own_fields_in_either_order_and_the_other_stays_in_effect() {
    for order in [[LEFT, RIGHT], [RIGHT, LEFT]] {
        let platform = platform().await;
        let operator = start(&platform).await;
        for profile in order {
            apply(&platform, profile, json!({})).await;
            platform.until_phase(profile, "Completed").await;
        }
        let before = platform.config(order[0]).await;
        assert_eq!(phase(&before), "Completed", "{before:#}");
        assert_eq!(data(&platform).await, json!({"left": "60", "right": "150"}));
        assert_eq!(appliers(&platform).await, [LEFT_MANAGER, RIGHT_MANAGER]);
        for (profile, manager) in [(LEFT, LEFT_MANAGER), (RIGHT, RIGHT_MANAGER)] {
            assert_eq!(item(&platform.config(profile).await, ITEM)["fieldManager"], manager);
        }

        // The same on an object with fields of both.
        apply(&platform, LEFT, left(json!({"deschedulingIntervalSeconds": 120}))).await;
        platform.until_phase(LEFT, "Completed").await;
        let mark = platform.mark().await;
        look_around(&platform).await;
        assert_eq!(data(&platform).await, json!({"left": "120", "right": "150"}));
        assert_eq!(platform.changes_since(mark).await, [""; 0], "there is nothing more to do");
        for profile in order {
            assert_eq!(phase(&platform.config(profile).await), "Completed", "{profile}");
        }
        operator.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_of_one_names_who_caused_it_and_leaves_the_other_in_effect() {
    let platform = platform().await;
    let operator = start(&platform).await;
    for profile in [LEFT, RIGHT] {
        apply(&platform, profile, json!({})).await;
        platform.until_phase(profile, "Completed").await;
    }
    platform.patch("kubectl-edit", &config_map(json!({"left": "90"}))).await;
    let drifted = platform.until_phase(LEFT, "Drifted").await;
    assert_eq!(item(&drifted, ITEM)["driftedBy"]["manager"], "kubectl-edit");
    look_around(&platform).await;
    assert_eq!(phase(&platform.config(RIGHT).await), "Completed");
    platform.patch("kubectl-edit", &config_map(json!({"left": "60"}))).await;
    platform.until_phase(LEFT, "Completed").await;

    // Another profile counts like any other manager.
    platform.apply(RIGHT_MANAGER, &config_map(json!({"left": "91", "right": "150"})), "").await;
    let by_right = |config: &Value| item(config, ITEM)["driftedBy"]["manager"] == RIGHT_MANAGER;
    platform.until(LEFT, "changed by the other profile", by_right).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_gives_up_goes_and_what_the_other_has_set_stays() {
    let platform = platform().await;
    let operator = start(&platform).await;
    apply(&platform, LEFT, left(json!({"evictionLimitNode": 2}))).await;
    platform.until_phase(LEFT, "Completed").await;
    apply(&platform, RIGHT, json!({})).await;
    platform.until_phase(RIGHT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "extra": "2", "right": "150"}));

    apply(&platform, LEFT, left(json!({"evictionLimitNode": null}))).await;
    platform.until_phase(LEFT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "right": "150"}), "a field that is no longer wanted");

    apply(&platform, LEFT, left(json!({"enablePSIMetrics": false}))).await;
    platform.until_phase(LEFT, "Completed").await;
    look_around(&platform).await;
    assert_eq!(data(&platform).await, json!({"right": "150"}), "everything of its own, but not the object");
    assert_eq!(appliers(&platform).await, [RIGHT_MANAGER]);
    for profile in [LEFT, RIGHT] {
        assert_eq!(phase(&platform.config(profile).await), "Completed", "{profile}");
    }
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_both_want_is_of_both_and_stays_when_one_gives_it_up() {
    let platform = platform().await;
    let operator = start(&platform).await;
    apply(&platform, LEFT, left(json!({"evictionLimitTotal": 100}))).await;
    platform.until_phase(LEFT, "Completed").await;
    apply(&platform, RIGHT, right(json!({"ksmConfiguration": {}, "memoryToRequestRatio": 100}))).await;
    platform.until_phase(RIGHT, "Completed").await;
    let both = json!({"left": "60", "right": "100", "shared": "100"});
    assert_eq!(data(&platform).await, both);

    apply(&platform, LEFT, left(json!({"evictionLimitTotal": null}))).await;
    platform.until_phase(LEFT, "Completed").await;
    assert_eq!(data(&platform).await, both);
    apply(&platform, RIGHT, right(json!({"memoryToRequestRatio": 110}))).await;
    platform.until_phase(RIGHT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "right": "110", "shared": "110"}));
    look_around(&platform).await;
    assert_eq!(phase(&platform.config(LEFT).await), "Completed", "it is the other's alone by now");
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_to_want_another_value_is_refused_in_words_and_goes_on_when_it_can() {
    let platform = platform().await;
    let operator = start(&platform).await;
    apply(&platform, LEFT, bypassing(left(json!({"evictionLimitTotal": 100})))).await;
    platform.until_phase(LEFT, "Completed").await;
    let mark = platform.mark().await;
    let spec = bypassing(other_value());
    platform.configure(RIGHT, json!({"action": "DryRun", "options": spec["options"]})).await;
    let refused = platform.until_phase(RIGHT, "Failed").await;
    assert_eq!(reason(&refused, "Failed"), "ProfileConflict");
    let told = condition(&refused, "Failed")["message"].as_str().unwrap();
    for part in [
        "profile 'virt-higher-density' and profile 'load-aware-rebalancing' want different values for data.shared. ",
        "Change the options of one of them",
        "set one to Ignore",
        "kubectl apply --server-side --field-manager=virt-advisor-operator/load-aware-rebalancing",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert_eq!(item(&refused, ITEM).get("takesOver"), None, "nothing is taken from a profile");

    // Both are approved and may overwrite: still refused, and nothing is written.
    apply(&platform, RIGHT, spec).await;
    platform.until_phase(RIGHT, "Failed").await;
    look_around(&platform).await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    assert_eq!(reason(&platform.config(RIGHT).await, "Failed"), "ProfileConflict");
    assert_eq!(phase(&platform.config(LEFT).await), "Completed");
    assert_eq!(data(&platform).await, json!({"left": "60", "shared": "100"}));

    // As the message says: the other profile is ignored, and its fields are removed.
    platform.configure(LEFT, json!({"action": "Ignore"})).await;
    platform.until_phase(LEFT, "Ignored").await;
    platform.apply(LEFT_MANAGER, &config_map(json!({"left": "60"})), "").await;
    platform.until_phase(RIGHT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "right": "150", "shared": "150"}));

    // The other way round, by the options of the second profile.
    apply(&platform, LEFT, json!({})).await;
    let refused = platform.until_phase(LEFT, "Failed").await;
    assert_eq!(reason(&refused, "Failed"), "ProfileConflict");
    apply(&platform, LEFT, left(json!({"evictionLimitTotal": null}))).await;
    platform.until_phase(LEFT, "Completed").await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_may_write_over_anything_do_not_revert_each_other() {
    let platform = platform().await;
    let operator = start(&platform).await;
    for profile in [LEFT, RIGHT] {
        apply(&platform, profile, bypassing(json!({}))).await;
        platform.until_phase(profile, "Completed").await;
    }
    let mark = platform.mark().await;
    platform.apply(RIGHT_MANAGER, &config_map(json!({"left": "91", "right": "150"})), "").await;
    let told = |config: &Value| reason(config, "Drifted") == "ProfileConflict";
    let drifted = platform.until(LEFT, "told", told).await;
    assert_eq!(item(&drifted, ITEM)["driftedBy"]["manager"], RIGHT_MANAGER);
    look_around(&platform).await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    // Changes of others are reverted as before.
    platform.patch("kubectl-edit", &config_map(json!({"left": "92"}))).await;
    platform.until_phase(LEFT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "right": "150"}));
    assert_eq!(phase(&platform.config(RIGHT).await), "Completed");
    operator.stop().await;
}

/// The object and the status of the former version, which applied all profiles under one manager.
async fn left_by_the_version_before(platform: &Platform) -> Value {
    let before = config_map(json!({"left": "60", "extra": "2"}));
    platform.apply(FIELD_MANAGER, &before, "").await;
    let operator = start_version(platform, "v0.0.1").await;
    apply(platform, LEFT, left(json!({"evictionLimitNode": 2}))).await;
    let config = platform.until_phase(LEFT, "Completed").await;
    operator.stop().await;
    let mut items = config["status"]["items"].clone();
    let noted = items[0].as_object_mut().unwrap().remove("fieldManager");
    assert_eq!(noted, Some(FIELD_MANAGER.into()), "the object goes on under the name that it was applied under");
    let uri = format!("/apis/advisor.kubevirt.io/v1alpha1/virtplatformconfigs/{LEFT}/status");
    platform.request("PATCH", &uri, Some("application/merge-patch+json"), json!({"status": {"items": items}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_version_before_applied_goes_on_without_drift_or_write() {
    let platform = platform().await;
    let before = left_by_the_version_before(&platform).await;
    assert_eq!(item(&before, ITEM).get("fieldManager"), None);
    let mark = platform.mark().await;
    let operator = start(&platform).await;
    let adopted = |config: &Value| config["status"]["operatorVersion"] == "v0.0.2";
    platform.until(LEFT, "adopted", adopted).await;
    let after = platform.config(LEFT).await;
    assert_eq!((phase(&after), item(&after, ITEM).get("driftedBy")), ("Completed", None), "{after:#}");
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    // Another profile is applied under its own manager, and takes over nothing.
    apply(&platform, RIGHT, json!({})).await;
    platform.until_phase(RIGHT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "extra": "2", "right": "150"}));
    assert_eq!(appliers(&platform).await, [FIELD_MANAGER, RIGHT_MANAGER]);

    // A field that the options no longer want is removed.
    apply(&platform, LEFT, left(json!({"evictionLimitNode": null}))).await;
    let done = platform.until_phase(LEFT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"left": "60", "right": "150"}));
    assert_eq!(item(&done, ITEM)["fieldManager"], FIELD_MANAGER);
    assert_eq!(phase(&platform.config(RIGHT).await), "Completed");

    // So are the other fields.
    apply(&platform, LEFT, left(json!({"enablePSIMetrics": false}))).await;
    platform.until_phase(LEFT, "Completed").await;
    assert_eq!(data(&platform).await, json!({"right": "150"}));
    assert_eq!(appliers(&platform).await, [RIGHT_MANAGER]);
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_version_before_applied_is_not_taken_by_a_new_profile() {
    let platform = platform().await;
    platform.apply(FIELD_MANAGER, &config_map(json!({"left": "60", "shared": "1"})), "").await;
    let mark = platform.mark().await;
    let operator = start(&platform).await;
    apply(&platform, RIGHT, bypassing(other_value())).await;
    let refused = platform.until_phase(RIGHT, "Failed").await;
    assert_eq!(reason(&refused, "Failed"), "ProfileConflict");
    let told = condition(&refused, "Failed")["message"].as_str().unwrap();
    assert!(told.contains("a profile that an earlier version applied want different values for data.shared"), "{told}");
    look_around(&platform).await;
    assert_eq!(platform.changes_since(mark).await, [""; 0]);
    operator.stop().await;
}
