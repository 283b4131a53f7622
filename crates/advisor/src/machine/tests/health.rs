//! What tools for every kind of object read in the status, in every phase.

use api::virt_platform_config::{Approval, Rejection};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{rules::everywhere, *};
use crate::{kstatus::kstatus, machine::health::*, test_cluster::definition};
use Phase::*;

/// A configuration in a phase, and what follows for whoever reads its conditions.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) fixture: Fixture,
    /// `Status/Reason`.
    ready: &'static str,
    also: Option<&'static str>,
    kstatus: &'static str,
    pub(super) argo_cd: &'static str,
    pub(super) flux: &'static str,
}

type Row = (&'static str, &'static str, Option<&'static str>, &'static str, &'static str, &'static str);

/// The name, Ready with its reason, which other condition is True, and what kstatus, Argo CD and Flux make of it.
const PHASES: [(Phase, Row); 12] = [
    (Pending, ("pending", "Unknown/Drafting", Some(RECONCILING), "InProgress", "Progressing", "InProgress")),
    (Drafting, ("drafting", "Unknown/Drafting", Some(RECONCILING), "InProgress", "Progressing", "InProgress")),
    (
        PrerequisiteFailed,
        ("prerequisite-failed", "False/PrerequisiteFailed", Some(STALLED), "Failed", "Degraded", "Failed"),
    ),
    (ReviewRequired, ("review", "True/PlanReady", None, "Current", "Healthy", "Current")),
    (Scheduled, ("scheduled", "True/Scheduled", None, "Current", "Healthy", "Current")),
    (InProgress, ("in-progress", "False/Applying", Some(RECONCILING), "InProgress", "Progressing", "Current")),
    (Completed, ("completed", "True/Completed", None, "Current", "Healthy", "Current")),
    (
        CompletedWithErrors,
        ("completed-with-errors", "False/CompletedWithErrors", Some(STALLED), "Failed", "Degraded", "Failed"),
    ),
    (CompletedWithUpgrade, ("completed-with-upgrade", "True/UpgradeAvailable", None, "Current", "Healthy", "Current")),
    (Failed, ("failed", "False/Failed", Some(STALLED), "Failed", "Degraded", "Failed")),
    (Drifted, ("drifted", "False/DriftDetected", Some(STALLED), "Failed", "Degraded", "Failed")),
    (Ignored, ("ignored", "True/Ignored", None, "Current", "Healthy", "Current")),
];

/// In phases whose meaning depends on more than the phase.
fn special() -> Vec<(Row, Fixture)> {
    let asked = |name, ready| (name, ready, Some(STALLED), "Failed", "Suspended", "Failed");
    let mut mismatch = Fixture::new(LOAD_AWARE, Action::Apply);
    mismatch.spec.approval = Some(Approval { plan_digest: Some("0".repeat(64)), ..Approval::default() });
    let mut required = Fixture::new(LOAD_AWARE, Action::Apply);
    required.approval_mode = ApprovalMode::Reviewed;
    let mut rejected = Fixture::new(LOAD_AWARE, Action::DryRun);
    let plan_digest = rejected.settle().status.plan_digest.clone().unwrap();
    rejected.spec.approval =
        Some(Approval { rejected: Some(Rejection { plan_digest, reason: None }), ..Approval::default() });
    let mut rejected_apply = rejected.clone();
    let mut expired = Fixture::new(LOAD_AWARE, Action::Apply);
    let past = Time(Timestamp::from_second(expired.second - 60).unwrap());
    expired.spec.approval = Some(Approval { not_after: Some(past), ..Approval::default() });
    let mut outdated = Fixture::completed(LOAD_AWARE);
    outdated.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun).interval(77);
    let mut fights = Fixture::completed(LOAD_AWARE);
    fights.edit(|spec| spec.bypass_optimistic_lock = true).settle().interval(180).settle().pass(10).interval(180);
    let mut lost = fights.clone();
    for _ in 0..4 {
        lost.pass(120).interval(180).settle();
    }
    let mut still = Fixture::new(LOAD_AWARE, Action::Apply);
    still.settle().pass(46 * 60);
    let ready = |name| (name, "True/PlanReady", None, "Current", "Healthy", "Current");
    vec![
        (asked("approval-mismatch", "False/ApprovalMismatch"), mismatch.settle().clone()),
        (asked("approval-required", "False/ApprovalRequired"), required.settle().clone()),
        (asked("approval-expired", "False/ApprovalExpired"), expired.settle().clone()),
        (asked("rejected", "False/Rejected"), rejected_apply.act(Action::Apply).clone()),
        (
            asked("input-changed", "False/ReviewRequired"),
            Fixture::completed(LOAD_AWARE).migrations(10).settle().clone(),
        ),
        (ready("review-rejected"), rejected.edit(|_| {}).settle().clone()),
        (ready("review-outdated"), outdated.settle().clone()),
        (
            ("drifted-reverting", "False/DriftDetected", Some(RECONCILING), "InProgress", "Progressing", "InProgress"),
            fights.settle().clone(),
        ),
        (
            ("in-progress-stalled", "False/NoProgress", Some(STALLED), "Failed", "Degraded", "Failed"),
            still.settle().clone(),
        ),
        (("drifted-stalled", "False/RemediationStalled", Some(STALLED), "Failed", "Degraded", "Failed"), lost),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    let row = |phase: Phase| PHASES.iter().find(|(known, _)| *known == phase).unwrap().1;
    let phases = everywhere().into_iter().map(|fixture| (row(fixture.phase()), fixture));
    let cases = phases.chain(special());
    cases
        .map(|((name, ready, also, kstatus, argo_cd, flux), fixture)| Case {
            name,
            fixture,
            ready,
            also,
            kstatus,
            argo_cd,
            flux,
        })
        .collect()
}

impl Fixture {
    /// The object as the API server would return it.
    pub(super) fn object(&self) -> Value {
        json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1",
            "kind": "VirtPlatformConfig",
            "metadata": {"name": self.profile.about().name, "generation": self.generation},
            "spec": self.spec,
            "status": self.status,
        })
    }
}

/// What holds in every status that was ever decided on. All tests of decisions check it.
pub(super) fn assert_sound(status: &VirtPlatformConfigStatus) {
    let kinds: Vec<_> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    let position = kinds.iter().position(|kind| *kind == READY).unwrap();
    let also = &kinds[position + 1..];
    assert!(
        also.is_empty() || also == [RECONCILING] || also == [STALLED],
        "behind the reference's conditions: {kinds:?}"
    );
    assert!(!kinds[..position].iter().any(|kind| [RECONCILING, STALLED].contains(kind)), "{kinds:?}");
    let (ready, also) = (&status.conditions[position], status.conditions.get(position + 1));
    assert_eq!(ready.status == "True", also.is_none(), "{:?}", status.conditions);
    assert!(
        also.is_none_or(
            |also| also.status == "True" && (&also.reason, &also.message) == (&ready.reason, &ready.message)
        )
    );
    assert!(!ready.message.is_empty(), "{:?}", status.phase);
}

#[test]
fn every_phase_says_what_it_means_for_tools() {
    for Case { name, fixture, ready, also, kstatus: expected, .. } in cases() {
        let condition = fixture.condition(READY).unwrap();
        assert_eq!(format!("{}/{}", condition.status, condition.reason), ready, "{name}");
        let holding = [RECONCILING, STALLED].into_iter().find(|kind| fixture.condition(kind).is_some());
        assert_eq!(holding, also, "{name}");
        assert_eq!(kstatus(&fixture.object()), expected, "{name}: {:?}", fixture.status.conditions);
    }
}

/// Tools take a spec that was not acted on for one that is being worked on.
#[test]
fn an_edit_counts_as_in_progress_until_it_is_acted_on() {
    for Case { name, mut fixture, .. } in cases() {
        let generation = fixture.generation;
        assert_eq!(fixture.status.observed_generation, Some(generation), "{name}");
        assert!(fixture.status.conditions.iter().all(|it| it.observed_generation == Some(generation)), "{name}");
        fixture.edit(|_| {});
        assert_eq!(kstatus(&fixture.object()), "InProgress", "{name}");
    }
}

#[test]
fn the_first_status_names_its_generation_and_is_not_ready_yet() {
    for (action, ready) in [(Action::DryRun, "Unknown"), (Action::Apply, "Unknown"), (Action::Ignore, "True")] {
        let mut fixture = Fixture::new(LOAD_AWARE, action);
        fixture.step(LastResult::None);
        assert_eq!((fixture.records, fixture.status.observed_generation), (1, Some(1)), "{action}");
        assert_eq!(fixture.condition(READY).unwrap().status, ready, "{action}");
    }
}

#[test]
fn messages_name_what_is_waited_for_and_what_went_wrong() {
    let message = |name: &str| {
        let cases = cases();
        let case = cases.iter().find(|case| case.name == name).unwrap();
        case.fixture.condition(case.also.unwrap_or(READY)).unwrap().message.clone()
    };
    for (name, expected) in [
        ("in-progress", "enable-psi-metrics: MachineConfigPool "),
        ("review", "Plan ready for review. Change action to 'Apply' to execute."),
        ("scheduled", "Plan approved. It starts at "),
        ("completed-with-errors", "enable-psi-metrics: Failed to apply: no; enable-load-aware-descheduling: Failed"),
        ("drifted", "Configuration has drifted from desired state: KubeDescheduler 'cluster' was changed"),
        ("prerequisite-failed", "Missing required dependencies:"),
        ("approval-mismatch", "The approval names plan 000"),
    ] {
        let message = message(name);
        assert!(message.starts_with(expected), "{name}: {message}");
    }
}

/// Nobody has reviewed what would be applied, so a person has to look, although the spec asks to revert drift.
#[test]
fn drift_whose_every_item_would_come_out_differently_is_stalled_with_words() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.edit(|spec| spec.bypass_optimistic_lock = true).settle();
    let written = fixture.written.len();
    fixture.cluster.put(definition("kubedescheduler-4.17"));
    fixture.interval(77).settle();
    for seconds in [300, 3600] {
        let stalled = fixture.condition(STALLED).unwrap();
        assert_eq!((fixture.phase(), stalled.reason.as_str()), (Drifted, "PlanDiffers"));
        for part in [
            "KubeDescheduler 'cluster' was changed",
            "item 'enable-load-aware-descheduling' would come out differently on what is installed now",
            "Edit the spec for a new plan, and review it",
        ] {
            assert!(stalled.message.contains(part), "{}", stalled.message);
        }
        assert_eq!((kstatus(&fixture.object()), fixture.written.len()), ("Failed", written));
        let records = fixture.records;
        assert_eq!(fixture.pass(seconds).settle().records, records, "it says so once");
    }
    fixture.cluster.put(definition("kubedescheduler-5.1"));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, written + 1), "the approved plan is back");
}

#[test]
fn times_change_only_with_the_status() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    let time = |fixture: &Fixture, kind: &str| {
        let condition = fixture.condition(kind).unwrap();
        condition.last_transition_time.0.as_second()
    };
    fixture.settle();
    let planned = fixture.second;
    fixture.pass(60).options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}}));
    let mut redrafted = fixture.clone();
    redrafted.settle();
    assert_eq!(time(&redrafted, READY), planned + 60, "it was not ready meanwhile");

    fixture.spec.action = Action::Apply;
    fixture.settle();
    assert_eq!((fixture.phase(), time(&fixture, RECONCILING)), (InProgress, planned + 60));
    fixture.pass(60).settle();
    assert_eq!((time(&fixture, READY), time(&fixture, RECONCILING)), (planned + 60, planned + 60));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), time(&fixture, READY)), (Completed, planned + 120));
    fixture.pass(60).settle();
    assert_eq!(time(&fixture, READY), planned + 120);
}

/// Also of a status that an earlier version has stored.
#[test]
fn the_three_conditions_are_restored_and_no_decision_follows_from_them() {
    let change: [fn(&mut Vec<Condition>); 3] = [
        |conditions| conditions.retain(|it| ![READY, RECONCILING, STALLED].contains(&it.type_.as_str())),
        |conditions| conditions.iter_mut().filter(|it| it.type_ == READY).for_each(|it| it.status = "Unknown".into()),
        |conditions| {
            let both = [RECONCILING, STALLED].map(|kind| Condition { type_: kind.into(), ..conditions[0].clone() });
            conditions.extend(both);
            conditions.reverse();
        },
    ];
    let happens: [fn(&mut Fixture) -> &mut Fixture; 4] = [
        Fixture::settle,
        |fixture| fixture.interval(240).settle(),
        |fixture| fixture.roll_out(&[PSI]).settle(),
        |fixture| fixture.edit(|spec| spec.bypass_optimistic_lock = true).act(Action::Apply),
    ];
    for Case { name, fixture: before, ready, .. } in cases() {
        for change in change {
            let mut changed = before.clone();
            change(&mut changed.status.conditions);
            let mut restored = changed.clone();
            restored.settle();
            if restored.phase() == before.phase() {
                let condition = restored.condition(READY).unwrap();
                assert_eq!(format!("{}/{}", condition.status, condition.reason), ready, "{name}");
                let records = restored.records;
                assert_eq!(restored.settle().records, records, "{name}: nothing more to write");
            }
            for happen in happens {
                let (mut one, mut other) = (before.clone(), changed.clone());
                happen(&mut one);
                happen(&mut other);
                assert_eq!((one.phases, one.written), (other.phases, other.written), "{name}");
            }
        }
    }
}
