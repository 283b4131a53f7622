//! What approves a plan, what turns it down, and when an approved plan starts.

use api::virt_platform_config::{Approval, FailurePolicy, Rejection};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::*;
use crate::{Change, ObjectRef};
use Phase::*;

const DAY: i64 = 24 * 60 * 60;

fn reviewed() -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
    fixture.approval_mode = ApprovalMode::Reviewed;
    fixture
}

impl Fixture {
    /// Approves the plan with its risks, as far as `change` does not say otherwise.
    fn approve(&mut self, change: impl FnOnce(&mut Approval)) -> &mut Self {
        let plan_digest = self.status.plan_digest.clone();
        let risks = self.status.risks.iter().map(|risk| risk.name.clone()).collect();
        self.edit(|spec| {
            let approval = spec.approval.get_or_insert_default();
            approval.plan_digest = plan_digest;
            approval.accepted_risks = risks;
            change(approval);
        });
        self.act(Action::Apply)
    }

    fn after(&self, seconds: i64) -> Option<Time> {
        Some(Time(Timestamp::from_second(self.second + seconds).unwrap()))
    }

    fn review(&self) -> (&str, &str) {
        let condition = self.condition("ReviewRequired").unwrap();
        (condition.reason.as_str(), condition.message.as_str())
    }

    fn is_untouched(&self, phase: Phase) {
        assert_eq!((self.phase(), self.written.len()), (phase, 0), "{:?}", self.status.conditions);
    }
}

#[test]
fn in_mode_reviewed_only_the_digest_approves() {
    let mut fixture = reviewed();
    fixture.settle();
    let digest = fixture.status.plan_digest.clone().unwrap();
    let (reason, message) = fixture.review();
    assert_eq!(reason, "ApprovalRequired");
    assert!(message.contains(&format!("planDigest to {digest} and action to 'Apply'")), "{message}");

    fixture.act(Action::Apply).is_untouched(ReviewRequired);
    assert!(fixture.review().1.ends_with(&format!("planDigest to {digest} to execute.")));
    fixture.approve(|_| {});
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
}

/// In mode Immediate nobody is asked. Risks that only the approver sees may be named as well.
#[test]
fn in_mode_reviewed_the_risks_of_a_plan_are_accepted_by_name() {
    let helm = |fixture: &mut Fixture| {
        let target = ObjectRef::namespaced(&KUBE_DESCHEDULER, "openshift-kube-descheduler-operator", "cluster");
        let fields = json!({
            "apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler",
            "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
            "spec": {"deschedulingIntervalSeconds": 77},
        });
        fixture.cluster.change(&target, "v1", &Change::Apply { fields, remove: Vec::new() }, "helm");
    };
    let mut fixture = reviewed();
    helm(&mut fixture);
    fixture.settle();
    assert_eq!(fixture.status.risks.iter().map(|risk| risk.name.as_str()).collect::<Vec<_>>(), ["TakesOverFields"]);
    fixture.approve(|approval| approval.accepted_risks.clear()).is_untouched(ReviewRequired);
    let (reason, message) = fixture.review();
    assert_eq!(reason, "RisksNotAccepted");
    assert!(message.contains("nobody has accepted: TakesOverFields. "), "{message}");

    let accepted = ["VMRestarts".to_owned(), "TakesOverFields".to_owned()];
    fixture.approve(|approval| approval.accepted_risks = accepted.to_vec());
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
    assert_eq!(fixture.status.approval.as_ref().unwrap().accepted_risks, accepted);

    let mut immediate = Fixture::new(LOAD_AWARE, Action::Apply);
    helm(&mut immediate);
    immediate.settle();
    assert_eq!((immediate.phase(), immediate.written.len()), (InProgress, 2));
}

/// The mode of the operator is a default: a configuration may be stricter, or less strict.
#[test]
fn the_mode_of_the_configuration_wins() {
    for (default, own, expected) in [
        (ApprovalMode::Immediate, ApprovalMode::Reviewed, ReviewRequired),
        (ApprovalMode::Reviewed, ApprovalMode::Immediate, InProgress),
    ] {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
        fixture.approval_mode = default;
        fixture.spec.approval = Some(Approval { mode: Some(own), ..Approval::default() });
        assert_eq!(fixture.settle().phase(), expected);
    }
}

/// Whatever leads to a new plan that changes something: it waits.
#[test]
fn in_mode_reviewed_no_edit_leads_to_an_unread_change() {
    let mut approved = reviewed();
    approved.settle().approve(|_| {}).roll_out(&[PSI]).settle();
    assert_eq!(approved.phase(), Completed);
    let written = approved.written.len();

    type Edit = fn(&mut Fixture);
    let edits: [(&str, Edit); 5] = [
        ("options", |fixture| {
            fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}}));
        }),
        ("waitTimeout after an input changed", |fixture| {
            fixture.migrations(10).edit(|spec| spec.wait_timeout = Some("2h".into()));
        }),
        ("failurePolicy after somebody changed a target", |fixture| {
            fixture.interval(77).edit(|spec| spec.failure_policy = FailurePolicy::Continue);
        }),
        ("the digest taken out", |fixture| {
            fixture.interval(77).edit(|spec| spec.approval = None);
        }),
        ("Ignore and back", |fixture| {
            fixture.interval(77).act(Action::Ignore).edit(|spec| spec.action = Action::Apply);
        }),
    ];
    for (case, edit) in edits {
        let mut fixture = approved.clone();
        edit(&mut fixture);
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, written), "{case}");
        fixture.approve(|_| {});
        assert!(fixture.written.len() > written, "{case}: {:?}", fixture.status.conditions);
    }
}

/// An edit that changes nothing needs nobody.
#[test]
fn in_mode_reviewed_a_plan_without_changes_completes() {
    let mut fixture = reviewed();
    fixture.settle().approve(|_| {}).roll_out(&[PSI]).settle();
    fixture.edit(|spec| spec.wait_timeout = Some("2h".into())).settle();
    assert_eq!(fixture.phase(), Completed);
}

#[test]
fn the_approval_that_was_acted_on_is_recorded_in_either_mode() {
    let mut immediate = Fixture::new(LOAD_AWARE, Action::Apply);
    immediate.settle();
    let granted = immediate.status.approval.clone().unwrap();
    assert_eq!(Some(&granted.plan_digest), immediate.status.plan_digest.as_ref());
    assert_eq!((granted.mode, granted.generation, granted.approved_by), (ApprovalMode::Immediate, 1, None));

    let mut fixture = reviewed();
    fixture.settle();
    assert_eq!(fixture.status.approval, None, "nobody has approved it");
    let time = fixture.after(0).unwrap();
    fixture.approve(|approval| {
        approval.approved_by = Some("alice".into());
        approval.reason = Some("CHG-17".into());
    });
    let granted = fixture.status.approval.clone().unwrap();
    assert_eq!((granted.mode, granted.generation, &granted.time), (ApprovalMode::Reviewed, fixture.generation, &time));
    assert_eq!((granted.approved_by.as_deref(), granted.reason.as_deref()), (Some("alice"), Some("CHG-17")));

    fixture.roll_out(&[PSI]).pass(DAY).settle();
    assert_eq!(fixture.status.approval, Some(granted.clone()), "it stays as it was given");
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).settle();
    assert_eq!(fixture.status.approval, Some(granted), "nobody has approved another plan");
}

#[test]
fn a_rejected_plan_is_not_applied_until_it_changes() {
    for mode in [ApprovalMode::Immediate, ApprovalMode::Reviewed] {
        let mut fixture = Fixture::new(LOAD_AWARE, Action::DryRun);
        fixture.approval_mode = mode;
        fixture.settle();
        let digest = fixture.status.plan_digest.clone().unwrap();
        let rejected = Rejection { plan_digest: digest, reason: Some("not before the audit".into()) };
        fixture.edit(|spec| spec.approval.get_or_insert_default().rejected = Some(rejected)).settle();
        assert_eq!(fixture.review().0, "Rejected");
        assert!(fixture.review().1.contains("was rejected: not before the audit."), "{}", fixture.review().1);

        fixture.approve(|_| {}).is_untouched(ReviewRequired);
        assert_eq!(fixture.review().0, "Rejected", "it is both approved and rejected");

        fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).settle();
        assert_ne!(fixture.review().0, "Rejected", "another plan");
        fixture.approve(|_| {});
        assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
    }
}

#[test]
fn a_plan_that_is_rejected_while_it_is_applied_goes_no_further() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    let mut last = LastResult::None;
    while fixture.written.is_empty() {
        last = fixture.step(last).unwrap();
    }
    let plan_digest = fixture.status.plan_digest.clone().unwrap();
    let rejected = Rejection { plan_digest, reason: None };
    fixture.edit(|spec| spec.approval.get_or_insert_default().rejected = Some(rejected)).settle();
    assert_eq!(fixture.written, ["enable-psi-metrics"], "the second item is not written");
    assert_eq!(fixture.phase(), ReviewRequired, "what is left is another plan, which nobody has read");
}

#[test]
fn an_approved_plan_waits_for_its_time() {
    let mut fixture = reviewed();
    fixture.settle();
    let start = fixture.after(DAY);
    fixture.approve(|approval| approval.not_before = start.clone()).is_untouched(Scheduled);
    let message = &fixture.condition("Scheduled").unwrap().message;
    assert_eq!(*message, format!("Plan approved. It starts at {}.", start.unwrap().0));
    assert_eq!(fixture.status.approval.as_ref().map(|granted| granted.generation), Some(fixture.generation));

    fixture.pass(DAY - 1).settle().is_untouched(Scheduled);
    fixture.pass(1).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
}

#[test]
fn a_plan_that_waits_for_its_time_is_compared_with_the_cluster() {
    let mut scheduled = Fixture::completed(LOAD_AWARE);
    scheduled.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    let (start, written) = (scheduled.after(DAY), scheduled.written.len());
    scheduled.approve(|approval| approval.not_before = start);
    assert_eq!(scheduled.phase(), Scheduled);

    type Disturb = fn(&mut Fixture);
    let disturbances: [(&str, Disturb, Phase); 4] = [
        (
            "somebody changes the target",
            |fixture| {
                fixture.interval(77);
            },
            ReviewRequired,
        ),
        (
            "an input changes",
            |fixture| {
                fixture.migrations(10);
            },
            ReviewRequired,
        ),
        (
            "the approval is withdrawn",
            |fixture| {
                fixture.act(Action::DryRun);
            },
            ReviewRequired,
        ),
        (
            "it is ignored",
            |fixture| {
                fixture.act(Action::Ignore);
            },
            Ignored,
        ),
    ];
    for (case, disturb, expected) in disturbances {
        let mut fixture = scheduled.clone();
        disturb(&mut fixture);
        assert_eq!(fixture.settle().phase(), expected, "{case}: people are told before the time comes");
        assert_eq!(fixture.pass(DAY).settle().phase(), expected, "{case}");
        assert_eq!(fixture.written.len(), written, "{case}");
    }
    let mut moved = scheduled.clone();
    moved.interval(77).settle();
    assert_eq!(moved.review().0, "PlanStale");
    scheduled.pass(DAY).settle();
    assert_eq!((scheduled.phase(), scheduled.written.len()), (Completed, written + 1), "undisturbed");
}

/// Who lets targets be overwritten lets them be overwritten later, too.
#[test]
fn a_plan_that_overwrites_changes_waits_for_its_time_in_spite_of_them() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.options(json!({"loadAware": {"deschedulingIntervalSeconds": 300}})).act(Action::DryRun);
    let (start, written) = (fixture.after(DAY), fixture.written.len());
    fixture.edit(|spec| {
        spec.bypass_optimistic_lock = true;
        spec.approval = Some(Approval { not_before: start, ..Approval::default() });
    });
    assert_eq!(fixture.act(Action::Apply).interval(77).settle().phase(), Scheduled);
    fixture.pass(DAY).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, written + 1));
}

#[test]
fn an_approval_that_has_ended_approves_nothing() {
    let mut fixture = reviewed();
    fixture.settle();
    let (start, end) = (fixture.after(DAY), fixture.after(2 * DAY));
    fixture.approve(|approval| (approval.not_before, approval.not_after) = (start, end.clone()));
    fixture.is_untouched(Scheduled);
    fixture.pass(2 * DAY).settle().is_untouched(ReviewRequired);
    assert_eq!(fixture.review().0, "ApprovalExpired", "nobody attended to it in time");
    assert!(fixture.review().1.contains(&end.unwrap().0.to_string()), "{}", fixture.review().1);

    let later = fixture.after(DAY);
    fixture.approve(|approval| approval.not_after = later);
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2), "approved again");
}

#[test]
fn a_window_that_makes_no_sense_is_said_and_nothing_starts() {
    let mut fixture = reviewed();
    fixture.settle();
    let window = json!({"start": "22:00", "duration": "6h", "timeZone": "Mars/Olympus"});
    fixture.approve(|approval| approval.window = serde_json::from_value(window).unwrap()).is_untouched(ReviewRequired);
    assert_eq!(fixture.review().0, "WindowInvalid");
    assert!(fixture.review().1.contains("no time zone 'Mars/Olympus'"), "{}", fixture.review().1);
}

/// Found by a benchmark: a result that was recorded at every decision, each time with a new time, kept the plan from going on.
#[test]
fn a_clock_that_moves_between_decisions_changes_nothing() {
    let mut still = Fixture::new(LOAD_AWARE, Action::Apply);
    let mut moving = still.clone();
    moving.seconds_per_step = 1;
    for fixture in [&mut still, &mut moving] {
        fixture.settle().roll_out(&[PSI]).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));
    }
    assert_eq!(moving.records, still.records);
}

/// A window of an hour each day; the tests start at its beginning.
fn hour(fixture: &Fixture) -> Value {
    let now = Timestamp::from_second(fixture.second).unwrap();
    json!({"start": now.strftime("%H:%M").to_string(), "duration": "1h", "timeZone": "UTC"})
}

/// Drift is reverted without a person, but not by a reboot at noon.
#[test]
fn outside_of_its_window_nothing_is_started_that_reboots_nodes() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.second = DAY * 20_000;
    let window = hour(&fixture);
    fixture.spec.bypass_optimistic_lock = true;
    fixture.spec.approval = serde_json::from_value(json!({ "window": window })).unwrap();
    fixture.settle().roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));

    fixture.pass(12 * 60 * 60);
    fixture.cluster.edit(&MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=0"])));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
    let message = fixture.item("enable-psi-metrics").message.clone().unwrap();
    assert_eq!(message, "Waits for its window, which opens at 2024-10-05T00:00:00Z");
    fixture.pass(12 * 60 * 60).settle();
    assert_eq!(fixture.written[2..], ["enable-psi-metrics"], "the window of the next day");
}

/// What an approval with an end does not start, a person has to approve again.
#[test]
fn after_the_end_of_an_approval_nothing_is_started_that_reboots_nodes() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.spec.bypass_optimistic_lock = true;
    let end = fixture.after(DAY);
    fixture.spec.approval = Some(Approval { not_after: end, ..Approval::default() });
    fixture.settle().roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Completed, 2));
    fixture.pass(DAY);
    fixture.cluster.edit(&MACHINE_CONFIG, PSI, &["spec", "kernelArguments"], Some(json!(["psi=0"])));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (ReviewRequired, 2));
    assert_eq!(fixture.review().0, "ApprovalExpired");
}

/// The end of the window does not matter to nodes that are being updated.
#[test]
fn nodes_that_roll_are_followed_after_the_end_of_the_window() {
    let mut fixture = reviewed();
    fixture.second = DAY * 20_000;
    fixture.settle();
    let window = hour(&fixture);
    fixture.approve(|approval| approval.window = serde_json::from_value(window).unwrap());
    assert_eq!((fixture.phase(), fixture.written.len()), (InProgress, 2));
    fixture.pass(2 * 60 * 60).settle();
    assert_eq!(fixture.phase(), InProgress, "nodes are still being updated");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Completed);
}
