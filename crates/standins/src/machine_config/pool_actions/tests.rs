use std::time::Duration;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::json;

use super::*;
use crate::machine_config::{
    Drain, PoolStatus,
    test_objects::{NodeBuilder, at, pool},
};

fn rendered(name: &str) -> Rendered {
    Rendered { name: name.into(), spec: json!({}), sources: vec!["00-worker".into()] }
}

/// A pool whose spec says `target` and whose status says `rolled_out`.
fn pool_from(rolled_out: &str, target: &str) -> MachineConfigPool {
    let mut pool = pool("worker", &["worker"]);
    pool.spec.configuration = rendered(target).configuration();
    let configuration = rendered(rolled_out).configuration();
    pool.status = Some(PoolStatus { configuration, ..PoolStatus::default() });
    pool
}

fn next(pool: &MachineConfigPool, nodes: &[NodeBuilder]) -> Actions {
    let rendered = rendered(&pool.spec.configuration.name);
    let view = PoolView { pool, render: Ok(&rendered), is_stored: true };
    let nodes: Vec<Node> = nodes.iter().cloned().map(NodeBuilder::build).collect();
    pool_actions(&view, &nodes.iter().collect::<Vec<_>>(), at(0), &MachineConfigSettings::default())
}

/// All but those about taints.
fn requests(pool: &MachineConfigPool, nodes: &[NodeBuilder]) -> Vec<Request> {
    without_taints(next(pool, nodes).requests)
}

fn without_taints(mut requests: Vec<Request>) -> Vec<Request> {
    requests.retain(|request| !matches!(request, Request::SetUpdateTaint { .. }));
    requests
}

/// The nodes that are told to change.
fn targeted(pool: &MachineConfigPool, nodes: &[NodeBuilder]) -> Vec<String> {
    let target = |request| match request {
        Request::SetDesiredConfig { node, config } => {
            assert_eq!(config, pool.spec.configuration.name);
            Some(node)
        }
        _ => None,
    };
    requests(pool, nodes).into_iter().filter_map(target).collect()
}

fn node(name: &str, current: &str, desired: &str, state: &str) -> NodeBuilder {
    NodeBuilder::new(name).annotated(current, desired, state)
}

fn old(name: &str) -> NodeBuilder {
    node(name, "x", "x", "Done")
}

fn done(name: &str) -> NodeBuilder {
    node(name, "y", "y", "Done")
}

#[test]
fn a_rendered_config_is_created_then_made_the_target_then_rolled_out() {
    let pool = pool_from("x", "x");
    let new = rendered("y");
    let nodes = [old("a").build()];
    let requests = |is_stored: bool, pool: &MachineConfigPool| {
        let view = PoolView { pool, render: Ok(&new), is_stored };
        without_taints(pool_actions(&view, &[&nodes[0]], at(0), &MachineConfigSettings::default()).requests)
    };
    assert_eq!(requests(false, &pool), [Request::CreateRendered { pool: "worker".into(), rendered: new.clone() }]);
    assert_eq!(
        requests(true, &pool),
        [Request::SetPoolTarget { pool: "worker".into(), configuration: new.configuration() }]
    );
    let moved = pool_from("x", "y");
    match requests(true, &moved).as_slice() {
        [Request::UpdatePoolStatus { status, .. }, Request::SetDesiredConfig { node, config }] => {
            assert_eq!((status.updated_machine_count, status.configuration.name.as_str()), (0, "x"));
            assert_eq!((node.as_str(), config.as_str()), ("a", "y"));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_sources_of_the_same_content_are_recorded_and_update_no_node() {
    let pool = pool_from("x", "x");
    let mut same = rendered("x");
    same.sources.push("99-nothing-new".into());
    let view = PoolView { pool: &pool, render: Ok(&same), is_stored: true };
    let nodes = [old("a").build()];
    let actions = pool_actions(&view, &[&nodes[0]], at(0), &MachineConfigSettings::default());
    assert_eq!(actions, Request::SetPoolTarget { pool: "worker".into(), configuration: same.configuration() }.into());
}

#[test]
fn a_pool_that_cannot_be_rendered_is_degraded_and_keeps_its_target() {
    let pool = pool_from("x", "y");
    let error = RenderError::NothingSelected("{}".into());
    let view = PoolView { pool: &pool, render: Err(&error), is_stored: false };
    let nodes = [old("a").build()];
    let actions = pool_actions(&view, &[&nodes[0]], at(0), &MachineConfigSettings::default());
    match without_taints(actions.requests).as_slice() {
        [Request::UpdatePoolStatus { status, .. }, Request::SetDesiredConfig { .. }] => {
            assert_eq!(status.condition("RenderDegraded").unwrap().status, "True");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn at_rest_there_is_nothing_to_do() {
    let mut pool = pool_from("y", "y");
    let nodes = [done("a"), done("b")];
    let report = requests(&pool, &nodes).into_iter().next();
    let Some(Request::UpdatePoolStatus { status, .. }) = report else { panic!("{report:?}") };
    pool.status = Some(status);
    assert_eq!(next(&pool, &nodes), Actions::default());
    let mut empty = pool_from("y", "y");
    let Some(Request::UpdatePoolStatus { status, .. }) = requests(&empty, &[]).into_iter().next() else {
        panic!("no status")
    };
    assert_eq!(status.condition("Updated").unwrap().status, "True", "no nodes are all updated");
    empty.status = Some(status);
    assert_eq!(next(&empty, &[]), Actions::default());
}

#[test]
fn no_more_nodes_are_updated_at_a_time_than_may_be_unavailable() {
    let unavailable = |name: &str| node(name, "x", "y", "Rebooting").cordoned();
    let failing = |name: &str| node(name, "x", "y", "Degraded");
    let cases: Vec<(&str, i32, Vec<NodeBuilder>, &[&str])> = vec![
        ("the first", 1, vec![old("a"), old("b"), old("c")], &["a"]),
        ("while one is unavailable, no other", 1, vec![unavailable("a"), old("b"), old("c")], &[]),
        ("then the next", 1, vec![done("a"), old("b"), old("c")], &["b"]),
        ("two at a time", 2, vec![old("a"), old("b"), old("c")], &["a", "b"]),
        ("two at a time, one is unavailable", 2, vec![old("a"), unavailable("b"), old("c")], &["a"]),
        ("a cordoned node counts and is not updated", 1, vec![old("a").cordoned(), old("b")], &[]),
        ("a cordoned node counts, but another may be updated", 2, vec![old("a").cordoned(), old("b")], &["b"]),
        ("a node that is not ready counts", 1, vec![done("a").ready(false), old("b")], &[]),
        ("a failing node counts although it is in service", 1, vec![failing("a"), old("b")], &[]),
        ("a failing node counts, but another may be updated", 2, vec![failing("a"), old("b"), old("c")], &["b"]),
        ("a failing and cordoned node counts twice", 2, vec![failing("a").cordoned(), old("b"), old("c")], &[]),
        (
            "a failing and cordoned node, and another may be updated",
            3,
            vec![failing("a").cordoned(), old("b"), old("c")],
            &["b"],
        ),
        ("more than there are nodes", 9, vec![old("a"), old("b")], &["a", "b"]),
        ("all done", 1, vec![done("a"), done("b")], &[]),
        (
            "a node that is being updated to another config is not redirected",
            2,
            vec![node("a", "w", "x", "Working"), old("b")],
            &["b"],
        ),
        (
            "a node that fails to update to another config is redirected",
            1,
            vec![node("a", "w", "x", "Degraded"), done("b")],
            &["a"],
        ),
        ("unless it is cordoned", 1, vec![node("a", "w", "x", "Degraded").cordoned(), old("b")], &[]),
    ];
    for (case, max, nodes, expected) in cases {
        let mut pool = pool_from("x", "y");
        pool.spec.max_unavailable = Some(IntOrString::Int(max));
        assert_eq!(targeted(&pool, &nodes), expected, "{case}");
    }
}

#[test]
fn nodes_are_updated_zone_by_zone_and_the_oldest_first() {
    let nodes = [
        old("young").created(300),
        old("old").created(100),
        old("b").created(200),
        old("a").created(200),
        old("elsewhere").created(1).zone("zone-2"),
        old("here").created(900).zone("zone-1"),
    ];
    let mut pool = pool_from("x", "y");
    pool.spec.max_unavailable = Some(IntOrString::String("100%".into()));
    assert_eq!(targeted(&pool, &nodes), ["here", "elsewhere", "old", "a", "b", "young"], "those without a zone last");
}

#[test]
fn nodes_that_are_to_be_updated_are_tainted_until_they_are_unless_the_pool_is_paused() {
    let mut pool = pool_from("x", "y");
    let nodes = [old("a"), node("b", "x", "y", "Working").tainted(true), done("c").tainted(true), done("d")];
    let taints = |pool: &MachineConfigPool| {
        let taint = |request| match request {
            Request::SetUpdateTaint { node, is_set } => Some((node, is_set)),
            _ => None,
        };
        next(pool, &nodes).requests.into_iter().filter_map(taint).collect::<Vec<_>>()
    };
    assert_eq!(taints(&pool), [("a".to_owned(), true), ("c".to_owned(), false)]);
    pool.spec.paused = true;
    assert_eq!(taints(&pool), []);
}

#[test]
fn a_paused_pool_updates_no_further_node_but_does_not_stop_one_that_has_begun() {
    let mut pool = pool_from("x", "y");
    pool.spec.paused = true;
    match requests(&pool, &[node("a", "x", "y", "Done"), old("b")]).as_slice() {
        [Request::UpdatePoolStatus { .. }, Request::Cordon { node, .. }] => assert_eq!(node, "a"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_node_runs_what_the_others_run_and_is_not_rebooted() {
    let adopted = |pool: &MachineConfigPool| {
        let adopt = |request| match request {
            Request::Adopt { node, config } if node == "new" => Some(config),
            other => panic!("{other:?}"),
        };
        requests(pool, &[NodeBuilder::new("new")]).into_iter().find_map(adopt)
    };
    assert_eq!(adopted(&pool_from("y", "y")).as_deref(), Some("y"));
    assert_eq!(adopted(&pool_from("x", "y")).as_deref(), Some("x"), "in the middle of a rollout: what was rolled out");
    let mut fresh = pool_from("", "y");
    assert_eq!(adopted(&fresh).as_deref(), Some("y"), "in a new pool: what was just rendered");
    fresh.spec.paused = true;
    assert_eq!(adopted(&fresh).as_deref(), Some("y"));
}

#[test]
fn new_nodes_do_not_make_the_pool_look_as_if_it_were_updating() {
    let pool = pool_from("y", "y");
    let adopt = Request::Adopt { node: "new".into(), config: "y".into() };
    assert_eq!(next(&pool, &[NodeBuilder::new("new").without_ready(), done("a")]), adopt.into());
    let come_up = Request::SetReady { node: "new".into() };
    assert_eq!(next(&pool, &[done("new").without_ready(), done("a")]), come_up.into());
    let waits_for_kwok = requests(&pool, &[done("new").without_ready().kwok(), done("a")]);
    assert!(matches!(waits_for_kwok.as_slice(), [Request::UpdatePoolStatus { .. }]), "{waits_for_kwok:?}");
}

/// Performs the actions of a whole rollout, and counts how many nodes are out of service at any time.
#[test]
fn a_whole_rollout_reaches_every_node_and_never_too_many_at_once() {
    for (count, max) in [(1, 1), (3, 1), (6, 1), (6, 2), (5, 3)] {
        let settings = MachineConfigSettings { reboot: Duration::from_secs(5), ..MachineConfigSettings::default() };
        let mut pool = pool_from("x", "y");
        pool.spec.max_unavailable = Some(IntOrString::Int(max));
        let mut nodes: Vec<NodeBuilder> = (0..count).map(|number| old(&format!("node-{number}"))).collect();
        let (mut now, mut most, mut updated) = (0, 0, Vec::new());
        for _ in 0..200 {
            let built: Vec<Node> = nodes.iter().cloned().map(NodeBuilder::build).collect();
            let away = built.iter().filter(|node| !Machine::of(node).is_in_service()).count();
            most = most.max(away);
            let rendered = rendered("y");
            let view = PoolView { pool: &pool, render: Ok(&rendered), is_stored: true };
            let actions = pool_actions(&view, &built.iter().collect::<Vec<_>>(), at(now), &settings);
            if actions == Actions::default() {
                break;
            }
            let mut change = |name: &str, with: &dyn Fn(NodeBuilder) -> NodeBuilder| {
                let node = nodes.iter_mut().find(|node| node.name == name).unwrap();
                *node = with(node.clone());
            };
            for Drain { node, .. } in actions.drains {
                change(&node, &|node| node.drained("y"));
            }
            for request in actions.requests {
                match request {
                    Request::UpdatePoolStatus { status, .. } => {
                        updated.push(status.updated_machine_count);
                        pool.status = Some(status);
                    }
                    Request::SetUpdateTaint { node, is_set } => change(&node, &|node| node.tainted(is_set)),
                    Request::SetDesiredConfig { node, .. } => change(&node, &|node| node.annotated("x", "y", "Done")),
                    Request::Cordon { node, .. } => change(&node, &|node| node.state("Working").cordoned()),
                    Request::StartReboot { node } => change(&node, &|node| node.state("Rebooting").since(now)),
                    Request::SetNotReady { node } => change(&node, &|node| node.ready(false)),
                    Request::SetReady { node } => change(&node, &|node| node.ready(true)),
                    Request::Uncordon { node, .. } => {
                        change(&node, &|node| node.annotated("y", "y", "Done").uncordoned());
                    }
                    other => panic!("{other:?}"),
                }
            }
            if actions.wake_at.is_some() {
                now += 1;
            }
        }
        assert_eq!(most, usize::try_from(max.min(count)).unwrap(), "{count} nodes, {max} at a time");
        assert!(updated.is_sorted(), "{updated:?}");
        let status = pool.status.unwrap();
        assert_eq!((status.updated_machine_count, status.configuration.name.as_str()), (count, "y"));
        assert_eq!(status.condition("Updated").unwrap().status, "True");
    }
}
