//! A target that somebody deletes: told as that wherever it is told, and nobody is blamed.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::{kind::MACHINE_CONFIG, machine::event_notes};
use Phase::*;

const PSI_ITEM: &str = "enable-psi-metrics";
const DELETED: &str = "MachineConfig '99-worker-psi-karg' was deleted";

fn told(story: &Story) -> Option<&str> {
    story.item(PSI_ITEM).message.as_deref()
}

/// The notes of the events about drift since a status was recorded.
fn drift_events(before: &VirtPlatformConfigStatus, story: &Story) -> Vec<String> {
    let events = event_notes(before, &story.status).into_iter();
    events.filter(|event| event.reason == "ItemDrifted").map(|event| event.note).collect()
}

#[test]
fn a_deleted_target_says_so_in_its_item_and_in_the_event() {
    let mut story = Story::completed(LOAD_AWARE);
    let before = story.status.clone();
    story.cluster.delete(&MACHINE_CONFIG, PSI);
    story.settle();
    assert_eq!((story.phase(), told(&story)), (Drifted, Some(DELETED)));
    assert_eq!(drift_events(&before, &story), [DELETED]);
    let known = story.status.clone();
    story.pass(300).settle();
    assert_eq!(drift_events(&known, &story), [""; 0], "once");
}

#[test]
fn a_target_that_is_edited_and_then_deleted_is_told_as_both() {
    let mut story = Story::completed(LOAD_AWARE);
    for (path, value, expected) in [
        (&["spec", "kernelArguments"][..], json!(["psi=0"]), "MachineConfig '99-worker-psi-karg' was changed"),
        (
            &["metadata", "deletionTimestamp"],
            json!("2026-01-01T00:00:00Z"),
            "MachineConfig '99-worker-psi-karg' is being deleted",
        ),
    ] {
        let before = story.status.clone();
        story.cluster.edit(&MACHINE_CONFIG, PSI, path, Some(value));
        story.settle();
        assert_eq!(drift_events(&before, &story), [expected]);
    }
    let before = story.status.clone();
    story.cluster.delete(&MACHINE_CONFIG, PSI);
    story.settle();
    assert_eq!(drift_events(&before, &story), [DELETED]);
}

#[test]
fn whoever_deletes_again_and_again_is_not_fought_and_that_it_is_deleted_is_said() {
    let mut story = Story::completed(LOAD_AWARE);
    let now = Time(Timestamp::from_second(story.second).unwrap());
    story.status.reverts = vec![now; 3];
    story.spec.bypass_optimistic_lock = true;
    story.cluster.delete(&MACHINE_CONFIG, PSI);
    story.settle();
    let condition = story.condition("Drifted").unwrap();
    assert_eq!(condition.reason, "RemediationStalled");
    assert!(condition.message.contains(&format!("is back ({DELETED})")), "{}", condition.message);
}

#[test]
fn a_plan_in_review_whose_target_was_deleted_says_so() {
    let mut story = Story::completed(LOAD_AWARE);
    story.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    assert_eq!(story.phase(), ReviewRequired);
    story.cluster.delete(&KUBE_DESCHEDULER, "cluster");
    story.settle();
    let condition = story.condition("ReviewRequired").unwrap();
    assert_eq!(condition.reason, "PlanStale");
    let expected = "Since it was drawn up, KubeDescheduler 'cluster' was deleted. ";
    assert!(condition.message.contains(expected), "{}", condition.message);
}
