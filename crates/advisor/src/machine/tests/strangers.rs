//! A status that somebody else has changed, and times of a wrong clock.

use api::virt_platform_config::{Action, Phase};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

use super::{Fixture, LOAD_AWARE, PSI};

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

impl Fixture {
    fn time(&self, from_now: i64) -> Time {
        Time(Timestamp::from_second(self.second + from_now).unwrap())
    }
}

#[test]
fn a_phase_that_somebody_else_wrote_is_set_right_without_an_edit_and_orders_nothing() {
    let mut reviewed = Fixture::new(LOAD_AWARE, Action::DryRun);
    reviewed.settle();
    let mut waiting = Fixture::new(LOAD_AWARE, Action::Apply);
    waiting.settle();
    for before in [reviewed, waiting, Fixture::completed(LOAD_AWARE)] {
        for phase in PHASES {
            let mut fixture = before.clone();
            fixture.status.phase = Some(phase);
            fixture.settle();
            assert_eq!(fixture.phase(), before.phase(), "{phase} in {}", before.phase());
            assert_eq!(fixture.written, before.written, "{phase} in {}", before.phase());
        }
    }
}

/// Found by damaging a status at random: a phase without conditions was accepted, and its conditions were never restored.
#[test]
fn conditions_that_somebody_else_took_out_are_back_without_an_edit_and_order_nothing() {
    let mut reviewed = Fixture::new(LOAD_AWARE, Action::DryRun);
    reviewed.settle();
    let mut waiting = Fixture::new(LOAD_AWARE, Action::Apply);
    waiting.settle();
    assert_eq!((reviewed.phase(), waiting.phase()), (Phase::ReviewRequired, Phase::InProgress));
    for before in [reviewed, waiting, Fixture::completed(LOAD_AWARE)] {
        let mut fixture = before.clone();
        fixture.status.conditions.clear();
        fixture.settle();
        assert_eq!((fixture.phase(), &fixture.written), (before.phase(), &before.written));
        let told = fixture.condition(before.phase().as_str()).expect("a condition of the phase");
        assert_eq!(told.status, "True", "{}", before.phase());
    }
}

#[test]
fn what_drifted_while_somebody_else_wrote_the_phase_is_for_a_person_to_look_at() {
    let before = Fixture::completed(LOAD_AWARE);
    for phase in PHASES.into_iter().filter(|phase| *phase != Phase::Completed) {
        let mut fixture = before.clone();
        fixture.interval(180).status.phase = Some(phase);
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Phase::ReviewRequired, before.written.len()), "{phase}");
    }
}

#[test]
fn a_wait_that_begins_in_an_hour_begins_now() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.spec.wait_timeout = serde_json::from_value("30m".into()).unwrap();
    fixture.settle();
    let later = fixture.time(3600);
    let item = fixture.status.items.iter_mut().find(|item| item.target_ref.name == PSI).unwrap();
    item.waiting_since = Some(later);
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    fixture.pass(30 * 60).settle();
    assert_eq!(fixture.phase(), Phase::Failed);
}

#[test]
fn a_revert_that_will_be_made_in_an_hour_was_made_now() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.edit(|spec| spec.bypass_optimistic_lock = true).settle();
    let (written, later) = (fixture.written.len(), fixture.time(3600));
    fixture.status.reverts = vec![later];
    fixture.interval(180).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Drifted, written), "one revert was just made");
    fixture.pass(30).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Completed, written + 1));
}
