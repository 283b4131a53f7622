//! One item is changed by somebody before it is in effect, and what becomes of the others meanwhile.

use api::virt_platform_config::{FailurePolicy, ItemState, RolloutState::*};

use super::{
    rollouts::{DRAIN, ITEM, MINUTE, degraded, edit, events_of, pool, report, told},
    *,
};
use crate::machine::health::RECONCILING;

const SWAP: &str = "90-worker-kubelet-swap";
const DESCHEDULER: &str = "enable-load-aware-descheduling";

fn descheduler_operator() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "descheduler-operator", "namespace": "openshift-kube-descheduler-operator",
    }})
}

/// Two of six nodes are updated. The descheduler's operator has not deployed anything yet when somebody edits its object.
fn overtaken() -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(descheduler_operator());
    fixture.settle();
    report(&mut fixture, 2, false, json!({}));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.item(DESCHEDULER).state), (Phase::InProgress, ItemState::InProgress));
    fixture.interval(300).settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::Drifted, Updating));
    assert!(fixture.item(DESCHEDULER).drifted_by.is_some());
    fixture
}

/// Found by reading: "Updating 2/6" for ever, without a cause and without an event.
#[test]
fn nodes_are_followed_while_another_item_has_drifted() {
    let mut fixture = overtaken();
    let events = events_of(&mut fixture, |fixture| report(fixture, 3, false, degraded()));
    assert_eq!((pool(&fixture).state, pool(&fixture).cause.as_deref()), (Degraded, Some(DRAIN)));
    assert_eq!(events.iter().map(|event| event.reason.as_str()).collect::<Vec<_>>(), ["RolloutDegraded"]);
    assert_eq!(fixture.phase(), Phase::Drifted, "the drift is still there");

    report(&mut fixture, 3, false, json!({}));
    fixture.settle().pass(42 * MINUTE).settle();
    assert_eq!(fixture.requeue_after, Some(Duration::from_secs(3 * 60)), "when the pool would be stuck");
    fixture.pass(3 * MINUTE).settle();
    assert_eq!(pool(&fixture).state, NoProgress);

    report(&mut fixture, 6, false, json!({}));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).state), (Phase::Drifted, ItemState::Completed));
    assert_eq!(
        fixture.item(DESCHEDULER).state,
        ItemState::InProgress,
        "it is not in effect, and never will be as it is"
    );
}

#[test]
fn the_wait_timeout_counts_while_another_item_has_drifted() {
    for (policy, expected) in [(FailurePolicy::Abort, Phase::Failed), (FailurePolicy::Continue, Phase::InProgress)] {
        let mut fixture = overtaken();
        fixture.spec.wait_timeout = Some("1h".into());
        fixture.spec.failure_policy = policy;
        fixture.pass(59 * MINUTE).settle();
        assert_eq!(fixture.requeue_after, Some(Duration::from_secs(60)));
        fixture.pass(MINUTE).settle();
        let failed = fixture.item(ITEM);
        assert_eq!((fixture.phase(), failed.state), (Phase::Drifted, ItemState::Failed));
        assert!(failed.message.as_deref().unwrap().starts_with("Timeout waiting"), "{failed:?}");
        assert_eq!(fixture.item(DESCHEDULER).state, ItemState::InProgress, "what drifted is not waited for");
        fixture.interval(60).settle();
        assert_eq!(fixture.phase(), expected, "{policy:?}: the drift is gone");
    }
}

/// Found by reading: a new version of the operator made it Completed while nodes were being updated.
#[test]
fn an_upgrade_does_not_complete_what_was_overtaken() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.settle();
    report(&mut fixture, 2, false, json!({}));
    fixture.settle();
    edit(&mut fixture, &["psi=0"]);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).state), (Phase::Drifted, ItemState::InProgress));
    edit(&mut fixture, &["psi=1"]);
    fixture.version = "v2";
    fixture.settle();
    assert_eq!((fixture.phase(), told(&fixture)), (Phase::InProgress, (RECONCILING, "Applying")));
    assert_eq!(fixture.item(ITEM).drifted_by, None);
    report(&mut fixture, 6, false, json!({}));
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.status.operator_version.as_deref()), (Phase::Completed, Some("v2")));
}

/// An older version has planned something else, and somebody sets by hand what this version would.
#[test]
fn what_is_aligned_by_hand_after_an_upgrade_is_completed_when_the_nodes_run_it() {
    let mut fixture = Fixture::completed(DENSITY);
    let aligned = fixture.cluster.find(&MACHINE_CONFIG, None, SWAP).unwrap().clone();
    let units = ["spec", "config", "systemd"];
    fixture.cluster.edit(&MACHINE_CONFIG, SWAP, &units, None);
    let live = fixture.cluster.find(&MACHINE_CONFIG, None, SWAP).cloned();
    let item = fixture.status.items.iter_mut().find(|item| item.target_ref.name == SWAP).unwrap();
    item.desired_state.as_mut().unwrap()["spec"]["config"].as_object_mut().unwrap().remove("systemd");
    item.applied_fingerprint = Some(drift::fingerprint(item, live.as_ref()));
    fixture.roll_out(&[SWAP]);
    let mut drifted = fixture.clone();
    fixture.version = "v2";
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::CompletedWithUpgrade);
    drifted.cluster.edit(&MACHINE_CONFIG, SWAP, &["spec", "config", "storage", "files"], Some(json!([])));
    drifted.settle();
    assert_eq!(drifted.phase(), Phase::Drifted);
    drifted.version = "v2";
    for mut fixture in [fixture, drifted] {
        let written = fixture.written.len();
        fixture.cluster.put(aligned.clone());
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::InProgress, "the nodes run the old one");
        fixture.roll_out(&[SWAP]).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Completed, written));
        assert_eq!(fixture.status.operator_version.as_deref(), Some("v2"));
    }
}

/// Found by reading: the change that a new version proposes would have been written when a rollout went on.
#[test]
fn what_a_new_version_proposes_is_not_written_when_a_rollout_goes_on() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let proposed = fixture.status.items.iter_mut().find(|item| item.name == DESCHEDULER).unwrap();
    (proposed.state, proposed.applied_fingerprint) = (ItemState::Pending, None);
    fixture.interval(300);
    fixture.version = "v2";
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::CompletedWithUpgrade);
    let written = fixture.written.len();
    edit(&mut fixture, &["psi=0"]);
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Drifted);
    edit(&mut fixture, &["psi=1"]);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::InProgress, written));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(
        (fixture.phase(), fixture.written.len()),
        (Phase::CompletedWithUpgrade, written),
        "it is proposed again"
    );
}

/// The rest of the plan waits for its window. Who changed what is on its way is told meanwhile.
#[test]
fn an_item_that_is_changed_on_its_way_is_told_while_another_one_waits_for_its_window() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(descheduler_operator());
    fixture.second = 24 * 60 * MINUTE * 20_000;
    let window = json!({"start": "00:00", "duration": "1h", "timeZone": "UTC"});
    fixture.spec.approval = serde_json::from_value(json!({ "window": window })).unwrap();
    fixture.settle().pass(12 * 60 * MINUTE);
    // As if the window had closed before the second item was written.
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    let item = fixture.status.items.iter_mut().find(|item| item.name == ITEM).unwrap();
    (item.state, item.applied_fingerprint) = (ItemState::Pending, None);
    fixture.interval(300).settle();
    assert!(fixture.item(ITEM).message.as_deref().unwrap().starts_with("Waits for its window"));
    assert_eq!((fixture.phase(), fixture.item(DESCHEDULER).drifted_by.is_some()), (Phase::InProgress, true));
    fixture.interval(60).settle();
    assert_eq!((fixture.phase(), fixture.item(DESCHEDULER).drifted_by.is_some()), (Phase::InProgress, false));
}
