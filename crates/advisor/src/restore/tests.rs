//! Which plan leads back, and when there is none.

use serde_json::json;

use super::*;
use crate::{
    Plan, Verb,
    kind::CONFIG_MAP,
    profile::missing,
    profiles::PROFILES,
    test_cluster::{TestCluster, records::restoring, sample, set_by},
};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const DESCHEDULER: &str = "enable-load-aware-descheduling";

fn cluster() -> TestCluster {
    TestCluster::with_descheduler("5.1").with(sample("hyperconverged"))
}

fn interval(seconds: i32) -> Value {
    json!({"loadAware": {"deschedulingIntervalSeconds": seconds, "enablePSIMetrics": false}})
}

/// After plans with these intervals, one after the other.
fn applied(mut cluster: TestCluster, intervals: &[i32]) -> TestCluster {
    for (number, seconds) in intervals.iter().enumerate() {
        let plan = cluster.plan(LOAD_AWARE, interval(*seconds));
        cluster.apply_recorded(&plan, number as u32 + 1);
    }
    cluster
}

fn found(cluster: &TestCluster) -> Option<&Value> {
    cluster.find(&KUBE_DESCHEDULER, Some("openshift-kube-descheduler-operator"), "cluster")
}

fn existing(seconds: i32) -> Value {
    let spec = json!({"managementState": "Managed", "deschedulingIntervalSeconds": seconds, "profiles": ["AffinityAndTaints"]});
    set_by(
        "kubectl",
        "Update",
        json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
            "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator", "uid": "u"}, "spec": spec,
        }),
    )
}

fn verbs(plan: &Plan) -> Vec<(&str, Verb)> {
    plan.items.iter().map(|planned| (planned.item.name.as_str(), planned.verb)).collect()
}

fn carry_out(cluster: &mut TestCluster, plan: &Plan) {
    plan.items.iter().for_each(|planned| drop(cluster.carry_out(planned)));
}

#[test]
fn a_record_leads_to_the_state_before_its_plan() {
    let before = cluster().with(existing(3600)).with_defaults();
    let mut cluster = applied(before.clone(), &[60, 120, 180]);
    let seconds = |cluster: &TestCluster| found(cluster).unwrap()["spec"]["deschedulingIntervalSeconds"].clone();
    for (record, expected) in [("load-aware-rebalancing-3", 120), ("load-aware-rebalancing-2", 60), ("original", 3600)]
    {
        let plan = cluster.restore_plan(LOAD_AWARE, record);
        assert_eq!(verbs(&plan), [(DESCHEDULER, Verb::Configured)], "{record}");
        let mut restored = cluster.clone();
        carry_out(&mut restored, &plan);
        assert_eq!(seconds(&restored), expected, "{record}");
        assert!(!fields_of_ours(&restored), "{record}: nothing is managed");
    }
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    let message = plan.items[0].item.message.as_deref().unwrap();
    assert_eq!(
        message,
        "KubeDescheduler 'cluster' will be set back to what it was before; its fields were set by kubectl before"
    );
    carry_out(&mut cluster, &plan);
    assert_eq!(found(&cluster).unwrap()["spec"], found(&before).unwrap()["spec"]);
}

fn fields_of_ours(cluster: &TestCluster) -> bool {
    found(cluster)
        .is_some_and(|live| crate::fields::owns_anything(live, "virt-advisor-operator/load-aware-rebalancing"))
}

#[test]
fn what_did_not_exist_is_deleted() {
    let mut cluster = applied(cluster(), &[60, 120]);
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(verbs(&plan), [(DESCHEDULER, Verb::Deleted)]);
    carry_out(&mut cluster, &plan);
    assert_eq!(found(&cluster), None);
    assert_eq!(verbs(&cluster.restore_plan(LOAD_AWARE, "original")), []);
}

#[test]
fn what_somebody_changed_since_has_to_be_accepted() {
    let mut cluster = applied(cluster().with(existing(3600)), &[60]);
    let before = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(before.items[0].item.changed_since, [""; 0]);
    cluster.edit(&KUBE_DESCHEDULER, "cluster", &["spec", "deschedulingIntervalSeconds"], Some(json!(999)));
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(plan.items[0].item.changed_since, ["spec.deschedulingIntervalSeconds"]);
    assert_ne!(plan.digest, before.digest, "it is another plan");

    cluster.put(set_by(
        "kubectl",
        "Update",
        json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
            "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator", "uid": "another"},
            "spec": {"deschedulingIntervalSeconds": 60},
        }),
    ));
    let changed = cluster.restore_plan(LOAD_AWARE, "original").items.remove(0).item.changed_since;
    assert!(changed.contains(&"metadata.uid".to_owned()), "created again: {changed:?}");
    cluster.delete(&KUBE_DESCHEDULER, "cluster");
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(verbs(&plan), []);
    assert!(plan.notes[0].contains("does not exist any more"), "{:?}", plan.notes);
}

#[test]
fn a_record_that_does_not_exist_is_missing_and_the_others_are_named() {
    let told = |cluster: &TestCluster, record: &str| {
        let planner = restoring(LOAD_AWARE, record);
        let facts = cluster.facts(planner.as_ref());
        missing(&planner.requirements(&facts), &facts)
    };
    let recorded = applied(cluster(), &[60, 120]);
    assert_eq!(told(&recorded, "original"), None);
    let text = told(&recorded, "load-aware-rebalancing-9").unwrap();
    assert!(
        text.contains("Restore one of these instead: load-aware-rebalancing-2, load-aware-rebalancing-1; or"),
        "{text}"
    );

    // Applied by a version that had no records.
    let mut old = cluster();
    old.apply(LOAD_AWARE, interval(60));
    let text = told(&old, "original").unwrap();
    assert!(text.contains("No record tells what was there before load-aware-rebalancing managed anything"), "{text}");
    assert!(text.contains("There is no record of load-aware-rebalancing to restore instead"), "{text}");
    let plan = old.plan(LOAD_AWARE, interval(120));
    old.apply_recorded(&plan, 1);
    assert!(told(&old, "original").is_some(), "this record does not tell it either");
    assert_eq!(told(&old, "load-aware-rebalancing-1"), None);
}

/// Records of which no value is from before the profile managed anything are not kept for good.
#[test]
fn a_record_behind_which_others_are_missing_is_not_restored_in_part() {
    let mut cluster = applied(cluster().with(existing(3600)).with_defaults(), &[60, 120, 180, 240, 300, 360]);
    let told = |cluster: &TestCluster, number: u32| {
        let planner = restoring(LOAD_AWARE, &record_name(ProfileName::LoadAwareRebalancing, number));
        let facts = cluster.facts(planner.as_ref());
        missing(&planner.requirements(&facts), &facts).unwrap_or_default()
    };
    assert_eq!(told(&cluster, 2), "");
    cluster.delete(&PLAN_RECORD, "load-aware-rebalancing-4");
    let expected = "The state before load-aware-rebalancing-3 cannot be restored as a whole: VirtPlatformPlanRecord \
                    load-aware-rebalancing-4, which came later, is not kept any longer, and what was changed then is not known. \
                    Restore one of these instead: original, load-aware-rebalancing-6, load-aware-rebalancing-5; or set the objects \
                    back by hand";
    let text = told(&cluster, 3);
    assert!(text.contains(expected), "{text}");
    assert_eq!(verbs(&cluster.restore_plan(LOAD_AWARE, "load-aware-rebalancing-3")), []);
    assert_eq!(
        (told(&cluster, 5), told(&cluster, 6)),
        (String::new(), String::new()),
        "nothing is missing behind these"
    );
    assert_eq!(told(&cluster, 1), "", "it was the first, and what was there before is always kept");
    let original = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(verbs(&original), [(DESCHEDULER, Verb::Configured)]);
    cluster.delete(&PLAN_RECORD, "load-aware-rebalancing-5");
    let text = told(&cluster, 2);
    assert!(
        text.contains(": VirtPlatformPlanRecords from load-aware-rebalancing-4 to load-aware-rebalancing-5, which came later, are not"),
        "{text}"
    );
}

#[test]
fn records_that_are_kept_between_missing_ones_are_not_told_to_be_missing() {
    let mut cluster = applied(cluster().with(existing(3600)).with_defaults(), &[60, 120, 180, 240, 300, 360]);
    cluster.delete(&PLAN_RECORD, "load-aware-rebalancing-3");
    cluster.delete(&PLAN_RECORD, "load-aware-rebalancing-5");
    let planner = restoring(LOAD_AWARE, "load-aware-rebalancing-2");
    let facts = cluster.facts(planner.as_ref());
    let text = missing(&planner.requirements(&facts), &facts).unwrap();
    let expected = "some of the VirtPlatformPlanRecords from load-aware-rebalancing-3 to load-aware-rebalancing-5, which came later, are";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("instead: original, load-aware-rebalancing-6; or"), "{text}");
}

#[test]
fn the_way_back_of_a_change_weighs_as_much_as_the_change() {
    for profile in PROFILES {
        let intents = cluster().draft(profile.about().name, json!({})).intents;
        assert!(!intents.is_empty(), "{}", profile.about().name);
        for intent in intents {
            assert_eq!(weight(intent.target.kind), intent.weight, "{}", intent.target);
        }
    }
}

/// Somebody deletes the object, and the next plan creates it.
#[test]
fn what_was_created_again_is_deleted_and_the_reviewer_learns_why() {
    let mut cluster = applied(cluster().with(existing(3600)).with_defaults(), &[60]);
    cluster.delete(&KUBE_DESCHEDULER, "cluster");
    let plan = cluster.plan(LOAD_AWARE, interval(60));
    cluster.apply_recorded(&plan, 2);
    let plan = cluster.restore_plan(LOAD_AWARE, "load-aware-rebalancing-1");
    assert_eq!(verbs(&plan), [(DESCHEDULER, Verb::Deleted)]);
    assert!(plan.notes[0].contains("was deleted by somebody and created again by a later plan"), "{:?}", plan.notes);
    assert!(!plan.notes.iter().any(|note| note.contains("does not exist any more")), "{:?}", plan.notes);
    carry_out(&mut cluster, &plan);
    assert_eq!(found(&cluster), None);
}

/// Whoever can write records must not be able to have anything changed.
#[test]
fn a_record_leads_to_no_other_objects_than_those_of_the_profile() {
    let mut cluster = applied(cluster(), &[60]);
    let name = "load-aware-rebalancing-1";
    let mut record = cluster.find(&PLAN_RECORD, None, name).unwrap().clone();
    record["spec"]["items"][0]["targetRef"] =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "theirs", "namespace": "kube-system"});
    cluster.put(record);
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(verbs(&plan), []);
    assert!(plan.facts.queries().all(|query| *query.kind() != CONFIG_MAP));
}

/// What the autopilot manages by now would only be set again.
#[test]
fn what_the_autopilot_manages_is_not_set_back_by_force() {
    let mut cluster = applied(cluster().with(existing(3600)).with_defaults(), &[60]);
    let mut theirs = found(&cluster).unwrap().clone();
    theirs["metadata"]["labels"] = json!({"platform.kubevirt.io/managed-by": "virt-platform-autopilot"});
    cluster.put(theirs.clone());
    let plan = cluster.restore_plan(LOAD_AWARE, "original");
    assert_eq!(verbs(&plan), []);
    assert!(plan.notes.iter().any(|note| note.contains("platform.kubevirt.io/mode=unmanaged")), "{:?}", plan.notes);
    theirs["metadata"]["annotations"] = json!({"platform.kubevirt.io/mode": "unmanaged"});
    cluster.put(theirs);
    assert_eq!(verbs(&cluster.restore_plan(LOAD_AWARE, "original")), [(DESCHEDULER, Verb::Configured)], "opted out");
}
