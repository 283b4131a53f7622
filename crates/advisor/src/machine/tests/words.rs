//! Texts that misled people: found by random edits on real API servers.

use api::{
    bounds,
    virt_platform_config::{Approval, FailurePolicy},
};

use super::*;
use crate::{Refusal, machine::health::STALLED};

const DESCHEDULER: &str = "enable-load-aware-descheduling";

fn message<'a>(fixture: &'a Fixture, kind: &str) -> &'a str {
    &fixture.condition(kind).unwrap().message
}

#[test]
fn an_empty_map_of_page_merging_is_no_change_and_a_selector_is_one() {
    let mut fixture = Fixture::new(DENSITY, Action::DryRun);
    let ksm = |fixture: &mut Fixture, value: Option<Value>| {
        let path = ["spec", "ksmConfiguration"];
        fixture.cluster.edit(&HYPER_CONVERGED, "kubevirt-hyperconverged", &path, value);
        fixture.settle();
    };
    let is_forced = |fixture: &Fixture| fixture.condition("InputDependencyDrift").is_some_and(|it| it.status == "True");
    ksm(&mut fixture, None);
    let records = fixture.records;
    ksm(&mut fixture, Some(json!({})));
    assert_eq!((fixture.phase(), fixture.records), (Phase::ReviewRequired, records), "{:?}", fixture.status.conditions);
    // An earlier version has recorded the empty map.
    let recorded = fixture.status.inputs.iter_mut().find(|input| input.path.ends_with("ksmConfiguration"));
    recorded.unwrap().value = Some("{}".into());
    ksm(&mut fixture, None);
    assert!(!is_forced(&fixture));
    ksm(&mut fixture, Some(json!({"nodeLabelSelector": {}})));
    assert!(is_forced(&fixture), "{:?}", fixture.status.conditions);
}

#[test]
fn a_plan_with_errors_names_the_item_the_cause_and_what_to_do() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.spec.failure_policy = FailurePolicy::Continue;
    fixture.refuses = true;
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::CompletedWithErrors);
    let told = message(&fixture, "CompletedWithErrors");
    let expected = format!(
        "Plan completed with some errors: item 'enable-psi-metrics' failed: no; item '{DESCHEDULER}' failed: no. Remove the cause"
    );
    assert!(told.starts_with(&expected) && told.contains("edit the spec to try again"), "{told}");
}

#[test]
fn drift_does_not_hide_why_an_item_failed() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.spec.failure_policy = FailurePolicy::Continue;
    fixture.spec.wait_timeout = Some("1h".into());
    fixture.settle().pass(3601).settle();
    assert_eq!(fixture.phase(), Phase::CompletedWithErrors);
    let why = fixture.item("enable-psi-metrics").message.clone();
    assert!(why.as_ref().unwrap().starts_with("Timeout waiting"), "{why:?}");
    fixture.cluster.edit(&MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=0"])));
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::Drifted);
    assert_eq!(fixture.item("enable-psi-metrics").message, why);
    assert!(message(&fixture, STALLED).contains("was changed"), "the drift is told by the condition");
    fixture.cluster.edit(&MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=1"])));
    fixture.settle();
    assert_eq!(
        (fixture.phase(), fixture.item("enable-psi-metrics").message.clone()),
        (Phase::CompletedWithErrors, why)
    );
}

/// Somebody writes a digest into the status, and it is approved. The plan is made again, and the approval still names another one.
#[test]
fn an_approval_of_a_forged_digest_is_told_to_name_another_plan() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    let forged = "f".repeat(64);
    fixture.settle().status.plan_digest = Some(forged.clone());
    fixture.spec.approval = Some(Approval { plan_digest: Some(forged), ..Approval::default() });
    let mut last = LastResult::None;
    fixture.edit(|spec| spec.action = Action::Apply);
    // Every text on the way is one that people may read.
    while let Some(result) = fixture.step(last) {
        if let Some(review) = fixture.condition("ReviewRequired").filter(|review| review.status == "True") {
            assert!(!review.message.contains("'Apply'") || fixture.status.observed_generation == Some(1), "{review:?}");
        }
        last = result;
    }
    let review = fixture.condition("ReviewRequired").unwrap();
    assert_eq!((review.reason.as_str(), fixture.written.len()), ("ApprovalMismatch", 0));
}

/// The API server refuses a status with one path too many as a whole.
#[test]
fn lists_of_fields_are_cut_to_what_the_schema_takes() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.settle().status.items[0].changed_since = vec!["x".repeat(bounds::FIELD_PATH + 1); bounds::FIELD_PATHS + 1];
    fixture.settle();
    let changed_since = &fixture.status.items[0].changed_since;
    assert_eq!((changed_since.len(), changed_since[0].len()), (bounds::FIELD_PATHS, bounds::FIELD_PATH));
}

#[test]
fn a_definition_that_is_being_deleted_is_a_prerequisite_and_not_a_right() {
    let refusal = Refusal::KindTerminating { target: "MachineConfig a".into() };
    assert_eq!(refusal.reason(), "KindTerminating");
    assert!(!refusal.to_string().contains("Grant"), "{refusal}");
}
