//! A target that somebody deletes: all messages call it a deletion, and nobody is named.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::{kind::MACHINE_CONFIG, machine::event_notes};
use Phase::*;

const PSI_ITEM: &str = "enable-psi-metrics";
const DELETED: &str = "MachineConfig '99-worker-psi-karg' was deleted";

fn told(fixture: &Fixture) -> Option<&str> {
    fixture.item(PSI_ITEM).message.as_deref()
}

/// The notes of the events about drift since a status was stored.
fn drift_events(before: &VirtPlatformConfigStatus, fixture: &Fixture) -> Vec<String> {
    let events = event_notes(before, &fixture.status).into_iter();
    events.filter(|event| event.reason == "ItemDrifted").map(|event| event.note).collect()
}

#[test]
fn a_deleted_target_says_so_in_its_item_and_in_the_event() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let before = fixture.status.clone();
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    assert_eq!((fixture.phase(), told(&fixture)), (Drifted, Some(DELETED)));
    assert_eq!(drift_events(&before, &fixture), [DELETED]);
    let known = fixture.status.clone();
    fixture.pass(300).settle();
    assert_eq!(drift_events(&known, &fixture), [""; 0], "once");
}

#[test]
fn a_target_that_is_edited_and_then_deleted_is_told_as_both() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    for (path, value, expected) in [
        (&["spec", "kernelArguments"][..], json!(["psi=0"]), "MachineConfig '99-worker-psi-karg' was changed"),
        (
            &["metadata", "deletionTimestamp"],
            json!("2026-01-01T00:00:00Z"),
            "MachineConfig '99-worker-psi-karg' is being deleted",
        ),
    ] {
        let before = fixture.status.clone();
        fixture.cluster.edit(&MACHINE_CONFIG, PSI, path, Some(value));
        fixture.settle();
        assert_eq!(drift_events(&before, &fixture), [expected]);
    }
    let before = fixture.status.clone();
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    assert_eq!(drift_events(&before, &fixture), [DELETED]);
}

#[test]
fn whoever_deletes_again_and_again_is_not_fought_and_that_it_is_deleted_is_said() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let now = Time(Timestamp::from_second(fixture.second).unwrap());
    fixture.status.reverts = vec![now; 3];
    fixture.spec.bypass_optimistic_lock = true;
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    let condition = fixture.condition("Drifted").unwrap();
    assert_eq!(condition.reason, "RemediationStalled");
    assert!(condition.message.contains(&format!("is back ({DELETED})")), "{}", condition.message);
}

#[test]
fn a_plan_in_review_whose_target_was_deleted_says_so() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    assert_eq!(fixture.phase(), ReviewRequired);
    fixture.cluster.delete(&KUBE_DESCHEDULER, "cluster");
    fixture.settle();
    let condition = fixture.condition("ReviewRequired").unwrap();
    assert_eq!(condition.reason, "PlanStale");
    let expected = "Since it was made, KubeDescheduler 'cluster' was deleted. ";
    assert!(condition.message.contains(expected), "{}", condition.message);
}
