//! A status that somebody else has written to, and times of a clock that is wrong.

use api::virt_platform_config::{Action, Phase};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{LOAD_AWARE, PSI, Story};

const PHASES: [Phase; 11] = [
    Phase::Ignored,
    Phase::Pending,
    Phase::Drafting,
    Phase::PrerequisiteFailed,
    Phase::ReviewRequired,
    Phase::InProgress,
    Phase::Completed,
    Phase::CompletedWithErrors,
    Phase::CompletedWithUpgrade,
    Phase::Failed,
    Phase::Drifted,
];

impl Story {
    fn time(&self, from_now: i64) -> Time {
        Time(Timestamp::from_second(self.second + from_now).unwrap())
    }
}

#[test]
fn a_phase_that_somebody_else_wrote_is_set_right_without_an_edit_and_orders_nothing() {
    let mut reviewed = Story::new(LOAD_AWARE, Action::DryRun);
    reviewed.settle();
    let mut waiting = Story::new(LOAD_AWARE, Action::Apply);
    waiting.settle();
    for before in [reviewed, waiting, Story::completed(LOAD_AWARE)] {
        for phase in PHASES {
            let mut story = before.clone();
            story.status.phase = Some(phase);
            story.settle();
            assert_eq!(story.phase(), before.phase(), "{phase} in {}", before.phase());
            assert_eq!(story.written, before.written, "{phase} in {}", before.phase());
        }
    }
}

/// Found by damaging a status at random: without any condition, a phase was believed and its conditions never came back.
#[test]
fn conditions_that_somebody_else_took_out_are_back_without_an_edit_and_order_nothing() {
    let mut reviewed = Story::new(LOAD_AWARE, Action::DryRun);
    reviewed.settle();
    let mut waiting = Story::new(LOAD_AWARE, Action::Apply);
    waiting.settle();
    assert_eq!((reviewed.phase(), waiting.phase()), (Phase::ReviewRequired, Phase::InProgress));
    for before in [reviewed, waiting, Story::completed(LOAD_AWARE)] {
        let mut story = before.clone();
        story.status.conditions.clear();
        story.settle();
        assert_eq!((story.phase(), &story.written), (before.phase(), &before.written));
        let told = story.condition(before.phase().as_str()).expect("a condition of the phase");
        assert_eq!(told.status, "True", "{}", before.phase());
    }
}

#[test]
fn what_drifted_while_somebody_else_wrote_the_phase_is_for_a_person_to_look_at() {
    let before = Story::completed(LOAD_AWARE);
    for phase in PHASES.into_iter().filter(|phase| *phase != Phase::Completed) {
        let mut story = before.clone();
        story.interval(180).status.phase = Some(phase);
        story.settle();
        assert_eq!((story.phase(), story.written.len()), (Phase::ReviewRequired, before.written.len()), "{phase}");
    }
}

#[test]
fn a_wait_that_begins_in_an_hour_begins_now() {
    let mut story = Story::new(LOAD_AWARE, Action::Apply);
    story.spec.wait_timeout = serde_json::from_value("30m".into()).unwrap();
    story.settle();
    let later = story.time(3600);
    let item = story.status.items.iter_mut().find(|item| item.target_ref.name == PSI).unwrap();
    item.waiting_since = Some(later);
    story.settle();
    assert_eq!(story.phase(), Phase::InProgress);
    story.pass(30 * 60).settle();
    assert_eq!(story.phase(), Phase::Failed);
}

#[test]
fn a_revert_that_will_be_made_in_an_hour_was_made_now() {
    let mut story = Story::completed(LOAD_AWARE);
    story.edit(|spec| spec.bypass_optimistic_lock = true).settle();
    let (written, later) = (story.written.len(), story.time(3600));
    story.status.reverts = vec![later];
    story.interval(180).settle();
    assert_eq!((story.phase(), story.written.len()), (Phase::Drifted, written), "one revert was just made");
    story.pass(30).settle();
    assert_eq!((story.phase(), story.written.len()), (Phase::Completed, written + 1));
}
