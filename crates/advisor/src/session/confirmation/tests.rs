//! A process that is stopped before a write, and an API server that is slow.

use api::virt_platform_config::{Action, ApprovalMode};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    machine::Intervals,
    profiles,
    session::{Context, Input, RecordInput},
    test_cluster::TestCluster,
};

/// The requests until the first write: `s`tatus update, `p`lan, `r`ecord, `c`onfirmation, `w`rite, `x` for others, `.` for an end without
/// one. Each answer `takes` a time by letter and number; the consent is withdrawn during the request with the number `withdrawn`.
fn life(takes: impl Fn(char, usize) -> f64, withdrawn: Option<usize>) -> String {
    let profile = profiles::find("example-profile").unwrap();
    let context = Context {
        profile,
        version: "1",
        epoch: None,
        intervals: Intervals::default(),
        approval_mode: ApprovalMode::Immediate,
    };
    let cluster = TestCluster::empty();
    let mut stored: api::VirtPlatformConfig = serde_json::from_value(json!({
        "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
        "metadata": {"name": "example-profile", "uid": "u", "resourceVersion": "1", "generation": 1},
        "spec": {"profile": "example-profile", "action": "Apply"},
    }))
    .unwrap();
    let mut version = 1;
    let mut session = Session::new(stored.clone(), None);
    let (mut uptime, now) = (Duration::from_secs(1000), Timestamp::UNIX_EPOCH);
    let mut letters = String::new();
    let mut step = session.start(&context, now);
    while letters.len() < 60 {
        let request = match session.before_sending(step, uptime) {
            Step::Send(request) => request,
            Step::Done(_) => return letters + ".",
        };
        let letter = match &request {
            Request::UpdateStatus(_) => 's',
            Request::MakePlan { .. } => 'p',
            Request::CreateRecord(_) => 'r',
            Request::ReadConfig => 'c',
            Request::WriteTarget { .. } => 'w',
            _ => 'x',
        };
        let (took, number) = (takes(letter, letters.len()), letters.len());
        letters.push(letter);
        if letter == 'w' {
            return letters;
        }
        uptime += Duration::from_secs_f64(took);
        let input = match request {
            Request::UpdateStatus(new) if new.metadata.resource_version != stored.metadata.resource_version => {
                Input::StatusNotUpdated
            }
            Request::UpdateStatus(new) => {
                version += 1;
                stored = *new;
                stored.metadata.resource_version = Some(version.to_string());
                Input::StatusUpdated(Box::new(stored.clone()))
            }
            Request::MakePlan { .. } => Input::Plan(Box::new(Ok(cluster.plan("example-profile", Value::Null)))),
            Request::ReadConfig => Input::Config(Some(Box::new(stored.clone()))),
            Request::CloseRecord { .. } => Input::Record(RecordInput::Closed),
            Request::CreateRecord(_) => Input::Record(RecordInput::Created),
            other => panic!("{other:?} after {letters}"),
        };
        if withdrawn == Some(number) {
            version += 1;
            stored.spec.action = Action::DryRun;
            stored.metadata.generation = Some(2);
            stored.metadata.resource_version = Some(version.to_string());
        }
        step = session.next(&context, now, input);
    }
    panic!("no end: {letters}");
}

const UNDISTURBED: &str = "sspsrw";

#[test]
fn a_write_needs_no_further_request_if_the_process_was_not_stopped() {
    assert_eq!(life(|_, _| 0.005, None), UNDISTURBED);
    assert_eq!(life(|_, _| 0.3, None), UNDISTURBED, "0.6 s from the last status update to the write");
}

/// After a stop the configuration is read again, and a withdrawn consent is respected.
#[test]
fn after_a_stop_of_more_than_a_second_the_configuration_is_confirmed_before_anything_is_written() {
    let last_update = UNDISTURBED.rfind('s').unwrap();
    for stop in [1.1, 5.0, 21.0, 86_400.0] {
        for (at, with_consent) in [(last_update, "sspscrw"), (last_update + 1, "sspsrcw")] {
            let takes = |_, sent: usize| if sent == at { stop } else { 0.005 };
            assert_eq!(life(takes, None), with_consent, "{stop} s at {at}");
            let letters = life(takes, Some(at));
            assert!(letters.starts_with(with_consent.trim_end_matches(['r', 'w'])), "{letters}");
            assert!(letters.ends_with('.'), "{stop} s at {at}: written without consent: {letters}");
        }
    }
}

/// A stop during the confirmation itself is noticed too: the answer is old.
#[test]
fn a_confirmation_that_took_long_is_asked_for_again() {
    let takes = |letter, sent| match (letter, sent) {
        ('s', 3) => 5.0,
        ('c', 4) => 21.0,
        _ => 0.005,
    };
    assert_eq!(life(takes, None), "sspsccrw");
}

/// Found by reading: the limit was twice what the confirmation before had taken, and that one may have been a stop, too.
#[test]
fn stops_one_after_the_other_do_not_look_like_a_slow_way() {
    let last_update = UNDISTURBED.rfind('s').unwrap();
    for stops in [&[5.0, 8.0][..], &[21.0, 42.0], &[42.0, 21.0], &[1.1, 1.1], &[5.0, 8.0, 15.0]] {
        let takes =
            |_, sent: usize| sent.checked_sub(last_update).and_then(|at| stops.get(at)).copied().unwrap_or(0.005);
        let with_consent = format!("ssps{}rw", "c".repeat(stops.len()));
        assert_eq!(life(takes, None), with_consent, "{stops:?}");
        let letters = life(takes, Some(last_update + stops.len() - 1));
        assert!(letters.ends_with('.'), "{stops:?}: written without consent: {letters}");
    }
}

/// A session that begins right before its write knows nothing about the way, and an earlier one does.
#[test]
fn what_is_slow_is_known_from_earlier_sessions_and_learned_anew_when_it_changes() {
    let of = |seconds: &[f64]| {
        let mut known = RoundTrips::default();
        seconds.iter().for_each(|seconds| known.add(Duration::from_secs_f64(*seconds)));
        known
    };
    let recent = |known: RoundTrips, age: f64| {
        let confirmation = Confirmation { asked: Some(Duration::ZERO), round_trips: known, ..Confirmation::default() };
        confirmation.is_recent(Duration::from_secs_f64(age))
    };
    let cases = [
        ("nothing is known", &[][..], 0.9, true),
        ("nothing is known, and it took long", &[], 1.5, false),
        ("too little is known", &[20.0, 20.0, 20.0], 20.0, false),
        ("a slow way", &[20.0, 20.0, 20.0, 20.0], 40.0, true),
        ("slower than that", &[20.0, 20.0, 20.0, 20.0], 41.0, false),
        ("three stops", &[0.005, 5.0, 8.0, 15.0], 8.0, false),
        ("a way that has become slow", &[0.005, 20.0, 20.0, 20.0, 20.0], 40.0, true),
        ("a way that has become fast", &[20.0, 20.0, 20.0, 0.005], 1.5, false),
    ];
    for (case, known, age, expected) in cases {
        assert_eq!(recent(of(known), age), expected, "{case}");
    }
}

/// On a slow way every answer takes long, and a confirmation that takes no longer than the others has to do.
#[test]
fn on_a_slow_way_a_write_takes_few_more_requests_and_is_made() {
    for seconds in [1.5, 6.0, 20.0] {
        let letters = life(|_, _| seconds, None);
        assert!(letters.ends_with('w') && letters.len() <= UNDISTURBED.len() + 2, "{seconds} s: {letters}");
    }
}

#[test]
fn a_session_that_cannot_confirm_ends_without_a_write() {
    let takes = |letter, sent| match letter {
        'r' => 5.0,
        'c' => 3_f64.powi(sent as i32),
        _ => 0.005,
    };
    let letters = life(takes, None);
    assert!(letters.ends_with("rccccc."), "{letters}");
}
