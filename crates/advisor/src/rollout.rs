//! Whether a change of a MachineConfig has reached the nodes, according to its pools.
//!
//! Right after a write, a pool still reports the state of the configuration before. So `Updated` counts only if the pool has rendered
//! this change.

use crate::pools::Pool;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rollout {
    Done(String),
    Waiting(String),
}

/// Whether the config is expected in its pools, or its absence from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Present,
    Absent,
}

/// The progress of a rollout over all pools of a MachineConfig. `before` returns what a pool had rendered before the change, if that
/// included an earlier version of the config.
pub fn rollout<'a>(
    name: &str,
    pools: &[Pool<'_>],
    expected: Expected,
    before: impl Fn(&str) -> Option<&'a str>,
) -> Rollout {
    let of_pools: Vec<Rollout> = pools.iter().map(|pool| of_pool(*pool, name, expected, before(pool.name()))).collect();
    let waiting = of_pools.iter().filter_map(|rollout| match rollout {
        Rollout::Waiting(message) => Some(message.as_str()),
        Rollout::Done(_) => None,
    });
    let waiting: Vec<&str> = waiting.collect();
    if !waiting.is_empty() {
        return Rollout::Waiting(waiting.join("; "));
    }
    let done = of_pools.iter().map(|rollout| match rollout {
        Rollout::Done(message) | Rollout::Waiting(message) => message.as_str(),
    });
    Rollout::Done(done.collect::<Vec<_>>().join("; "))
}

fn of_pool(pool: Pool<'_>, config: &str, expected: Expected, before: Option<&str>) -> Rollout {
    let (pool_name, is_pending) = (pool.name(), !is_taken_over(pool, config, expected, before));
    let pool = pool.object();
    let waiting = |text: String| Rollout::Waiting(format!("MachineConfigPool '{pool_name}' {text}"));
    let status = &pool["status"];
    if status.as_object().is_none_or(serde_json::Map::is_empty) {
        return Rollout::Waiting("MachineConfigPool status not available".into());
    }
    let count = |name: &str| status[name].as_i64().unwrap_or(0);
    let (machines, updated, ready) = (count("machineCount"), count("updatedMachineCount"), count("readyMachineCount"));
    let counts = format!("(Updated: {updated}/{machines}, Ready: {ready}/{machines})");

    if count("degradedMachineCount") > 0 {
        return waiting(format!("is degraded ({} degraded machines)", count("degradedMachineCount")));
    }
    let condition = |kind: &str| status["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind);
    let is = |kind: &str| condition(kind).is_some_and(|condition| condition["status"] == "True");
    if is("Degraded") || is("RenderDegraded") {
        let cause = ["RenderDegraded", "Degraded"].into_iter().filter(|kind| is(kind)).filter_map(condition);
        let message = cause.filter_map(|cause| cause["message"].as_str()).find(|message| !message.is_empty());
        return waiting(message.map_or_else(|| "is degraded".to_owned(), |message| format!("is degraded: {message}")));
    }
    if status["conditions"].as_array().is_none_or(Vec::is_empty) {
        return Rollout::Waiting("MachineConfigPool conditions not available".into());
    }
    if pool["spec"]["paused"] == true && (is_pending || !is("Updated")) {
        return waiting(format!("is paused {counts}; resume it to roll out the change"));
    }
    if is("Updating") {
        return waiting(format!("is updating {counts}"));
    }
    if is_pending || !is("Updated") {
        return waiting(format!("is processing changes {counts}"));
    }
    if updated == machines && ready == machines {
        return Rollout::Done(format!("MachineConfigPool '{pool_name}' is ready (all {machines} nodes updated)"));
    }
    Rollout::Waiting(format!("Waiting for MachineConfigPool '{pool_name}' to stabilize {counts}"))
}

/// Whether the pool has rendered the change, and its nodes run that, as of its newest spec.
fn is_taken_over(pool: Pool<'_>, config: &str, expected: Expected, before: Option<&str>) -> bool {
    let object = pool.object();
    let observed = object.pointer("/status/observedGeneration");
    let current = observed.is_none() || observed == object.pointer("/metadata/generation");
    let rendered_anew = before.is_none() || pool.target() != before;
    pool.target_includes(config) == (expected == Expected::Present)
        && rendered_anew
        && current
        && pool.target() == pool.rendered()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Answer, Facts, Query, kind, pools};

    const NAME: &str = "99-worker-psi-karg";

    fn labels() -> Value {
        json!({"machineconfiguration.openshift.io/role": "worker"})
    }

    fn merge(into: &mut Value, from: Value) {
        match from {
            Value::Object(map) if into.is_object() => {
                map.into_iter().for_each(|(key, value)| merge(&mut into[key], value))
            }
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

    fn of(pools: Vec<Value>, expected: Expected) -> Rollout {
        of_changed(pools, expected, None)
    }

    fn of_changed(pools: Vec<Value>, expected: Expected, before: Option<&str>) -> Rollout {
        let answer = Answer::List { version: "v1", items: pools };
        let facts = Facts::of([(Query::List(&kind::MACHINE_CONFIG_POOL), answer)]);
        rollout(NAME, &pools::reached(&facts, &labels()), expected, |_| before)
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
                Err(
                    "MachineConfigPool 'worker' is paused (Updated: 3/3, Ready: 3/3); resume it to roll out the change",
                ),
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
            ("no conditions", json!({"status": {"conditions": []}}), Err("MachineConfigPool conditions not available")),
            ("no status", json!({"status": Value::Null}), Err("MachineConfigPool status not available")),
        ];
        for (case, difference, expected) in cases {
            let expected = match expected {
                Ok(message) => Rollout::Done(message.into()),
                Err(message) => Rollout::Waiting(message.into()),
            };
            assert_eq!(of(vec![pool(difference)], Expected::Present), expected, "{case}");
        }
    }

    #[test]
    fn a_removal_is_done_when_the_config_is_no_longer_part_of_the_pool() {
        assert!(matches!(of(vec![pool(json!({}))], Expected::Absent), Rollout::Waiting(_)), "still part of it");
        let without = json!({"spec": {"configuration": {"source": [{"name": "00-worker"}]}}});
        assert!(matches!(of(vec![pool(without)], Expected::Absent), Rollout::Done(_)));
    }

    /// W4 (pool done too early): what it says of the config before does not count.
    #[test]
    fn a_changed_config_that_was_part_of_the_pool_before_needs_a_new_target() {
        let of = |before: &str| of_changed(vec![pool(json!({}))], Expected::Present, Some(before));
        let waiting = "MachineConfigPool 'worker' is processing changes (Updated: 3/3, Ready: 3/3)";
        assert_eq!(of("rendered-b"), Rollout::Waiting(waiting.into()), "updated, of what was before");
        assert!(matches!(of("rendered-a"), Rollout::Done(_)));
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
            of(vec![pool(json!({})), infra(rolling)], Expected::Present),
            Rollout::Waiting("MachineConfigPool 'infra' is updating (Updated: 0/3, Ready: 3/3)".into())
        );
        assert!(matches!(of(vec![pool(json!({})), infra(json!({}))], Expected::Present), Rollout::Done(_)));
    }
}
