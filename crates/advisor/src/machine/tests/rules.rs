//! What people may do at any time, and what must never happen.

use std::time::Duration;

use api::virt_platform_config::{Approval, FailurePolicy};

use super::*;
use Phase::*;

/// A story in every phase there is.
fn everywhere() -> Vec<Story> {
    let mut stories = Vec::new();
    let mut story = Story::new(LOAD_AWARE, Action::DryRun);
    story.step(LastResult::None);
    stories.push(story.clone());
    story.step(LastResult::None);
    stories.push(story.clone());
    stories.push(story.settle().clone());
    stories.push(story.act(Action::Ignore).clone());
    stories.push(Story::new(LOAD_AWARE, Action::Apply).settle().clone());
    let mut missing = Story::new(LOAD_AWARE, Action::Apply);
    missing.cluster = missing.cluster.without(&KUBE_DESCHEDULER);
    stories.push(missing.settle().clone());
    let mut failed = Story::new(LOAD_AWARE, Action::Apply);
    failed.refuses = true;
    stories.push(failed.settle().clone());
    let mut errors = Story::new(LOAD_AWARE, Action::Apply);
    errors.refuses = true;
    errors.spec.failure_policy = FailurePolicy::Continue;
    stories.push(errors.settle().clone());
    stories.push(Story::completed(LOAD_AWARE));
    stories.push(Story::completed(LOAD_AWARE).interval(180).settle().clone());
    let mut upgraded = Story::completed(LOAD_AWARE);
    let item = upgraded.status.items.iter_mut().find(|item| item.target_ref.kind == "KubeDescheduler").unwrap();
    item.managed_fields.pop();
    item.applied_fingerprint = None;
    item.state = api::virt_platform_config::ItemState::Completed;
    upgraded.version = "v2";
    upgraded.cluster.edit(&KUBE_DESCHEDULER, "cluster", &["spec", "evictionLimits", "total"], Some(1.into()));
    stories.push(upgraded.settle().clone());
    let mut phases: Vec<_> = stories.iter().map(Story::phase).collect();
    phases.sort_by_key(|phase| Phase::ALL.iter().position(|known| known == phase));
    assert_eq!(phases, Phase::ALL, "a story for every phase");
    stories
}

#[test]
fn ignore_works_from_every_phase_and_keeps_what_is_there() {
    for mut story in everywhere() {
        let (phase, items, written) = (story.phase(), story.status.items.clone(), story.written.len());
        let objects = format!("{:?}", story.cluster);
        story.refuses = false;
        story.act(Action::Ignore);
        assert_eq!(story.phase(), Ignored, "from {phase}");
        assert_eq!((&story.status.items, story.written.len()), (&items, written), "from {phase}");
        assert_eq!(format!("{:?}", story.cluster), objects, "from {phase}: nothing is rolled back");
        assert_eq!(story.status.observed_generation, Some(story.generation));
    }
}

/// W7, W8, W11, W29, D21: also after errors and during a review.
#[test]
fn every_edit_of_the_spec_is_acted_on_in_every_phase() {
    for before in everywhere() {
        for action in [Action::DryRun, Action::Apply] {
            let mut story = before.clone();
            let phase = story.phase();
            story.refuses = false;
            story.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(action);
            assert_eq!(story.status.observed_generation, Some(story.generation), "{phase} then {action}");
            if story.phase() == PrerequisiteFailed {
                continue;
            }
            let text = json!(story.item("enable-load-aware-descheduling").desired_state).to_string();
            assert!(text.contains("300"), "{phase} then {action}: a new plan");
            let wrote = story.written.len() > before.written.len();
            assert_eq!(wrote, action == Action::Apply, "{phase} then {action}");
        }
    }
}

/// W7: an approval may name what was read.
#[test]
fn only_an_approval_of_this_very_plan_counts_when_it_names_one() {
    let mut story = Story::new(LOAD_AWARE, Action::DryRun);
    story.settle();
    let digest = story.status.plan_digest.clone().unwrap();
    let approve = |story: &mut Story, digest: &str| {
        let approval = Approval { plan_digest: Some(digest.to_owned()), reason: None };
        story.edit(|spec| spec.approval = Some(approval)).act(Action::Apply);
    };
    let other = "0".repeat(64);
    approve(&mut story, &other);
    assert_eq!((story.phase(), story.written.len()), (ReviewRequired, 0));
    let condition = story.condition("ReviewRequired").unwrap();
    assert_eq!(condition.reason, "ApprovalMismatch");
    assert!(condition.message.contains(&other) && condition.message.contains(&digest), "{}", condition.message);
    approve(&mut story, &digest);
    assert_eq!((story.phase(), story.written.len()), (InProgress, 2));
}

/// W24, W32: told while it waits, and refused when it is approved.
#[test]
fn a_plan_whose_target_moved_is_not_applied_unless_that_is_asked_for() {
    let mut story = Story::completed(LOAD_AWARE);
    story.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    assert_eq!(story.phase(), ReviewRequired);
    story.interval(77).settle();
    assert_eq!(story.condition("ReviewRequired").unwrap().reason, "PlanStale", "people are told before they approve");
    let mut bypassing = story.clone();
    story.act(Action::Apply);
    assert_eq!((story.phase(), story.condition("Failed").unwrap().reason.as_str()), (Failed, "PlanStale"));
    assert_eq!(story.written.len(), 2);
    bypassing.edit(|spec| spec.bypass_optimistic_lock = true).act(Action::Apply);
    assert_eq!((bypassing.phase(), bypassing.written.len()), (Completed, 3));
}

/// D8, D9: and neither is a success.
#[test]
fn the_first_failure_ends_it_under_abort_and_nothing_does_under_continue() {
    let mut abort = Story::new(LOAD_AWARE, Action::Apply);
    abort.refuses = true;
    abort.settle();
    assert_eq!(abort.phase(), Failed);
    assert_eq!(abort.item("enable-load-aware-descheduling").state.as_str(), "Pending", "not touched");
    assert_eq!(abort.condition("Failed").unwrap().message, "Item 'enable-psi-metrics' failed: no");

    let mut proceed = Story::new(LOAD_AWARE, Action::Apply);
    proceed.refuses = true;
    proceed.spec.failure_policy = FailurePolicy::Continue;
    proceed.settle();
    assert_eq!(proceed.phase(), CompletedWithErrors);
    assert_eq!(proceed.condition("Completed").unwrap().status, "False");
}

/// W2, W10, D6, D8: no event is needed, and the end is not Completed.
#[test]
fn waiting_ends_by_the_clock_alone() {
    for (policy, phase) in [(FailurePolicy::Abort, Failed), (FailurePolicy::Continue, CompletedWithErrors)] {
        let mut story = Story::new(LOAD_AWARE, Action::Apply);
        story.spec.wait_timeout = Some("30m".into());
        story.spec.failure_policy = policy;
        story.settle().pass(29 * 60).settle();
        assert_eq!(story.phase(), InProgress);
        let observed = Observed {
            spec: &story.spec,
            generation: story.generation,
            status: &story.status,
            profile: profiles::find(LOAD_AWARE).unwrap(),
            version: "v1",
            epoch: None,
            now: Timestamp::from_second(story.second).unwrap(),
            intervals: Intervals::default(),
        };
        let decision = decide(&observed, &Input::Facts(&story.facts()));
        assert_eq!(decision.step, Step::Done(Outcome { requeue_after: Some(Duration::from_secs(60)) }), "in time");
        story.pass(65).settle();
        assert_eq!(story.phase(), phase);
        let message = story.item("enable-psi-metrics").message.clone().unwrap();
        let text = "Timeout waiting for resource to become healthy (waited 30m5s, timeout 30m0s): MachineConfigPool";
        assert!(message.contains(text), "{message}");
    }
}

/// W12: time alone does not make them valid.
#[test]
fn invalid_options_wait_for_another_spec_and_not_in_circles() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.options(json!({"loadAware": {"deschedulingIntervalSeconds": 1}})).settle();
    assert_eq!(story.phase(), PrerequisiteFailed);
    assert_eq!(story.condition("PrerequisiteFailed").unwrap().reason, "InvalidOptions");
    let records = story.records;
    story.pass(120).settle();
    assert_eq!(story.records, records);
    story.options(json!({"loadAware": {"deschedulingIntervalSeconds": 100}})).settle();
    assert_eq!(story.phase(), InProgress);
}

#[test]
fn what_vanished_under_a_plan_in_force_means_a_review_when_it_is_back() {
    let mut story = Story::completed(LOAD_AWARE);
    let there = story.cluster.clone();
    story.cluster = story.cluster.without(&KUBE_DESCHEDULER);
    story.settle();
    assert_eq!(story.phase(), PrerequisiteFailed);
    // Back without its objects, as when a definition was deleted and created again.
    let empty = Story::new(LOAD_AWARE, Action::Apply).cluster;
    let mut back = story.clone();
    back.cluster = empty;
    back.settle();
    assert_eq!((back.phase(), back.written.len()), (ReviewRequired, 2));
    back.edit(|_| {}).settle();
    assert!(back.written.len() > 2, "acknowledged");
    story.cluster = there;
    story.settle();
    assert_eq!(story.phase(), Completed, "nothing was lost, so there is nothing to review");
}

/// W14, D3: what is turned off is deleted, and that is waited for.
#[test]
fn removals_are_followed_to_the_nodes() {
    let mut story = Story::completed(LOAD_AWARE);
    story.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle();
    assert_eq!(story.phase(), InProgress);
    assert_eq!(story.item("enable-psi-metrics").operation.as_str(), "Delete");
    story.roll_out(&[]).settle();
    assert_eq!(story.phase(), Completed);
    story.pass(300).settle();
    assert_eq!(story.phase(), Completed);
}

/// W10: nothing changes in this plan, so it was never written and its wait begins when it is found to be under way.
#[test]
fn a_rollout_that_is_joined_later_is_timed_from_then_on() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.settle().pass(24 * 60 * 60);
    story.edit(|spec| spec.wait_timeout = Some("30m".into())).act(Action::DryRun);
    assert_eq!(story.phase(), InProgress, "what was before that does not count");
    story.pass(29 * 60).settle();
    assert_eq!(story.phase(), InProgress);
    story.pass(2 * 60).settle();
    assert_eq!((story.phase(), story.written.len()), (Failed, 2));
}

/// W9: texts are for people. What happens next follows from phases, states, reasons and fingerprints.
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
        let happens: [fn(&mut Story) -> &mut Story; 5] = [
            Story::settle,
            |story| story.interval(60).settle(),
            |story| story.interval(240).settle(),
            |story| story.roll_out(&[PSI]).settle(),
            |story| story.edit(|spec| spec.bypass_optimistic_lock = true).act(Action::Apply),
        ];
        for (number, happen) in happens.iter().enumerate() {
            let (mut one, mut other) = (before.clone(), reworded.clone());
            happen(&mut one);
            happen(&mut other);
            assert_eq!((one.phases, one.written), (other.phases, other.written), "{}: {number}", before.phase());
        }
    }
}

/// W33: somebody who has no plan yet, because something is missing, still reads what the profile may do.
#[test]
fn an_impact_is_shown_in_every_phase_with_and_without_a_plan() {
    for story in everywhere() {
        assert!(story.status.impact_severity.is_some(), "{}", story.phase());
        if story.status.items.is_empty() {
            assert_eq!(
                story.status.impact_severity.unwrap().as_str(),
                "High",
                "{}: the worst it may do",
                story.phase()
            );
        }
    }
}

/// D7: watches may miss something; the clock does not.
#[test]
fn whatever_is_in_force_is_looked_at_again_within_five_minutes() {
    let mut looked_at = Vec::new();
    for story in everywhere() {
        let observed = Observed {
            spec: &story.spec,
            generation: story.generation,
            status: &story.status,
            profile: profiles::find(LOAD_AWARE).unwrap(),
            version: story.version,
            epoch: None,
            now: Timestamp::from_second(story.second).unwrap(),
            intervals: Intervals::default(),
        };
        let plan = story.make_plan();
        let decision = decide(&observed, &Input::Plan(plan.as_ref()));
        if let Step::Done(Outcome { requeue_after: Some(wait) }) = decision.step {
            assert!(wait <= Duration::from_secs(300), "{}: {wait:?}", story.phase());
            looked_at.push(story.phase());
        }
    }
    for phase in [ReviewRequired, InProgress, Completed, CompletedWithErrors, CompletedWithUpgrade, Drifted] {
        assert!(looked_at.contains(&phase), "{phase} is left to the watches: {looked_at:?}");
    }
}

#[test]
fn a_refused_plan_is_tried_again_by_itself_and_nothing_is_recorded_while_it_stays_refused() {
    for (action, phase, written) in [(Action::DryRun, ReviewRequired, 0), (Action::Apply, InProgress, 2)] {
        let mut story = Story::new(LOAD_AWARE, action);
        story.cluster.denies = true;
        story.settle();
        assert_eq!((story.phase(), story.written.len()), (Failed, 0));
        assert!(story.condition("Failed").unwrap().message.contains("frozen"), "{:?}", story.condition("Failed"));
        let records = story.records;
        story.pass(120).settle();
        assert_eq!((story.phase(), story.records), (Failed, records));
        story.cluster.denies = false;
        story.pass(120).settle();
        assert_eq!((story.phase(), story.written.len()), (phase, written), "{action}");
    }
}

/// A failure on the way is for a person: what was written may not be what it takes to try again.
#[test]
fn a_plan_that_failed_on_the_way_waits_for_an_edit() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.refuses = true;
    story.settle();
    story.refuses = false;
    story.pass(120).settle();
    assert_eq!((story.phase(), story.written.len()), (Failed, 0));
}

/// The machine config as an old answer tells it: not there.
fn without_psi(mut cluster: crate::test_cluster::TestCluster) -> crate::test_cluster::TestCluster {
    cluster.edit(&crate::kind::MACHINE_CONFIG, PSI, &["metadata", "name"], Some("elsewhere".into()));
    cluster
}

fn is_marked(story: &Story) -> bool {
    story.condition("InputDependencyDrift").is_some_and(|condition| condition.status == "True")
}

/// W14, D3: whatever hid it, and a person looks at it before it is made.
#[test]
fn a_removal_that_nobody_saw_to_be_needed_is_planned_when_it_is_seen() {
    for action in [Action::DryRun, Action::Apply] {
        let mut story = Story::completed(LOAD_AWARE);
        let there = story.cluster.clone();
        story.cluster = without_psi(there.clone());
        story.options(json!({"loadAware": {"enablePSIMetrics": false}})).act(action);
        assert_eq!(story.phase(), Completed, "nothing to remove");
        story.cluster = there;
        story.pass(300).settle();
        assert_eq!((story.phase(), story.written.len()), (ReviewRequired, 2), "{action}");
        assert_eq!(story.item("enable-psi-metrics").operation.as_str(), "Delete");
        assert_eq!(is_marked(&story), action == Action::Apply, "a review is forced where none is due anyway");
        story.act(Action::DryRun).act(Action::Apply);
        assert_eq!((story.phase(), story.written.len()), (InProgress, 3), "{action}");
    }
}

/// D3: an approved removal whose target is gone is made if that is said once, and done if it is said twice.
#[test]
fn an_approved_removal_is_not_given_up_for_one_old_answer() {
    let mut story = Story::completed(LOAD_AWARE);
    story.options(json!({"loadAware": {"enablePSIMetrics": false}})).act(Action::DryRun);
    assert_eq!((story.phase(), story.written.len()), (ReviewRequired, 2));
    let there = story.cluster.clone();
    story.cluster = without_psi(there.clone());
    story.edit(|spec| spec.action = Action::Apply);
    let mut gone = story.clone();

    let mut last = story.step(LastResult::None);
    story.cluster = there;
    while let Some(result) = last {
        last = story.step(result);
    }
    assert_eq!((story.phase(), story.written.len()), (InProgress, 3), "said once");

    gone.settle().roll_out(&[]).settle();
    assert_eq!((gone.phase(), gone.written.len()), (Completed, 2), "said twice");
    assert_eq!(gone.item("enable-psi-metrics").state.as_str(), "Completed");
}
