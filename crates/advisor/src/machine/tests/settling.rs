//! Pools that have the content of a change already when it is made: they may not have seen yet what was there before.

use super::{
    rollouts::{ITEM, MINUTE, edit, report},
    *,
};

/// All nodes run these arguments of the config, and then it is deleted.
fn deleted_with(arguments: &[&str]) -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(crate::test_cluster::machine_config(PSI, json!({"kernelArguments": arguments})));
    fixture.roll_out(&[PSI]);
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture
}

/// Found by reading: "all 3 nodes updated", and then every node was rebooted.
#[test]
fn a_pool_with_more_than_the_change_is_given_time_to_render_it() {
    let mut fixture = deleted_with(&["psi=1", "audit=0"]);
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    let message = fixture.item(ITEM).message.clone().unwrap();
    assert!(message.contains("(all 3 nodes updated); looked at again at 1970-01-12T13:47:40Z"), "{message}");
    assert_eq!(fixture.requeue_after, Some(Duration::from_secs(60)));
    fixture.pass(20).settle();
    assert_eq!(fixture.requeue_after, Some(Duration::from_secs(40)));

    let mut renders = fixture.clone();
    report(&mut renders, 1, false, json!({}));
    renders.pass(MINUTE).settle();
    assert_eq!((renders.phase(), renders.item(ITEM).rollout.len()), (Phase::InProgress, 1), "it has begun");
    report(&mut renders, 6, false, json!({}));
    renders.settle();
    assert_eq!(renders.phase(), Phase::Completed);

    fixture.pass(40).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "the other argument is from another config");
}

/// Where the pool has to render something, and that is known, nothing takes longer than it takes.
#[test]
fn a_pool_that_was_waited_for_is_believed_at_once() {
    for arguments in [&["psi=0"][..], &["audit=0"]] {
        let mut fixture = deleted_with(arguments);
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::InProgress, 1), "{arguments:?}");
        fixture.roll_out(&[PSI]).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{arguments:?}");
    }
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.edit(|_| {}).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "nothing was written");
}

#[test]
fn drift_with_more_than_the_change_is_waited_for_when_somebody_sets_it_back() {
    for is_rolled_out in [true, false] {
        let mut fixture = Fixture::completed(LOAD_AWARE);
        edit(&mut fixture, &["psi=1", "audit=0"]);
        if is_rolled_out {
            fixture.roll_out(&[PSI]);
        }
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::Drifted);
        edit(&mut fixture, &["psi=1"]);
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::InProgress, "the pool may have seen the drift: {is_rolled_out}");
        report(&mut fixture, 2, false, json!({}));
        fixture.pass(2 * MINUTE).settle();
        assert_eq!(fixture.phase(), Phase::InProgress, "the nodes are updated again");
        report(&mut fixture, 6, false, json!({}));
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::Completed);
    }
}

/// A revert that was faster than the pool, which renders the drift nevertheless because it is late.
#[test]
fn a_pool_that_renders_drift_after_it_was_reverted_is_waited_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    fixture.spec.bypass_optimistic_lock = true;
    edit(&mut fixture, &["psi=0"]);
    fixture.settle();
    assert_eq!(fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap()["spec"]["kernelArguments"], json!(["psi=1"]));
    assert_eq!(fixture.phase(), Phase::InProgress, "reverted, and the pool has not noticed");
    let mut never = fixture.clone();
    edit(&mut fixture, &["psi=0"]);
    fixture.roll_out(&[PSI]);
    edit(&mut fixture, &["psi=1"]);
    fixture.pass(MINUTE).settle();
    assert_eq!(fixture.phase(), Phase::InProgress, "the nodes run the drift");
    fixture.roll_out(&[PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    never.pass(MINUTE).settle();
    assert_eq!(never.phase(), Phase::Completed);
}

#[test]
fn nothing_that_is_in_effect_is_given_up() {
    let mut fixture = deleted_with(&["psi=1", "audit=0"]);
    fixture.spec.wait_timeout = Some("30s".into());
    fixture.settle().pass(30).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}
