//! What the status, the events and the conditions say about pools on their way.

use api::virt_platform_config::{PoolRollout, RolloutState};

use super::*;
use crate::machine::{EventNote, event_notes, health::*};
use RolloutState::*;

pub(super) const ITEM: &str = "enable-psi-metrics";
pub(super) const MINUTE: i64 = 60;
pub(super) const DRAIN: &str = "Node worker-3 is reporting: \"failed to drain node: worker-3 after 1 hour\"";

/// A plan whose MachineConfig is on its way to six nodes.
pub(super) fn rolling() -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    fixture
}

/// The pool has rendered the config, and so many nodes run it. `status` are other members of its status.
pub(super) fn report(fixture: &mut Fixture, updated: i64, paused: bool, status: Value) {
    let rendered = "rendered-worker-with-psi";
    fixture.cluster.put(crate::test_cluster::rendered(rendered, &["psi=1"]));
    let mut pool = fixture.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
    pool["spec"]["paused"] = paused.into();
    pool["spec"]["configuration"] = json!({"name": rendered, "source": [{"name": PSI}]});
    if updated == 6 {
        pool["status"]["configuration"] = pool["spec"]["configuration"].clone();
    }
    let (kind, counts) = match (updated, paused) {
        (6, _) => ("Updated", json!({"updatedMachineCount": 6, "readyMachineCount": 6})),
        (_, true) => ("NodeDegraded", json!({"updatedMachineCount": updated, "readyMachineCount": updated})),
        (..) => ("Updating", json!({"updatedMachineCount": updated, "readyMachineCount": updated})),
    };
    let holds = if paused { "False" } else { "True" };
    pool["status"]["machineCount"] = 6.into();
    pool["status"]["degradedMachineCount"] = 0.into();
    pool["status"]["conditions"] = json!([{"type": kind, "status": holds}]);
    for (name, value) in counts.as_object().unwrap().iter().chain(status.as_object().unwrap()) {
        pool["status"][name] = value.clone();
    }
    fixture.cluster.put(pool);
}

pub(super) fn degraded() -> Value {
    let condition = |kind: &str, message: &str| json!({"type": kind, "status": "True", "message": message});
    let conditions = [condition("Updating", ""), condition("NodeDegraded", DRAIN), condition("Degraded", "")];
    json!({"degradedMachineCount": 1, "conditions": conditions})
}

pub(super) fn pool(fixture: &Fixture) -> PoolRollout {
    let [pool] = &fixture.item(ITEM).rollout[..] else { panic!("{:?}", fixture.item(ITEM)) };
    pool.clone()
}

/// Which of the conditions Reconciling and Stalled is True, with its reason.
pub(super) fn told(fixture: &Fixture) -> (&str, &str) {
    let condition = [RECONCILING, STALLED].into_iter().find_map(|kind| fixture.condition(kind)).unwrap();
    (condition.type_.as_str(), condition.reason.as_str())
}

pub(super) fn events_of(fixture: &mut Fixture, change: impl FnOnce(&mut Fixture)) -> Vec<EventNote> {
    let before = fixture.status.clone();
    change(fixture);
    fixture.settle();
    event_notes(&before, &fixture.status)
}

/// At night one of six nodes stops. The status names it at once; when it recovers, everything is as before.
#[test]
fn one_node_of_six_that_cannot_be_drained_is_named_and_forgotten_when_it_recovers() {
    let mut fixture = rolling();
    assert_eq!(pool(&fixture).state, Pending);
    let events = events_of(&mut fixture, |fixture| report(fixture, 2, false, json!({})));
    let expected = "enable-psi-metrics: MachineConfigPool 'worker' is Updating (was Pending, 2 of 6 nodes updated)";
    assert_eq!(
        events,
        [EventNote { warning: false, reason: "RolloutUpdating".into(), note: expected.into() }],
        "one event for one change"
    );
    assert_eq!(
        events_of(&mut fixture, |fixture| report(fixture, 3, false, json!({}))),
        [],
        "a number alone is not reported"
    );

    let began = fixture.pass(MINUTE).second;
    let events = events_of(&mut fixture, |fixture| report(fixture, 3, false, degraded()));
    let note = format!(
        "enable-psi-metrics: MachineConfigPool 'worker' is Degraded (was Updating, 3 of 6 nodes updated): {DRAIN}"
    );
    assert_eq!(events, [EventNote { warning: true, reason: "RolloutDegraded".into(), note }]);
    let found = pool(&fixture);
    assert_eq!((found.state, found.cause.as_deref()), (Degraded, Some(DRAIN)));
    assert_eq!((found.updated, found.total), (Some(3), Some(6)));
    assert_eq!(found.since.unwrap().0.as_second(), began);
    assert_eq!(found.last_progress.unwrap().0.as_second(), began - MINUTE);
    assert!(fixture.item(ITEM).message.as_deref().unwrap().contains(DRAIN), "the cause, and not the count");
    assert_eq!(told(&fixture), (RECONCILING, "Applying"));

    let events = events_of(&mut fixture, |fixture| report(fixture, 6, false, json!({})));
    assert!(events.iter().any(|event| event.reason == "ItemCompleted"), "{events:?}");
    assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::Completed, 0));
}

/// The time after which a rollout is stuck is counted from the last node that was updated, and it is looked at then.
#[test]
fn a_rollout_without_progress_is_told_exactly_when_it_is_one_and_no_longer_when_it_moves() {
    let mut fixture = rolling();
    report(&mut fixture, 1, false, json!({}));
    fixture.settle();
    fixture.pass(42 * MINUTE).settle();
    assert_eq!((pool(&fixture).state, told(&fixture)), (Updating, (RECONCILING, "Applying")));
    assert_eq!(fixture.requeue_after, Some(Duration::from_secs(3 * 60)), "earlier than the regular look");

    let events = events_of(&mut fixture, |fixture| {
        fixture.pass(3 * MINUTE);
    });
    assert_eq!((pool(&fixture).state, told(&fixture)), (NoProgress, (STALLED, "NoProgress")));
    assert_eq!(fixture.phase(), Phase::InProgress, "nothing is given up");
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(event.warning && event.reason == "RolloutNoProgress", "{event:?}");
    assert!(event.note.contains("no node was updated since 1970-"), "{event:?}");
    assert!(fixture.condition(STALLED).unwrap().message.contains("'worker'"));
    assert!(fixture.condition(RECONCILING).is_none());
    assert_eq!(fixture.requeue_after, Some(Intervals::default().recheck));

    let events = events_of(&mut fixture, |fixture| report(fixture, 2, false, json!({})));
    assert_eq!((pool(&fixture).state, told(&fixture)), (Updating, (RECONCILING, "Applying")));
    assert!(fixture.condition(STALLED).is_none());
    assert_eq!(events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["RolloutUpdating"]);
}

#[test]
fn a_degraded_pool_keeps_its_state_and_is_stalled_when_it_does_not_get_on() {
    let mut fixture = rolling();
    report(&mut fixture, 1, false, degraded());
    fixture.settle();
    let events = events_of(&mut fixture, |fixture| {
        fixture.pass(46 * MINUTE);
    });
    assert_eq!((pool(&fixture).state, told(&fixture)), (Degraded, (STALLED, "NoProgress")));
    assert_eq!(events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["RolloutNoProgress"]);
    assert!(events[0].note.contains(DRAIN), "with the culprit: {events:?}");
    assert_eq!(
        events_of(&mut fixture, |fixture| {
            fixture.pass(MINUTE);
        }),
        [],
        "told once"
    );

    let events = events_of(&mut fixture, |fixture| report(fixture, 2, false, degraded()));
    assert_eq!((pool(&fixture).state, told(&fixture)), (Degraded, (RECONCILING, "Applying")));
    let note =
        "enable-psi-metrics: MachineConfigPool 'worker' gets on again and is still Degraded (2 of 6 nodes updated)";
    assert_eq!(events, [EventNote { warning: false, reason: "RolloutProgress".into(), note: note.into() }]);
}

/// Its words about a node change with every attempt, and that is no news.
#[test]
fn a_second_node_in_trouble_is_told_as_the_first_one_was() {
    let mut fixture = rolling();
    report(&mut fixture, 1, false, degraded());
    fixture.settle();
    let says = |message: String| {
        let condition = |kind: &str, message: &str| json!({"type": kind, "status": "True", "message": message});
        json!({"conditions": [condition("NodeDegraded", &message), condition("Degraded", "")]})
    };
    let again = DRAIN.replace("1 hour", "2 hours");
    assert_eq!(events_of(&mut fixture, |fixture| report(fixture, 1, false, says(again.clone()))), []);
    let both = format!("{again}, Node worker-4 is reporting: \"no space\"");
    let events = events_of(&mut fixture, |fixture| report(fixture, 1, false, says(both.clone())));
    let note = format!("enable-psi-metrics: MachineConfigPool 'worker' is Degraded (1 of 6 nodes updated): {both}");
    assert_eq!(events, [EventNote { warning: true, reason: "RolloutDegraded".into(), note }]);
    assert_eq!(events_of(&mut fixture, |fixture| report(fixture, 1, false, says(again.clone()))), [], "it recovered");
}

#[test]
fn a_paused_pool_is_paused_and_its_time_begins_when_it_is_resumed() {
    let mut fixture = rolling();
    report(&mut fixture, 1, true, json!({}));
    let events = events_of(&mut fixture, |_| {});
    assert_eq!(events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["RolloutPaused"]);
    fixture.pass(24 * 60 * MINUTE).settle();
    assert_eq!((pool(&fixture).state, told(&fixture)), (Paused, (RECONCILING, "Applying")));
    assert_eq!(fixture.requeue_after, Some(Intervals::default().recheck));
    report(&mut fixture, 1, false, json!({}));
    fixture.settle();
    assert_eq!((pool(&fixture).state, told(&fixture)), (Updating, (RECONCILING, "Applying")));
}

/// What was last seen is old, so nothing is concluded from it.
#[test]
fn an_operator_that_was_away_looks_before_it_says_that_nothing_moves() {
    let mut fixture = rolling();
    report(&mut fixture, 1, false, json!({}));
    fixture.settle();
    report(&mut fixture, 4, false, json!({}));
    fixture.pass(60 * MINUTE);
    let records = fixture.records;
    fixture.settle();
    assert_eq!(fixture.records, records + 1, "no status in between");
    assert_eq!((pool(&fixture).state, told(&fixture)), (Updating, (RECONCILING, "Applying")));
    // And the other way around: what was told holds until something else is seen.
    fixture.pass(60 * MINUTE).settle();
    assert_eq!(told(&fixture), (STALLED, "NoProgress"));
    let records = fixture.records;
    fixture.pass(MINUTE).settle();
    assert_eq!((fixture.records, told(&fixture)), (records, (STALLED, "NoProgress")), "nothing is stored for nothing");
}

#[test]
fn an_item_that_is_given_up_waits_for_no_pool() {
    let mut fixture = rolling();
    fixture.spec.wait_timeout = Some("1h".into());
    report(&mut fixture, 1, false, degraded());
    fixture.settle().pass(61 * MINUTE).settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::Failed, 0));
    assert!(fixture.item(ITEM).message.as_deref().unwrap().contains(DRAIN));
}

/// Somebody changes the arguments of the MachineConfig.
pub(super) fn edit(fixture: &mut Fixture, arguments: &[&str]) {
    let path = ["spec", "kernelArguments"];
    fixture.cluster.edit(&MACHINE_CONFIG, PSI, &path, Some(json!(arguments)));
}

/// Found by random edits: such a plan was InProgress without end.
#[test]
fn a_config_that_is_deleted_on_its_way_is_drift_and_goes_on_when_it_is_back() {
    for wait_timeout in [None, Some("1h")] {
        let mut fixture = rolling();
        fixture.spec.wait_timeout = wait_timeout.map(Into::into);
        report(&mut fixture, 2, false, json!({}));
        let there = fixture.settle().cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
        fixture.cluster.delete(&MACHINE_CONFIG, PSI);
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.item(ITEM).state.as_str()), (Phase::Drifted, "InProgress"));
        let deleted = format!("MachineConfig '{PSI}' was deleted");
        assert_eq!(pool(&fixture).cause.as_ref(), Some(&deleted), "the culprit, and what it did");
        assert!(fixture.condition(STALLED).unwrap().message.contains(&deleted));
        fixture.pass(2 * 60 * MINUTE).settle();
        assert_eq!(fixture.phase(), Phase::Drifted, "it is not given up, because it is not waited for");

        fixture.cluster.put(there);
        fixture.settle();
        assert_eq!((fixture.phase(), told(&fixture).0), (Phase::InProgress, RECONCILING));
        assert_eq!(pool(&fixture).cause, None);
        report(&mut fixture, 6, false, json!({}));
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::Completed);
    }
}

#[test]
fn a_config_that_is_changed_on_its_way_names_who_changed_it() {
    let mut fixture = rolling();
    report(&mut fixture, 2, false, json!({}));
    fixture.settle();
    let mut live = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    live["spec"]["kernelArguments"] = json!(["psi=0"]);
    fixture.cluster.put(crate::test_cluster::set_by("kubectl-edit", "Update", live));
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::Drifted);
    let cause = pool(&fixture).cause.unwrap();
    assert!(cause.starts_with(&format!("MachineConfig '{PSI}' was changed by kubectl-edit")), "{cause}");
}

/// Found by reading: the drift took the place of the node that has to be repaired.
#[test]
fn a_config_that_is_changed_while_a_node_is_degraded_names_both() {
    let mut fixture = rolling();
    report(&mut fixture, 2, false, degraded());
    fixture.settle();
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    let both = format!("{DRAIN}; MachineConfig '{PSI}' was deleted");
    for _ in 0..2 {
        fixture.settle().pass(MINUTE);
        assert_eq!(fixture.phase(), Phase::Drifted);
        assert_eq!((pool(&fixture).state, pool(&fixture).cause.as_ref()), (Degraded, Some(&both)));
    }
}

#[test]
fn a_config_that_is_deleted_on_its_way_is_applied_again_where_the_spec_asks_for_it() {
    let mut fixture = rolling();
    fixture.spec.bypass_optimistic_lock = true;
    report(&mut fixture, 2, false, json!({}));
    let written = fixture.settle().written.len();
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::InProgress, written + 1));
    assert!(fixture.cluster.find(&MACHINE_CONFIG, None, PSI).is_some());
    report(&mut fixture, 6, false, json!({}));
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

#[test]
fn a_config_that_is_created_again_during_its_removal_is_drift() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let there = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).operation.as_str()), (Phase::InProgress, "Delete"));
    let mut bypassing = fixture.clone();
    bypassing.spec.bypass_optimistic_lock = true;
    for fixture in [&mut fixture, &mut bypassing] {
        fixture.cluster.put(there.clone());
        fixture.settle();
    }
    assert_eq!(fixture.phase(), Phase::Drifted);
    let cause = pool(&fixture).cause.unwrap();
    assert!(cause.contains("was created again"), "{cause}");
    assert_eq!(bypassing.phase(), Phase::InProgress, "and removed again");
    assert!(bypassing.cluster.find(&MACHINE_CONFIG, None, PSI).is_none());
    bypassing.roll_out(&[]).settle();
    assert_eq!(bypassing.phase(), Phase::Completed);
}

/// Found by random edits: the pool still had the config, with other content, and all of its nodes ran that.
#[test]
fn a_config_that_is_applied_again_before_its_pool_noticed_is_waited_for() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(crate::test_cluster::machine_config(PSI, json!({"kernelArguments": ["psi=0"]})));
    fixture.roll_out(&[PSI]);
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, Pending));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

/// Found by a random schedule (301123): the pool has nothing to render, and was waited for without end.
#[test]
fn a_config_that_an_edit_sets_back_before_its_pool_noticed_is_not_waited_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let off = json!({"loadAware": {"enablePSIMetrics": false}});
    fixture.options(off).settle();
    assert_eq!(fixture.phase(), Phase::InProgress, "it is removed, and the pool has not noticed");
    fixture.options(json!({})).settle();
    assert_eq!(fixture.phase(), Phase::InProgress, "it is back, and the pool may still notice that it was gone");
    fixture.pass(MINUTE).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "the pool never noticed");
}

#[test]
fn an_item_that_was_planned_without_a_change_is_waited_for_when_its_drift_is_reverted() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.spec.bypass_optimistic_lock = true;
    fixture.edit(|_| {}).settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).impact_detail.is_none()), (Phase::Completed, true), "no change");
    edit(&mut fixture, &["psi=0"]);
    fixture.roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, Pending), "the nodes run the drift");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

#[test]
fn drift_that_the_nodes_run_and_somebody_sets_back_is_waited_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    edit(&mut fixture, &["psi=0"]);
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Drifted);
    edit(&mut fixture, &["psi=1"]);
    fixture.settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, Pending));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}
