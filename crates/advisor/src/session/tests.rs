//! Old answers, plans that are started early, and records that must not be forgotten.

use api::virt_platform_config::Restore;
use serde_json::json;

use super::*;

fn config(uid: &str, version: &str) -> Box<VirtPlatformConfig> {
    serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": "example-profile", "uid": uid, "resourceVersion": version, "generation": 1},
        "spec": {"profile": "example-profile", "action": "DryRun"},
    }))
    .unwrap()
}

fn context() -> Context<'static> {
    let profile = crate::profiles::find("example-profile").unwrap();
    Context {
        profile,
        version: "1",
        epoch: None,
        intervals: Intervals::default(),
        approval_mode: ApprovalMode::Immediate,
    }
}

/// Found by a random schedule: an old answer to a read after a lost write made the operator forget an edit.
#[test]
fn an_old_version_of_the_configuration_is_not_taken_for_the_newest() {
    let mut session = Session::new(*config("u", "12"), None);
    let is_retried = |session: &mut Session, uid, version| {
        let input = Input::Config(Some(config(uid, version)));
        let step = session.next(&context(), Timestamp::UNIX_EPOCH, input);
        matches!(step, Step::Done(Outcome::Retry(_)))
    };
    assert!(is_retried(&mut session, "u", "9"));
    assert_eq!(session.config().unwrap().metadata.resource_version.as_deref(), Some("12"));
    assert!(!is_retried(&mut session, "u", "12"), "the same");
    assert!(is_retried(&mut session, "t", "3"), "an earlier object of the name");
    assert!(!is_retried(&mut session, "v", "13"), "a later object of the name");
}

/// A plan that is started during an update of the status is the one that is requested afterwards.
#[test]
fn a_plan_is_started_early_only_if_it_is_made_next() {
    let now = Timestamp::UNIX_EPOCH;
    let mut session = Session::new(*config("u", "1"), None);
    let mut step = session.start(&context(), now);
    let mut phases = Vec::new();
    while let Step::Send(Request::UpdateStatus(new)) = step {
        assert!(session.makes_plan_next(&new), "{:?}", new.status);
        phases.push(new.status.as_ref().unwrap().phase.unwrap());
        step = session.next(&context(), now, Input::StatusUpdated(new));
    }
    assert_eq!(phases, [Phase::Pending, Phase::Drafting]);
    assert_eq!(step, Step::Send(Request::MakePlan { facts: None }));
    let no_plan = Input::Plan(Box::new(Err(PlanFailure::Missing("it".into()))));
    let step = session.next(&context(), now, no_plan);
    let Step::Send(Request::UpdateStatus(updated)) = step else { panic!("the status says what is missing") };
    assert!(!session.makes_plan_next(&updated), "nothing can be planned");

    let mut ignored = *config("u", "1");
    ignored.spec.action = api::virt_platform_config::Action::Ignore;
    let mut session = Session::new(ignored, None);
    let step = session.start(&context(), now);
    let Step::Send(Request::UpdateStatus(updated)) = step else { panic!("the status says that it is ignored") };
    assert!(!session.makes_plan_next(&updated), "no plan is wanted");
}

/// Found by a random schedule: a record that could not be closed was forgotten when the next plan got its own.
#[test]
fn a_record_is_closed_before_the_status_names_another_one() {
    let now = Timestamp::UNIX_EPOCH;
    let status = |record: &str| -> VirtPlatformConfigStatus {
        let record = json!({"name": record, "planDigest": "d", "created": true});
        serde_json::from_value(json!({"phase": "ReviewRequired", "planDigest": "d", "record": record})).unwrap()
    };
    let new = status("example-profile-2");
    for (input, expected) in [(RecordInput::Closed, None), (RecordInput::NotClosed, Some("not closed"))] {
        let mut config = config("u", "1");
        config.status = Some(status("example-profile-1"));
        let mut session = Session::new(*config, None);
        assert_eq!(session.close_forgotten_record(&status("example-profile-1"), now), None, "it keeps its name");
        let step = session.close_forgotten_record(&new, now);
        let Some(Step::Send(Request::CloseRecord { name, .. })) = step else { panic!("{step:?}") };
        assert_eq!(name, "example-profile-1");
        session.next(&context(), now, Input::Record(input));
        let why = match session.close_forgotten_record(&new, now) {
            Some(Step::Done(Outcome::Retry(why))) => Some(why),
            None => None,
            other => panic!("{other:?}"),
        };
        assert_eq!(why.is_some(), expected.is_some(), "{why:?}");
        assert!(why.zip(expected).is_none_or(|(why, expected)| why.contains(expected)));
    }
}

/// Found by reading: such a record stayed open until somebody edited something, or the operator was started again.
#[test]
fn a_record_that_could_not_be_closed_is_tried_again_where_nothing_else_is_waited_for() {
    let now = Timestamp::UNIX_EPOCH;
    for (phase, action) in [("Failed", "Apply"), ("Ignored", "Ignore"), ("Completed", "Apply")] {
        let mut ended = *config("u", "1");
        ended.spec.action = serde_json::from_value(json!(action)).unwrap();
        // A configuration that has restored everything waits for nothing.
        ended.spec.restore = (phase == "Completed").then(|| Restore { record: "original".into() });
        let record = json!({"name": "example-profile-1", "planDigest": "d", "created": true});
        let condition = json!({
            "type": phase, "status": "True", "reason": phase, "message": "", "lastTransitionTime": "1970-01-01T00:00:00Z",
        });
        ended.status = serde_json::from_value(json!({
            "phase": phase, "planDigest": "d", "record": record, "observedGeneration": 1, "operatorVersion": "1",
            "restore": ended.spec.restore, "conditions": [condition],
        }))
        .unwrap();
        let rest = |input: Input| {
            let mut session = Session::new(ended.clone(), None);
            let mut step = session.start(&context(), now);
            assert!(matches!(step, Step::Send(Request::CloseRecord { .. })), "{phase}: {step:?}");
            step = session.next(&context(), now, input);
            while let Step::Send(Request::UpdateStatus(new)) = step {
                step = session.next(&context(), now, Input::StatusUpdated(new));
            }
            step
        };
        let soon = Some(Intervals::default().prerequisites);
        let settled = |requeue_after| Step::Done(Outcome::Settled { requeue_after });
        assert_eq!(rest(Input::Record(RecordInput::Closed)), settled(None), "{phase}");
        assert_eq!(rest(Input::Record(RecordInput::NotClosed)), settled(soon), "{phase}");
    }
}
