//! Rules that hold in every phase.

use std::time::Duration;

use api::virt_platform_config::{Approval, FailurePolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use Phase::*;

/// A fixture in every phase.
pub(super) fn everywhere() -> Vec<Fixture> {
    let mut fixtures = Vec::new();
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.step(LastResult::None);
    fixtures.push(fixture.clone());
    fixture.step(LastResult::None);
    fixtures.push(fixture.clone());
    fixtures.push(fixture.settle().clone());
    fixtures.push(fixture.act(Action::Ignore).clone());
    fixtures.push(Fixture::new(LOAD_AWARE, Action::Apply).settle().clone());
    let mut missing = Fixture::new(LOAD_AWARE, Action::Apply);
    missing.cluster = missing.cluster.without(&KUBE_DESCHEDULER);
    fixtures.push(missing.settle().clone());
    let mut failed = Fixture::new(LOAD_AWARE, Action::Apply);
    failed.refuses = true;
    fixtures.push(failed.settle().clone());
    let mut errors = Fixture::new(LOAD_AWARE, Action::Apply);
    errors.refuses = true;
    errors.spec.failure_policy = FailurePolicy::Continue;
    fixtures.push(errors.settle().clone());
    fixtures.push(Fixture::completed(LOAD_AWARE));
    fixtures.push(Fixture::completed(LOAD_AWARE).interval(180).settle().clone());
    let mut upgraded = Fixture::completed(LOAD_AWARE);
    let item = upgraded.status.items.iter_mut().find(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
    item.managed_fields.pop();
    item.applied_fingerprint = None;
    item.state = api::virt_platform_config::ItemState::Completed;
    upgraded.version = "v2";
    upgraded.cluster.edit(&KUBE_DESCHEDULER, "cluster", &["spec", "evictionLimits", "total"], Some(1.into()));
    fixtures.push(upgraded.settle().clone());
    let mut scheduled = Fixture::new(LOAD_AWARE, Action::Apply);
    let start = Time(Timestamp::from_second(scheduled.second + 60).unwrap());
    scheduled.spec.approval = Some(Approval { not_before: Some(start), ..Approval::default() });
    fixtures.push(scheduled.settle().clone());
    let mut phases: Vec<_> = fixtures.iter().map(Fixture::phase).collect();
    phases.sort_by_key(|phase| Phase::ALL.iter().position(|known| known == phase));
    assert_eq!(phases, Phase::ALL, "a fixture for every phase");
    fixtures
}

#[test]
fn ignore_works_from_every_phase_and_keeps_what_is_there() {
    for mut fixture in everywhere() {
        let (phase, items, written) = (fixture.phase(), fixture.status.items.clone(), fixture.written.len());
        let objects = format!("{:?}", fixture.cluster);
        fixture.refuses = false;
        fixture.act(Action::Ignore);
        assert_eq!(fixture.phase(), Ignored, "from {phase}");
        assert_eq!((&fixture.status.items, fixture.written.len()), (&items, written), "from {phase}");
        assert_eq!(format!("{:?}", fixture.cluster), objects, "from {phase}: nothing is rolled back");
        assert_eq!(fixture.status.observed_generation, Some(fixture.generation));
    }
}

/// W7 (applied unlike reviewed), W8 (ignored options), W11 (errors as success), W29 (lagging observedGeneration), D21
/// (usual observedGeneration): also after errors and during a review.
#[test]
fn every_edit_of_the_spec_is_acted_on_in_every_phase() {
    for before in everywhere() {
        for action in [Action::DryRun, Action::Apply] {
            let mut fixture = before.clone();
            let phase = fixture.phase();
            fixture.refuses = false;
            fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(action);
            assert_eq!(fixture.status.observed_generation, Some(fixture.generation), "{phase} then {action}");
            if fixture.phase() == PrerequisiteFailed {
                continue;
            }
            let text = json!(fixture.item("enable-load-aware-descheduling").desired_state).to_string();
            assert!(text.contains("300"), "{phase} then {action}: a new plan");
            let wrote = fixture.written.len() > before.written.len();
            assert_eq!(wrote, action == Action::Apply && phase != Scheduled, "{phase} then {action}");
        }
    }
}

/// W7 (applied unlike reviewed): an approval may name what was read.
#[test]
fn only_an_approval_of_this_very_plan_counts_when_it_names_one() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.settle();
    let digest = fixture.status.plan_digest.clone().unwrap();
    let approve = |fixture: &mut Fixture, digest: &str| {
        let approval = Approval { plan_digest: Some(digest.to_owned()), ..Approval::default() };
        fixture.edit(|spec| spec.approval = Some(approval)).act(Action::Apply);
    };
    let other = "0".repeat(64);
    approve(&mut fixture, &other);
    assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 0));
    let condition = fixture.condition("ReviewRequired").unwrap();
    assert_eq!(condition.reason, "ApprovalMismatch");
    assert!(condition.message.contains(&other) && condition.message.contains(&digest), "{}", condition.message);
    approve(&mut fixture, &digest);
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
}

/// W24 (race before the write), W32 (wrong diffs): told while it waits, and refused when it is approved.
#[test]
fn a_plan_whose_target_moved_is_not_applied_unless_that_is_asked_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    assert_eq!(fixture.phase(), ReviewRequired);
    fixture.interval(77).settle();
    assert_eq!(fixture.condition("ReviewRequired").unwrap().reason, "PlanStale", "people are told before they approve");
    let mut bypassing = fixture.clone();
    fixture.act(Action::Apply);
    assert_eq!((fixture.phase(), fixture.condition("Failed").unwrap().reason.as_str()), (Failed, "PlanStale"));
    assert_eq!(fixture.written.len(), 2);
    bypassing.edit(|spec| spec.bypass_optimistic_lock = true).act(Action::Apply);
    assert_eq!((bypassing.phase(), bypassing.written.len()), (Completed, 3));
}

/// D8 (failure policy), D9 (exact Completed): and neither is a success.
#[test]
fn the_first_failure_ends_it_under_abort_and_nothing_does_under_continue() {
    let mut abort = Fixture::new(LOAD_AWARE, Action::Apply);
    abort.refuses = true;
    abort.settle();
    assert_eq!(abort.phase(), Failed);
    assert_eq!(abort.item("enable-load-aware-descheduling").state.as_str(), "Pending", "not touched");
    assert_eq!(abort.condition("Failed").unwrap().message, "Item 'enable-psi-metrics' failed: no");

    let mut proceed = Fixture::new(LOAD_AWARE, Action::Apply);
    proceed.refuses = true;
    proceed.spec.failure_policy = FailurePolicy::Continue;
    proceed.settle();
    assert_eq!(proceed.phase(), CompletedWithErrors);
    assert_eq!(proceed.condition("Completed").unwrap().status, "False");
}

/// W2 (timeout counts as success), W10 (stale wait clock), D6 (waitTimeout fails), D8 (failure policy): no event is
/// needed, and the end is not Completed.
#[test]
fn waiting_ends_by_the_clock_alone() {
    for (policy, phase) in [(FailurePolicy::Abort, Failed), (FailurePolicy::Continue, CompletedWithErrors)] {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
        fixture.spec.wait_timeout = Some("30m".into());
        fixture.spec.failure_policy = policy;
        fixture.settle().pass(29 * 60).settle();
        assert_eq!(fixture.phase(), InProgress);
        let observed = Observed {
            spec: &fixture.spec,
            generation: fixture.generation,
            status: &fixture.status,
            profile: profiles::find(LOAD_AWARE).unwrap(),
            version: "v1",
            epoch: None,
            now: Timestamp::from_second(fixture.second).unwrap(),
            intervals: Intervals::default(),
            approval_mode: ApprovalMode::Immediate,
        };
        let decision = decide(&observed, &Input::Facts(&fixture.facts()));
        assert_eq!(decision.step, Step::Done(Outcome { requeue_after: Some(Duration::from_secs(60)) }), "in time");
        fixture.pass(65).settle();
        assert_eq!(fixture.phase(), phase);
        let message = fixture.item("enable-psi-metrics").message.clone().unwrap();
        let text = "Timeout waiting for resource to become healthy (waited 30m5s, timeout 30m0s): MachineConfigPool";
        assert!(message.contains(text), "{message}");
    }
}

/// W12 (retry without pause): time alone does not make them valid.
#[test]
fn invalid_options_wait_for_another_spec_and_not_in_circles() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 1}})).settle();
    assert_eq!(fixture.phase(), PrerequisiteFailed);
    assert_eq!(fixture.condition("PrerequisiteFailed").unwrap().reason, "InvalidOptions");
    let records = fixture.records;
    fixture.pass(120).settle();
    assert_eq!(fixture.records, records);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 100}})).settle();
    assert_eq!(fixture.phase(), InProgress);
}

#[test]
fn what_vanished_under_a_plan_in_effect_means_a_review_when_it_is_back() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let there = fixture.cluster.clone();
    fixture.cluster = fixture.cluster.without(&KUBE_DESCHEDULER);
    fixture.settle();
    assert_eq!(fixture.phase(), PrerequisiteFailed);
    // The kind is back without its objects, as after its definition was deleted and created again.
    let empty = Fixture::new(LOAD_AWARE, Action::Apply).cluster;
    let mut back = fixture.clone();
    back.cluster = empty;
    back.settle();
    assert_eq!((back.phase(), back.written.len()), (ReviewRequired, 2));
    back.edit(|_| {}).settle();
    assert!(back.written.len() > 2, "acknowledged");
    fixture.cluster = there;
    fixture.settle();
    assert_eq!(fixture.phase(), Completed, "nothing was lost, so there is nothing to review");
}

/// W14 (leftover MachineConfig), D3 (swap removal): what is turned off is deleted, and that is waited for.
#[test]
fn removals_are_followed_to_the_nodes() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle();
    assert_eq!(fixture.phase(), InProgress);
    assert_eq!(fixture.item("enable-psi-metrics").operation.as_str(), "Delete");
    fixture.roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Completed);
    fixture.pass(300).settle();
    assert_eq!(fixture.phase(), Completed);
}

/// W10 (stale wait clock): nothing changes in this plan, so it was never written and its wait begins when it is found
/// to be under way.
#[test]
fn a_rollout_that_is_joined_later_is_timed_from_then_on() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle().pass(24 * 60 * 60);
    fixture.edit(|spec| spec.wait_timeout = Some("30m".into())).act(Action::DryRun);
    assert_eq!(fixture.phase(), InProgress, "what was before that does not count");
    fixture.pass(29 * 60).settle();
    assert_eq!(fixture.phase(), InProgress);
    fixture.pass(2 * 60).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Failed, 2));
}

/// W9 (stale Drifted): texts are for people. What happens next follows from phases, states, reasons and fingerprints.
#[test]
fn no_message_decides_what_happens_next() {
    for before in everywhere() {
        let mut reworded = before.clone();
        for item in &mut reworded.status.items {
            item.message = Some("other words".into());
        }
        for condition in &mut reworded.status.conditions {
            condition.message = "other words".into();
        }
        let happens: [fn(&mut Fixture) -> &mut Fixture; 5] = [
            Fixture::settle,
            |fixture| fixture.interval(60).settle(),
            |fixture| fixture.interval(240).settle(),
            |fixture| fixture.roll_out(&[PSI]).settle(),
            |fixture| fixture.edit(|spec| spec.bypass_optimistic_lock = true).act(Action::Apply),
        ];
        for (number, happen) in happens.iter().enumerate() {
            let (mut one, mut other) = (before.clone(), reworded.clone());
            happen(&mut one);
            happen(&mut other);
            assert_eq!((one.phases, one.written), (other.phases, other.written), "{}: {number}", before.phase());
        }
    }
}

/// W33 (no early impact): somebody who has no plan yet, because something is missing, still reads what the profile
/// may do.
#[test]
fn an_impact_is_shown_in_every_phase_with_and_without_a_plan() {
    for fixture in everywhere() {
        assert!(fixture.status.impact_severity.is_some(), "{}", fixture.phase());
        if fixture.status.items.is_empty() {
            assert_eq!(
                fixture.status.impact_severity.unwrap().as_str(),
                "High",
                "{}: the worst it may do",
                fixture.phase()
            );
        }
    }
}

/// D7 (regular comparison): watches may miss something; the clock does not.
#[test]
fn whatever_is_in_effect_is_looked_at_again_within_five_minutes() {
    let mut looked_at = Vec::new();
    for fixture in everywhere() {
        let observed = Observed {
            spec: &fixture.spec,
            generation: fixture.generation,
            status: &fixture.status,
            profile: profiles::find(LOAD_AWARE).unwrap(),
            version: fixture.version,
            epoch: None,
            now: Timestamp::from_second(fixture.second).unwrap(),
            intervals: Intervals::default(),
            approval_mode: ApprovalMode::Immediate,
        };
        let plan = fixture.make_plan();
        let decision = decide(&observed, &Input::Plan(plan.as_ref()));
        if let Step::Done(Outcome { requeue_after: Some(wait) }) = decision.step {
            assert!(wait <= Duration::from_secs(300), "{}: {wait:?}", fixture.phase());
            looked_at.push(fixture.phase());
        }
    }
    for phase in [ReviewRequired, InProgress, Completed, CompletedWithErrors, CompletedWithUpgrade, Drifted] {
        assert!(looked_at.contains(&phase), "{phase} is left to the watches: {looked_at:?}");
    }
}

#[test]
fn a_refused_plan_is_tried_again_by_itself_and_nothing_is_recorded_while_it_stays_refused() {
    for (action, phase, written) in [(Action::DryRun, ReviewRequired, 0), (Action::Apply, InProgress, 2)] {
        let mut fixture = Fixture::new(LOAD_AWARE, action);
        fixture.cluster.denies = true;
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Failed, 0));
        assert!(fixture.condition("Failed").unwrap().message.contains("frozen"), "{:?}", fixture.condition("Failed"));
        let records = fixture.records;
        fixture.pass(120).settle();
        assert_eq!((fixture.phase(), fixture.records), (Failed, records));
        fixture.cluster.denies = false;
        fixture.pass(120).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (phase, written), "{action}");
    }
}

/// After a failed write, a person has to decide: part of the plan may be applied.
#[test]
fn a_plan_that_failed_on_the_way_waits_for_an_edit() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.refuses = true;
    fixture.settle();
    fixture.refuses = false;
    fixture.pass(120).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Failed, 0));
}

/// The cluster as an old answer shows it: without the MachineConfig.
fn without_psi(mut cluster: crate::test_cluster::TestCluster) -> crate::test_cluster::TestCluster {
    cluster.edit(&crate::kind::MACHINE_CONFIG, PSI, &["metadata", "name"], Some("elsewhere".into()));
    cluster
}

fn is_marked(fixture: &Fixture) -> bool {
    fixture.condition("InputDependencyDrift").is_some_and(|condition| condition.status == "True")
}

/// W14 (leftover MachineConfig), D3 (swap removal): whatever hid it, and a person looks at it before it is made.
#[test]
fn a_removal_that_nobody_saw_to_be_needed_is_planned_when_it_is_seen() {
    for action in [Action::DryRun, Action::Apply] {
        let mut fixture = Fixture::completed(LOAD_AWARE);
        let there = fixture.cluster.clone();
        fixture.cluster = without_psi(there.clone());
        fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).act(action);
        assert_eq!(fixture.phase(), Completed, "nothing to remove");
        fixture.cluster = there;
        fixture.pass(300).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 2), "{action}");
        assert_eq!(fixture.item("enable-psi-metrics").operation.as_str(), "Delete");
        assert_eq!(is_marked(&fixture), action == Action::Apply, "a review is forced where none is due anyway");
        fixture.act(Action::DryRun).act(Action::Apply);
        assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 3), "{action}");
    }
}

/// D3 (swap removal): an approved removal whose target is gone is made if that is said once, and done if it is said
/// twice.
#[test]
fn an_approved_removal_is_not_given_up_for_one_old_answer() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).act(Action::DryRun);
    assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 2));
    let there = fixture.cluster.clone();
    fixture.cluster = without_psi(there.clone());
    fixture.edit(|spec| spec.action = Action::Apply);
    let mut gone = fixture.clone();

    let mut last = fixture.step(LastResult::None);
    fixture.cluster = there;
    while let Some(result) = last {
        last = fixture.step(result);
    }
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 3), "said once");

    gone.settle().roll_out(&[]).settle();
    assert_eq!((gone.phase(), gone.written.len()), (Completed, 2), "said twice");
    assert_eq!(gone.item("enable-psi-metrics").state.as_str(), "Completed");
}
