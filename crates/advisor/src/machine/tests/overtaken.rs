//! One item is changed by somebody before it is in effect, and what becomes of the others meanwhile.

use api::virt_platform_config::{FailurePolicy, ItemState, RolloutState::*};

use super::{
    rollouts::{DRAIN, ITEM, MINUTE, degraded, events_of, pool, report},
    *,
};

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
