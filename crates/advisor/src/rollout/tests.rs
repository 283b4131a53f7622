//! What pools say, and what is told about them.

use serde_json::{Value, json};

use super::*;
use crate::{Answer, ObjectRef, Query, kind, pools};

const NAME: &str = "99-worker-psi-karg";

fn labels() -> Value {
    json!({"machineconfiguration.openshift.io/role": "worker"})
}

fn merge(into: &mut Value, from: Value) {
    match from {
        Value::Object(map) if into.is_object() => map.into_iter().for_each(|(key, value)| merge(&mut into[key], value)),
        value => *into = value,
    }
}

/// A pool of three nodes that have rolled out the change, with a difference.
fn pool(difference: Value) -> Value {
    let mut pool = json!({
        "metadata": {"name": "worker", "generation": 4},
        "spec": {
            "machineConfigSelector": {"matchLabels": labels()},
            "configuration": {"name": "rendered-b", "source": [{"name": "00-worker"}, {"name": NAME}]},
        },
        "status": {
            "observedGeneration": 4, "configuration": {"name": "rendered-b"},
            "machineCount": 3, "updatedMachineCount": 3, "readyMachineCount": 3, "degradedMachineCount": 0,
            "conditions": [{"type": "Updated", "status": "True"}, {"type": "Updating", "status": "False"}],
        },
    });
    merge(&mut pool, difference);
    pool
}

fn of(pools: Vec<Value>, is_present: bool) -> Rollout {
    of_changed(pools, is_present, None)
}

fn of_changed(pools: Vec<Value>, is_present: bool, before: Option<&str>) -> Rollout {
    of_rendered(pools, is_present, before, &["psi=1"])
}

/// `rendered-b` has these kernel arguments.
fn of_rendered(pools: Vec<Value>, is_present: bool, before: Option<&str>, arguments: &[&str]) -> Rollout {
    let rendered = ObjectRef::cluster(&kind::MACHINE_CONFIG, "rendered-b");
    let object = json!({"spec": {"kernelArguments": arguments}});
    let facts = Facts::of([
        (Query::List(&kind::MACHINE_CONFIG_POOL), Answer::List { version: "v1", items: pools }),
        (Query::Object(rendered), Answer::Object { version: "v1", object }),
    ]);
    let config = json!({"spec": {"kernelArguments": ["psi=1"]}});
    let config = is_present.then_some(&config);
    let reached = pools::reached(&facts, &labels());
    let expected: Vec<_> = reached.into_iter().map(|pool| Expected { pool, config }).collect();
    rollout(NAME, &expected, &facts, |_| before)
}

fn conditions(updated: bool, updating: bool) -> Value {
    let status = |holds| if holds { "True" } else { "False" };
    json!([{"type": "Updated", "status": status(updated)}, {"type": "Updating", "status": status(updating)}])
}

/// W4 (pool done too early), W27 (unusual pools), D24 (progress texts): a pool is believed when it has taken in
/// the change; empty, paused and degraded ones are told.
#[test]
fn a_rollout_is_told_in_the_words_of_the_guides() {
    let cases = [
        ("done", json!({}), Ok("MachineConfigPool 'worker' is ready (all 3 nodes updated)")),
        (
            "no nodes at all",
            json!({"status": {"machineCount": 0, "updatedMachineCount": 0, "readyMachineCount": 0}}),
            Ok("MachineConfigPool 'worker' is ready (all 0 nodes updated)"),
        ),
        (
            "rolling",
            json!({"spec": {"configuration": {"name": "rendered-c"}}, "status": {"updatedMachineCount": 1, "readyMachineCount": 1, "conditions": conditions(false, true)}}),
            Err("MachineConfigPool 'worker' is updating (Updated: 1/3, Ready: 1/3)"),
        ),
        (
            "not rendered yet, although it says it is updated",
            json!({"spec": {"configuration": {"source": [{"name": "00-worker"}]}}}),
            Err("MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)"),
        ),
        (
            "rendered, and its nodes run the one before",
            json!({"spec": {"configuration": {"name": "rendered-c"}}}),
            Err("MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)"),
        ),
        (
            "its controller has not seen its newest spec",
            json!({"metadata": {"generation": 5}}),
            Err("MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)"),
        ),
        (
            "neither updated nor updating",
            json!({"status": {"conditions": conditions(false, false)}}),
            Err("MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)"),
        ),
        (
            "updated, and a node is not ready",
            json!({"status": {"readyMachineCount": 2}}),
            Err("Waiting for MachineConfigPool 'worker' to stabilize (Updated: 3/3, Ready: 2/3)"),
        ),
        (
            "paused before the change",
            json!({"spec": {"paused": true, "configuration": {"name": "rendered-c"}}, "status": {"conditions": conditions(false, false)}}),
            Err("MachineConfigPool 'worker' is paused (Updated: 3/3, Ready: 3/3); resume it to roll out the change"),
        ),
        (
            "paused after the change was done",
            json!({"spec": {"paused": true}}),
            Ok("MachineConfigPool 'worker' is ready (all 3 nodes updated)"),
        ),
        (
            "degraded",
            json!({"status": {"degradedMachineCount": 1}}),
            Err("MachineConfigPool 'worker' is degraded (1 degraded machines)"),
        ),
        (
            "cannot be rendered",
            json!({"status": {"conditions": [{"type": "RenderDegraded", "status": "True", "message": "could not merge"}]}}),
            Err("MachineConfigPool 'worker' is degraded: could not merge"),
        ),
        (
            "no conditions",
            json!({"status": {"conditions": []}}),
            Err("MachineConfigPool 'worker' conditions not available"),
        ),
        ("no status", json!({"status": Value::Null}), Err("MachineConfigPool 'worker' status not available")),
    ];
    for (case, difference, expected) in cases {
        assert_eq!(
            told(of(vec![pool(difference)], true)),
            expected.map_err(str::to_owned).map(str::to_owned),
            "{case}"
        );
    }
}

fn told(rollout: Rollout) -> Result<String, String> {
    match rollout {
        Rollout::Done(message) => Ok(message),
        Rollout::Waiting(pools) => Err(pools.into_iter().map(|wait| wait.message).collect::<Vec<_>>().join("; ")),
        Rollout::Unknown(message) => Err(message),
    }
}

/// At night one of six nodes cannot be drained: the pool says which, and its counts do not.
#[test]
fn a_pool_that_does_not_get_on_says_why() {
    use RolloutState::*;
    let node = "Node worker-3 is reporting: \"failed to drain node: worker-3 after 1 hour\"";
    let condition = |kind: &str, message: &str| json!({"type": kind, "status": "True", "message": message});
    let degraded = |conditions: Value, machines: i64| {
        json!({"status": {
            "degradedMachineCount": machines, "machineCount": 6, "updatedMachineCount": 2, "conditions": conditions,
        }})
    };
    let rolling = |paused: bool| {
        json!({
            "spec": {"paused": paused, "configuration": {"name": "rendered-c"}},
            "status": {"machineCount": 6, "updatedMachineCount": 2, "conditions": conditions(false, !paused)},
        })
    };
    let cases = [
        (
            "a node, by its name",
            degraded(json!([condition("NodeDegraded", node), condition("Degraded", "")]), 1),
            Degraded,
            Some(node.to_owned()),
        ),
        (
            "the same message twice",
            degraded(json!([condition("NodeDegraded", node), condition("Degraded", node)]), 1),
            Degraded,
            Some(node.to_owned()),
        ),
        (
            "only the general condition",
            degraded(json!([condition("Degraded", "disk")]), 1),
            Degraded,
            Some("disk".to_owned()),
        ),
        ("only the count", degraded(json!([]), 2), Degraded, Some("2 degraded machines".to_owned())),
        (
            "a config that cannot be merged, and a node",
            degraded(
                json!([
                    condition("NodeDegraded", node),
                    condition("RenderDegraded", "could not merge 50-x"),
                    condition("Degraded", "")
                ]),
                1,
            ),
            RenderDegraded,
            Some(format!("could not merge 50-x; {node}")),
        ),
        ("nothing wrong", rolling(false), Updating, None),
        ("somebody paused it", rolling(true), Paused, Some("the pool is paused (spec.paused)".to_owned())),
        (
            "no conditions",
            json!({"status": {"machineCount": 6, "updatedMachineCount": 2, "conditions": []}}),
            Pending,
            None,
        ),
    ];
    for (case, difference, state, cause) in cases {
        let Rollout::Waiting(waits) = of(vec![pool(difference)], true) else { panic!("{case}") };
        let [wait] = waits.try_into().unwrap_or_else(|waits| panic!("{case}: {waits:?}"));
        assert_eq!((wait.state, wait.cause.as_ref()), (state, cause.as_ref()), "{case}");
        assert_eq!((wait.pool.as_str(), wait.updated, wait.total), ("worker", Some(2), Some(6)), "{case}");
        let is_told = wait.message.contains("'worker'")
            && (state == Paused || cause.is_none_or(|cause| wait.message.contains(&cause)));
        assert!(is_told, "{case}: {}", wait.message);
    }
}

#[test]
fn a_removal_is_done_when_the_config_is_no_longer_part_of_the_pool() {
    assert!(matches!(of(vec![pool(json!({}))], false), Rollout::Waiting(_)), "still part of it");
    let without = json!({"spec": {"configuration": {"source": [{"name": "00-worker"}]}}});
    assert!(matches!(of(vec![pool(without)], false), Rollout::Done(_)));
}

/// W4 (pool done too early): what it says of the config before does not count.
#[test]
fn a_changed_config_that_was_part_of_the_pool_before_needs_a_new_target() {
    let of = |before: &str| of_changed(vec![pool(json!({}))], true, Some(before));
    let waiting = "MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)";
    assert_eq!(told(of("rendered-b")), Err(waiting.to_owned()), "updated, of what was before");
    assert!(matches!(of("rendered-a"), Rollout::Done(_)));
}

/// Found by random edits: the config was in the pool with other content, was deleted, and is applied again before the pool
/// renders.
#[test]
fn a_pool_with_other_content_of_the_config_has_not_taken_it_over() {
    let waiting = "MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)";
    let of = |arguments: &[&str]| told(of_rendered(vec![pool(json!({}))], true, None, arguments));
    assert_eq!(of(&["psi=0"]), Err(waiting.into()));
    assert!(of(&["quiet", "psi=1"]).is_ok());
}

/// W27 (unusual pools): custom pools too.
#[test]
fn every_pool_that_takes_the_config_counts() {
    let infra = |difference: Value| {
        let mut pool = pool(difference);
        pool["metadata"]["name"] = "infra".into();
        pool
    };
    let rolling = json!({"status": {"updatedMachineCount": 0, "conditions": conditions(false, true)}});
    assert_eq!(
        told(of(vec![pool(json!({})), infra(rolling)], true)),
        Err("MachineConfigPool 'infra' is updating (Updated: 0/3, Ready: 3/3)".into())
    );
    assert!(matches!(of(vec![pool(json!({})), infra(json!({}))], true), Rollout::Done(_)));
}
