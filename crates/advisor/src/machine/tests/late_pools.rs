//! Pools that notice a change late, or never.

use super::{
    rollouts::{ITEM, MINUTE, edit, pool},
    *,
};
use crate::test_cluster::machine_config;
use api::virt_platform_config::RolloutState;

const OTHER: &str = "50-worker-other";
const HOUR: i64 = 60 * MINUTE;

/// The pool has rendered these configs as they are, and no node runs that yet.
fn render(fixture: &mut Fixture, configs: &[&str]) {
    let worker = |fixture: &Fixture| fixture.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
    let running = worker(fixture)["status"]["configuration"].clone();
    fixture.roll_out(configs);
    let mut pool = worker(fixture);
    pool["status"]["configuration"] = running;
    pool["status"]["updatedMachineCount"] = 0.into();
    pool["status"]["conditions"] = json!([{"type": "Updating", "status": "True"}]);
    fixture.cluster.put(pool);
}

/// Nodes run ours and another config, with the argument that somebody sets in ours. The revert is faster than the pool.
fn reverted_beside_the_same_argument() -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(machine_config(OTHER, json!({"kernelArguments": ["psi=0"]})));
    fixture.roll_out(&[OTHER]).settle().roll_out(&[OTHER, PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    fixture.spec.bypass_optimistic_lock = true;
    edit(&mut fixture, &["psi=0"]);
    fixture.settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, RolloutState::Pending));
    fixture
}

/// Found by a random schedule (242118) and left for a while: the pool was waited for without end.
#[test]
fn an_argument_that_another_config_has_too_is_not_waited_for() {
    let mut fixture = reverted_beside_the_same_argument();
    fixture.pass(20).settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::InProgress, 0), "it may still notice");
    assert_eq!(fixture.requeue_after, Some(Duration::from_secs(40)));

    let mut noticed = fixture.clone();
    edit(&mut noticed, &["psi=0"]);
    render(&mut noticed, &[OTHER, PSI]);
    edit(&mut noticed, &["psi=1"]);
    noticed.pass(MINUTE).settle();
    assert_eq!(
        (noticed.phase(), noticed.item(ITEM).rollout.len()),
        (Phase::InProgress, 1),
        "it has rendered the drift"
    );
    noticed.roll_out(&[OTHER, PSI]).settle();
    assert_eq!(noticed.phase(), Phase::Completed);

    fixture.pass(40).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "there is nothing to render");
}

/// What the pool has is not what its configs are now, so a new rendered config comes.
#[test]
fn a_pool_that_has_to_render_is_waited_for_although_it_has_the_arguments() {
    let others = [Some(json!([])), Some(json!(["psi=0", "quiet"])), None];
    for other in others {
        let mut fixture = reverted_beside_the_same_argument();
        match &other {
            Some(arguments) => fixture.cluster.put(machine_config(OTHER, json!({"kernelArguments": arguments}))),
            None => fixture.cluster.delete(&MACHINE_CONFIG, OTHER),
        }
        for _ in 0..3 {
            fixture.pass(10 * MINUTE).settle();
            assert_eq!(
                (fixture.phase(), pool(&fixture).state),
                (Phase::InProgress, RolloutState::Pending),
                "{other:?}"
            );
        }
        fixture.roll_out(&[OTHER, PSI]).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{other:?}");
    }
}

/// All nodes run more than the config that is applied again, and the pool has not noticed it for longer than it was given.
fn completed_too_early() -> Fixture {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(machine_config(PSI, json!({"kernelArguments": ["psi=1", "audit=0"]})));
    fixture.roll_out(&[PSI]);
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle().pass(MINUTE).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    fixture
}

#[test]
fn an_item_whose_pool_begins_after_it_was_told_completed_is_waited_for_again() {
    let mut fixture = completed_too_early();
    let written = fixture.written.len();
    fixture.pass(HOUR - MINUTE);
    render(&mut fixture, &[PSI]);
    fixture.settle();
    assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, RolloutState::Updating));
    fixture.roll_out(&[PSI]).settle();
    assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Completed, written));
}

/// Another config is edited in the fields of ours, and its rollout is slower than `waitTimeout`: the nodes have ours all the time.
#[test]
fn a_slow_rollout_of_somebody_elses_edit_fails_nothing() {
    let mut fixture = Fixture::new(LOAD_AWARE, Action::Apply);
    fixture.cluster.put(machine_config(OTHER, json!({"kernelArguments": ["quiet"]})));
    fixture.roll_out(&[OTHER]).settle().roll_out(&[OTHER, PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    fixture.spec.wait_timeout = Some("30m".into());
    fixture.cluster.put(machine_config(OTHER, json!({"kernelArguments": ["quiet", "audit=0"]})));
    render(&mut fixture, &[OTHER, PSI]);
    fixture.settle();
    assert_eq!(fixture.phase(), Phase::InProgress);
    fixture.pass(HOUR).settle();
    assert_eq!(fixture.phase(), Phase::InProgress, "nothing has failed");
    fixture.roll_out(&[OTHER, PSI]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

/// Later, or where configs come and go, it is somebody else's.
#[test]
fn rollouts_of_others_leave_an_item_completed() {
    let mut late = completed_too_early();
    late.pass(HOUR);
    render(&mut late, &[PSI]);
    late.settle();
    assert_eq!(late.phase(), Phase::Completed, "an edit after an hour");

    let mut added = Fixture::completed(LOAD_AWARE);
    added.cluster.put(machine_config(OTHER, json!({"kernelArguments": ["quiet"]})));
    render(&mut added, &[OTHER, PSI]);
    added.settle();
    assert_eq!(added.phase(), Phase::Completed, "another config");

    let mut unrelated = Fixture::completed(LOAD_AWARE);
    let file = json!([{"path": "/etc/other", "contents": {"source": "data:,a"}}]);
    unrelated.cluster.edit(&MACHINE_CONFIG, PSI, &["spec", "config"], Some(json!({"storage": {"files": file}})));
    render(&mut unrelated, &[PSI]);
    unrelated.settle();
    assert_eq!(unrelated.phase(), Phase::Completed, "nothing that the item manages");

    let mut joined = Fixture::completed(LOAD_AWARE);
    joined.cluster.put(crate::test_cluster::pool("gpu", &["worker", "gpu"], 1));
    joined.settle();
    assert_eq!(joined.phase(), Phase::Completed, "a new pool, which has rendered nothing");
}

/// The pool renders drift that is gone, however late: its nodes lose what was applied.
#[test]
fn nodes_that_lose_what_was_applied_are_waited_for_at_any_time() {
    for wait in [MINUTE, 5 * HOUR] {
        let mut fixture = Fixture::completed(LOAD_AWARE);
        fixture.pass(wait);
        edit(&mut fixture, &["psi=0"]);
        render(&mut fixture, &[PSI]);
        edit(&mut fixture, &["psi=1"]);
        fixture.settle();
        assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::InProgress, 1), "{wait}");
        fixture.roll_out(&[PSI]).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{wait}");
    }
}

#[test]
fn nodes_that_get_back_what_was_removed_are_waited_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let there = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle().roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    fixture.cluster.put(there);
    render(&mut fixture, &[PSI]);
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::InProgress, 1));
    fixture.roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

/// A completed item, applied by its plan or found by one that changed nothing.
fn completed(is_adopted: bool) -> Fixture {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    if is_adopted {
        fixture.edit(|_| {}).settle();
        assert_eq!(
            (fixture.phase(), &fixture.item(ITEM).impact_detail),
            (Phase::Completed, &None),
            "no pool is listed"
        );
    }
    fixture
}

/// Found by reading: the nodes rolled twice, and the status stayed Completed. No operator runs until the config is back.
#[test]
fn nodes_that_have_lost_a_config_and_get_it_back_are_waited_for_at_any_time() {
    for (is_adopted, wait) in [(false, MINUTE), (false, 5 * HOUR), (true, MINUTE), (true, 5 * HOUR)] {
        let mut fixture = completed(is_adopted);
        let written = fixture.written.len();
        fixture.pass(wait);
        let there = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
        fixture.cluster.delete(&MACHINE_CONFIG, PSI);
        fixture.roll_out(&[]);
        fixture.cluster.put(there);
        render(&mut fixture, &[PSI]);
        fixture.settle();
        assert_eq!(
            (fixture.phase(), pool(&fixture).state),
            (Phase::InProgress, RolloutState::Updating),
            "{is_adopted} {wait}"
        );
        fixture.roll_out(&[PSI]).settle();
        assert_eq!((fixture.phase(), fixture.written.len()), (Phase::Completed, written), "{is_adopted} {wait}");
    }
}

#[test]
fn nodes_that_have_lost_an_argument_and_get_it_back_are_waited_for_at_any_time() {
    for wait in [MINUTE, 5 * HOUR] {
        let mut fixture = Fixture::completed(LOAD_AWARE);
        fixture.pass(wait);
        edit(&mut fixture, &["psi=0"]);
        fixture.roll_out(&[PSI]);
        edit(&mut fixture, &["psi=1"]);
        render(&mut fixture, &[PSI]);
        fixture.settle();
        assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, RolloutState::Updating), "{wait}");
        fixture.roll_out(&[PSI]).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{wait}");
    }
}

#[test]
fn nodes_that_have_got_back_what_was_removed_and_lose_it_are_waited_for() {
    let mut fixture = Fixture::completed(LOAD_AWARE);
    let there = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    fixture.options(json!({"loadAware": {"enablePSIMetrics": false}})).settle().roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
    fixture.cluster.put(there);
    fixture.roll_out(&[PSI]);
    fixture.cluster.delete(&MACHINE_CONFIG, PSI);
    render(&mut fixture, &[]);
    fixture.settle();
    assert_eq!((fixture.phase(), fixture.item(ITEM).rollout.len()), (Phase::InProgress, 1));
    fixture.roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Phase::Completed);
}

/// Nothing of the item was lost: configs of others come, go and change, and pools are made or come to take the config.
#[test]
fn rollouts_that_take_nothing_away_leave_an_item_completed() {
    for is_adopted in [false, true] {
        let mut others = completed(is_adopted);
        others.pass(5 * HOUR);
        for arguments in [json!(["quiet"]), json!(["quiet", "psi=1"]), json!([])] {
            others.cluster.put(machine_config(OTHER, json!({"kernelArguments": arguments})));
            render(&mut others, &[OTHER, PSI]);
            others.settle();
            assert_eq!(others.phase(), Phase::Completed, "{is_adopted} {arguments}");
            others.roll_out(&[OTHER, PSI]).settle();
        }
        render(&mut others, &[PSI]);
        others.settle();
        assert_eq!(others.phase(), Phase::Completed, "{is_adopted}: the other config goes");

        let mut made = completed(is_adopted);
        let worker = made.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
        let mut gpu = crate::test_cluster::pool("gpu", &["worker", "gpu"], 1);
        gpu["spec"]["configuration"] = worker["spec"]["configuration"].clone();
        gpu["status"]["configuration"] = json!({"name": "", "source": []});
        gpu["status"]["conditions"] = json!([{"type": "Updating", "status": "True"}]);
        made.cluster.put(gpu);
        made.settle();
        assert_eq!(made.phase(), Phase::Completed, "{is_adopted}: a pool that runs nothing yet");
    }

    let mut joined = Fixture::completed(LOAD_AWARE);
    let worker = joined.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
    let mut gpu = crate::test_cluster::pool("gpu", &["worker", "gpu"], 1);
    gpu["spec"]["configuration"] = worker["spec"]["configuration"].clone();
    gpu["status"]["conditions"] = json!([{"type": "Updating", "status": "True"}]);
    joined.cluster.put(gpu);
    joined.settle();
    assert_eq!(joined.phase(), Phase::Completed, "a pool that was not planned, and never had it");
}

/// Some nodes of the worker pool do not run what it is to run, which is what it says it runs, since a second of the clock.
fn updates_some(fixture: &mut Fixture, updated: i32, total: i32, since: i64) {
    let mut pool = fixture.cluster.find(&MACHINE_CONFIG_POOL, None, "worker").unwrap().clone();
    let since = Timestamp::from_second(since).unwrap().to_string();
    pool["status"]["machineCount"] = total.into();
    pool["status"]["updatedMachineCount"] = updated.into();
    pool["status"]["readyMachineCount"] = updated.into();
    pool["status"]["conditions"] = json!([{"type": "Updating", "status": "True", "lastTransitionTime": since}]);
    fixture.cluster.put(pool);
}

/// Somebody writes the config at a second of the clock, as it is.
fn written(fixture: &mut Fixture, field: &str, second: i64) {
    let mut config = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    let time = Timestamp::from_second(second).unwrap().to_string();
    match field {
        "creationTimestamp" => config["metadata"][field] = time.into(),
        _ => config["metadata"][field] = json!([{"manager": "kubectl-edit", "operation": "Update", "time": time}]),
    }
    fixture.cluster.put(config);
}

/// Found by reading: no operator runs while the config is gone, or other than it was, and one node of three has lost it when it is back.
#[test]
fn some_nodes_that_have_lost_a_config_and_get_it_back_are_waited_for_at_any_time() {
    for (is_adopted, wait, field) in [
        (false, MINUTE, "creationTimestamp"),
        (false, 5 * HOUR, "managedFields"),
        (true, MINUTE, "managedFields"),
        (true, 5 * HOUR, "creationTimestamp"),
    ] {
        let mut fixture = completed(is_adopted);
        let begun = fixture.pass(wait).second;
        written(&mut fixture, field, begun + 10 * MINUTE);
        updates_some(&mut fixture, 2, 3, begun);
        fixture.pass(11 * MINUTE).settle();
        let case = format!("{is_adopted} {wait} {field}");
        assert_eq!((fixture.phase(), pool(&fixture).state), (Phase::InProgress, RolloutState::Updating), "{case}");
        fixture.roll_out(&[PSI]).pass(MINUTE).settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{case}");
        // A node joins, much later.
        let later = fixture.pass(HOUR).second;
        updates_some(&mut fixture, 3, 4, later);
        fixture.settle();
        assert_eq!(fixture.phase(), Phase::Completed, "{case}");
    }
}

/// Nodes join, are replaced or are not ready, and others take back what some nodes have got already. Nobody writes the config meanwhile.
#[test]
fn nodes_that_are_updated_for_another_reason_leave_an_item_completed() {
    for is_adopted in [false, true] {
        for (case, wrote, since, updated, total) in [
            ("a node joins", None, 0, 3, 4),
            ("a node is replaced, or a config of others came and went", None, 0, 2, 3),
            ("somebody wrote the config before", Some(-HOUR), 0, 2, 3),
            ("a node is not ready while somebody writes the config", Some(HOUR), 0, 3, 3),
        ] {
            let mut fixture = completed(is_adopted);
            let begun = fixture.pass(5 * HOUR).second;
            wrote.iter().for_each(|wrote| written(&mut fixture, "managedFields", begun + wrote));
            updates_some(&mut fixture, updated, total, begun + since);
            fixture.pass(2 * HOUR).settle();
            assert_eq!(fixture.phase(), Phase::Completed, "{is_adopted}: {case}");
        }
    }
}
