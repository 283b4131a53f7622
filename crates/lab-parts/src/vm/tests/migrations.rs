//! Migrations that succeed, fail, wait, or are continued after a restart.

use api::virtual_machine::EndedMigration;
use serde_json::json;

use super::fixture::{Fixture, at, launcher_pod};
use crate::{
    launcher,
    vm::{CopyProgress, Outcome, Request, Step},
};

#[test]
fn a_migration_makes_the_target_first_hands_over_in_one_write_and_then_removes_the_source() {
    let mut fixture = Fixture::evicted();
    assert_eq!(fixture.pods.len(), 2, "a target was made");
    assert_eq!(fixture.pod("p1").annotations.get(launcher::EVICTION_IN_PROGRESS).map(String::as_str), Some("true"));
    assert_eq!(fixture.status().pod_name.as_deref(), Some("p1"), "the source counts");
    (fixture.pod("new1").node, fixture.pod("new1").is_running) = (Some("n2".into()), true);
    assert_eq!(fixture.play(), ["copy n1 n2"]);
    fixture.progress = CopyProgress::Copied;
    let Step::Send(Request::WriteStatus(status)) = fixture.decide() else { panic!("a status was expected") };
    let written = (status.pod_name.as_deref(), status.node_name.as_deref(), status.evacuation_node_name.as_deref());
    assert_eq!(written, (Some("new1"), Some("n2"), None));
    assert_eq!(fixture.play(), ["status Running new1", "remove p1", "label n2"]);
    assert_eq!(fixture.migrated(), ("True".into(), "Succeeded".into()));
}

/// Holds L21 (leftover target).
#[test]
fn a_migration_that_fails_leaves_one_running_pod_no_eviction_request_and_a_reason() {
    type Spoil = fn(&mut Fixture);
    let cases: [(&str, Spoil); 6] = [
        ("TargetUnschedulable", |fixture| fixture.now = at(1000)),
        ("TargetNotStarted", |fixture| {
            fixture.pod("new1").node = Some("n2".into());
            fixture.now = at(1000);
        }),
        ("TargetLost", |fixture| fixture.pod("new1").is_finished = true),
        ("TargetLost", |fixture| {
            fixture.pods.retain(|pod| pod.name != "new1");
            fixture.progress = CopyProgress::TargetLost;
        }),
        ("TargetLost", |fixture| {
            (fixture.pod("new1").node, fixture.pod("new1").is_running) = (Some("n2".into()), true);
            fixture.gone.push("n2");
        }),
        ("NotConverging", |fixture| {
            (fixture.pod("new1").node, fixture.pod("new1").is_running) = (Some("n2".into()), true);
            fixture.progress = CopyProgress::NotConverging;
        }),
    ];
    for (reason, spoil) in cases {
        let mut fixture = Fixture::evicted();
        spoil(&mut fixture);
        let done = fixture.play();
        assert_eq!(fixture.migrated(), ("False".into(), reason.into()), "{done:?}");
        let left: Vec<_> = fixture.pods.iter().map(|pod| (&*pod.name, pod.is_running)).collect();
        assert_eq!(left, [("p1", true)], "{reason}: {done:?}");
        assert_eq!(fixture.status().evacuation_node_name, None);
        assert_eq!(fixture.pod("p1").annotations.get(launcher::EVICTION_IN_PROGRESS), None);
    }
}

#[test]
fn a_source_that_dies_makes_the_target_the_vm() {
    let kills: [fn(&mut Fixture); 4] = [
        |fixture| fixture.pods.retain(|pod| pod.name != "p1"),
        |fixture| fixture.pod("p1").is_finished = true,
        |fixture| fixture.pod("p1").is_deleted = true,
        |fixture| fixture.gone.push("n1"),
    ];
    for kill in kills {
        let mut fixture = Fixture::evicted();
        (fixture.pod("new1").node, fixture.pod("new1").is_running) = (Some("n2".into()), true);
        kill(&mut fixture);
        let done = fixture.play();
        assert_eq!(fixture.migrated(), ("False".into(), "SourceLost".into()));
        assert_eq!(fixture.status().pod_name.as_deref(), Some("new1"), "{done:?}");
        assert_eq!(fixture.pods.len(), 1, "{done:?}");
        assert_eq!(fixture.status().evacuation_node_name, None);
    }
}

#[test]
fn a_migration_waits_until_the_limits_leave_room() {
    let mut fixture = Fixture::settled();
    fixture.may_migrate = false;
    fixture.status_mut().evacuation_node_name = Some("n1".into());
    fixture.play();
    let wait = Outcome { for_migration_slot: true, ..Outcome::default() };
    assert_eq!(fixture.decide(), Step::Done(wait));
    assert_eq!(fixture.pods.len(), 1);
    fixture.may_migrate = true;
    assert_eq!(fixture.play(), ["create new1 away from n1"]);
}

#[test]
fn an_eviction_request_for_a_node_that_the_vm_is_not_on_is_cleared() {
    let mut fixture = Fixture::settled();
    fixture.status_mut().evacuation_node_name = Some("n7".into());
    assert_eq!(fixture.play(), ["status Running p1"]);
    assert_eq!(fixture.status().evacuation_node_name, None);
    assert_eq!(fixture.pods.len(), 1);
}

/// Holds L27 (third pod after restart).
#[test]
fn a_controller_that_restarts_at_any_step_comes_to_the_same_end() {
    // A restarted controller may find the objects in any state of a migration.
    for steps in 0..20 {
        let mut fixture = Fixture::settled();
        fixture.status_mut().evacuation_node_name = Some("n1".into());
        for _ in 0..steps {
            let step = fixture.decide();
            if matches!(step, Step::Done(_)) {
                break;
            }
            fixture.perform(step);
        }
        fixture.progress = CopyProgress::NotStarted;
        for _ in 0..4 {
            fixture.play();
            for pod in &mut fixture.pods {
                (pod.is_running, pod.node) = (true, pod.node.take().or(Some("n2".into())));
            }
            if fixture.progress == CopyProgress::Copying {
                fixture.progress = CopyProgress::Copied;
            }
        }
        assert_eq!(fixture.pods.len(), 1, "after {steps} steps");
        assert_eq!(fixture.status().node_name.as_deref(), Some("n2"), "after {steps} steps");
        assert_eq!(fixture.status().evacuation_node_name, None);
    }
}

#[test]
fn the_cause_of_an_eviction_request_stays_until_the_migration_ends_and_a_request_by_hand_gets_one() {
    let cause = |fixture: &Fixture| {
        let found =
            fixture.status().conditions.iter().find(|condition| condition.type_ == launcher::EVICTION_REQUESTED);
        found.map(|condition| (condition.reason.clone(), condition.message.clone()))
    };
    let by_webhook = json!({"type": "EvictionRequested", "status": "True", "reason": "Descheduler", "message": "over",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    let mut fixture = Fixture::settled();
    fixture.status_mut().evacuation_node_name = Some("n1".into());
    fixture.status_mut().conditions.push(serde_json::from_value(by_webhook).unwrap());
    fixture.play();
    assert_eq!(fixture.pods.len(), 2, "it moves");
    assert_eq!(cause(&fixture), Some(("Descheduler".into(), "over".into())));
    fixture.now = at(1000);
    fixture.play();
    assert_eq!((fixture.migrated().1.as_str(), cause(&fixture)), ("TargetUnschedulable", None));

    let by_hand = Fixture::evicted();
    assert_eq!(cause(&by_hand), Some(("EvictionRequested".into(), "the VM is to leave n1".into())));
}

#[test]
fn an_eviction_request_on_a_vm_whose_pod_is_not_named_yet_counts_for_that_pod() {
    let mut fixture = Fixture::new(json!({"evacuationNodeName": "n1"}), vec![launcher_pod("p1", "n1")]);
    assert_eq!(fixture.play(), ["annotate p1", "status Running p1", "label n1", "create new1 away from n1"]);
}

#[test]
fn migrations_that_ended_are_remembered_until_the_vm_starts_anew() {
    let remembered = |fixture: &Fixture| -> Vec<[i64; 2]> {
        let seconds =
            |ended: &EndedMigration| [&ended.start_timestamp, &ended.end_timestamp].map(|at| at.0.as_second());
        fixture.status().migrations.iter().map(seconds).collect()
    };
    let mut fixture = Fixture::evicted();
    (fixture.pod("new1").node, fixture.pod("new1").is_running) = (Some("n2".into()), true);
    (fixture.progress, fixture.now) = (CopyProgress::Copied, at(40));
    fixture.play();
    assert_eq!(remembered(&fixture), [[1, 40]], "from the creation of the target to the hand-over");

    fixture.progress = CopyProgress::NotStarted;
    fixture.pods[0].name = "p2".into();
    let status = fixture.status_mut();
    (status.pod_name, status.evacuation_node_name) = (Some("p2".into()), Some("n2".into()));
    fixture.play();
    fixture.now = at(1000);
    fixture.play();
    assert_eq!(fixture.migrated().1, "TargetUnschedulable");
    assert_eq!(remembered(&fixture), [[1, 40], [40, 1000]], "one that failed counts");

    let kept = fixture.status().migrations[0].clone();
    fixture.status_mut().migrations = vec![kept; 16];
    fixture.status_mut().evacuation_node_name = Some("n2".into());
    fixture.play();
    fixture.now = at(2000);
    fixture.play();
    assert_eq!((fixture.status().migrations.len(), remembered(&fixture)[15]), (16, [1000, 2000]));

    fixture.pods.clear();
    fixture.play();
    assert_eq!(remembered(&fixture), [[0; 2]; 0]);
}

#[test]
fn a_request_that_needed_no_migration_is_not_remembered() {
    let mut fixture = Fixture::settled();
    fixture.status_mut().evacuation_node_name = Some("n7".into());
    fixture.play();
    assert_eq!(fixture.status().migrations, []);
    let mut lost = Fixture::evicted();
    lost.pods.retain(|pod| pod.name != "p1");
    lost.play();
    assert_eq!(lost.migrated().1, "SourceLost");
    assert_eq!(lost.status().migrations, [], "it starts anew");
}
