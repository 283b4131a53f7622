//! The status of a pool: counts and conditions, with the messages of the real operator.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{Condition, Machine, MachineConfigPool, PoolStatus, RenderError};

/// The status of a pool with these nodes. It equals the current one if nothing changed.
pub(super) fn status(
    pool: &MachineConfigPool,
    render_error: Option<&RenderError>,
    machines: &[Machine<'_>],
    now: Timestamp,
) -> PoolStatus {
    let target = pool.spec.configuration.name.as_str();
    let count = |is: &dyn Fn(&Machine<'_>) -> bool| {
        i32::try_from(machines.iter().filter(|machine| is(machine)).count()).unwrap_or(i32::MAX)
    };
    let updated = |machine: &Machine<'_>| machine.is_done_with(target);
    let mut status = PoolStatus {
        observed_generation: pool.metadata.generation.unwrap_or_default(),
        machine_count: count(&|_| true),
        updated_machine_count: count(&updated),
        ready_machine_count: count(&|machine| updated(machine) && machine.is_in_service()),
        unavailable_machine_count: count(&|machine| machine.is_unavailable()),
        degraded_machine_count: count(&|machine| machine.is_degraded()),
        ..pool.status.clone().unwrap_or_default()
    };
    for (kind, is_true, reason, message) in conditions(pool, render_error, machines, &status) {
        set(&mut status.conditions, kind, is_true, reason, message, now);
    }
    if is_updated(&status) && !target.is_empty() {
        status.configuration = pool.spec.configuration.clone();
    }
    status
}

fn is_updated(status: &PoolStatus) -> bool {
    status.updated_machine_count == status.machine_count
        && status.ready_machine_count == status.machine_count
        && status.unavailable_machine_count == 0
}

/// Type, whether it is True, reason, message.
type NewCondition = (&'static str, bool, String, String);

fn conditions(
    pool: &MachineConfigPool,
    render_error: Option<&RenderError>,
    machines: &[Machine<'_>],
    status: &PoolStatus,
) -> Vec<NewCondition> {
    let target = pool.spec.configuration.name.as_str();
    let none = String::new;
    let mut conditions = Vec::with_capacity(5);

    let render_message = render_error
        .map(|error| format!("Failed to render configuration for pool {}: {error}", pool.name_any()))
        .unwrap_or_default();
    conditions.push(("RenderDegraded", render_error.is_some(), none(), render_message));

    // A pool that was never rendered has no target.
    if !target.is_empty() {
        let (updated, updating, updated_message, updating_message) = match (is_updated(status), pool.spec.paused) {
            (true, _) => (true, false, format!("All nodes are updated with MachineConfig {target}"), none()),
            (false, true) => (false, false, none(), format!("Pool is paused; will not update to {target}")),
            (false, false) => (false, true, none(), format!("All nodes are updating to MachineConfig {target}")),
        };
        conditions.push(("Updated", updated, none(), updated_message));
        conditions.push(("Updating", updating, none(), updating_message));
    }

    let degraded: Vec<_> = machines.iter().filter(|machine| machine.is_degraded()).collect();
    let (node_reason, node_message) = if degraded.is_empty() {
        (none(), none())
    } else {
        let reports =
            degraded.iter().map(|machine| format!("Node {} is reporting: {:?}", machine.name(), machine.reason()));
        let reason = format!("{} nodes are reporting degraded status on sync", degraded.len());
        (reason, reports.collect::<Vec<_>>().join(", "))
    };
    conditions.push(("NodeDegraded", !degraded.is_empty(), node_reason, node_message.clone()));
    conditions.push(("Degraded", !degraded.is_empty() || render_error.is_some(), none(), node_message));
    conditions
}

/// Sets a condition in its place in the list. The transition time changes only with the status.
fn set(conditions: &mut Vec<Condition>, kind: &str, is_true: bool, reason: String, message: String, now: Timestamp) {
    let status = if is_true { "True" } else { "False" };
    // Seconds, as the API server stores them: the written status equals the one that is read.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let mut condition = Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason,
        message,
        last_transition_time: Some(Time(now)),
    };
    match conditions.iter_mut().find(|known| known.kind == kind) {
        Some(known) => {
            if known.status == status && known.last_transition_time.is_some() {
                condition.last_transition_time = known.last_transition_time.take();
            }
            *known = condition;
        }
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::{NodeBuilder, at, pool};

    fn node(name: &str, current: &str, desired: &str, state: &str) -> NodeBuilder {
        NodeBuilder::new(name).annotated(current, desired, state)
    }

    fn pool_at(target: &str, status: PoolStatus) -> MachineConfigPool {
        let mut pool = pool("worker", &["worker"]);
        pool.metadata.generation = Some(7);
        pool.spec.configuration.name = target.into();
        pool.status = Some(status);
        pool
    }

    fn report(pool: &MachineConfigPool, error: Option<&RenderError>, nodes: &[NodeBuilder], now: i64) -> PoolStatus {
        let nodes: Vec<_> = nodes.iter().cloned().map(NodeBuilder::build).collect();
        let machines: Vec<_> = nodes.iter().map(Machine::of).collect();
        status(pool, error, &machines, at(now))
    }

    /// `Updated Updating Degraded NodeDegraded RenderDegraded`, a letter each for True and False.
    fn letters(status: &PoolStatus) -> String {
        ["Updated", "Updating", "Degraded", "NodeDegraded", "RenderDegraded"]
            .map(|kind| match status.condition(kind).map(|condition| condition.status.as_str()) {
                Some("True") => 'T',
                Some("False") => 'F',
                _ => '-',
            })
            .iter()
            .collect()
    }

    #[test]
    fn counts_and_conditions_follow_the_nodes() {
        let done = |name: &str| node(name, "y", "y", "Done");
        let old = |name: &str| node(name, "x", "x", "Done");
        let failing = |name: &str| node(name, "x", "y", "Degraded").cordoned().reason("why");
        // machine, updated, ready, unavailable, degraded
        let cases = [
            ("no nodes", vec![], [0, 0, 0, 0, 0], "TFFFF", "y"),
            ("all done", vec![done("a"), done("b")], [2, 2, 2, 0, 0], "TFFFF", "y"),
            ("no update has begun", vec![old("a"), old("b")], [2, 0, 0, 0, 0], "FTFFF", "x"),
            (
                "one with another desired config",
                vec![node("a", "x", "y", "Done"), old("b")],
                [2, 0, 0, 1, 0],
                "FTFFF",
                "x",
            ),
            (
                "one rebooting",
                vec![node("a", "x", "y", "Rebooting").cordoned(), done("b")],
                [2, 1, 1, 1, 0],
                "FTFFF",
                "x",
            ),
            ("one done but cordoned", vec![done("a").cordoned(), done("b")], [2, 2, 1, 1, 0], "FTFFF", "x"),
            ("one done but not ready", vec![done("a").ready(false), done("b")], [2, 2, 1, 1, 0], "FTFFF", "x"),
            ("one degraded", vec![failing("a"), done("b")], [2, 1, 1, 1, 1], "FTTTF", "x"),
            ("one without annotations", vec![NodeBuilder::new("a"), done("b")], [2, 1, 1, 1, 0], "FTFFF", "x"),
        ];
        for (case, nodes, counts, conditions, configuration) in cases {
            let mut before = PoolStatus::default();
            before.configuration.name = "x".into();
            let status = report(&pool_at("y", before), None, &nodes, 0);
            let found = [
                status.machine_count,
                status.updated_machine_count,
                status.ready_machine_count,
                status.unavailable_machine_count,
                status.degraded_machine_count,
            ];
            assert_eq!(found, counts, "{case}");
            assert_eq!(letters(&status), conditions, "{case}");
            assert_eq!(status.configuration.name, configuration, "{case}");
            assert_eq!(status.observed_generation, 7, "{case}");
        }
    }

    #[test]
    fn conditions_have_the_messages_of_the_operator() {
        let message = |status: &PoolStatus, kind: &str| status.condition(kind).unwrap().message.clone();
        let done = report(&pool_at("y", PoolStatus::default()), None, &[node("a", "y", "y", "Done")], 0);
        assert_eq!(message(&done, "Updated"), "All nodes are updated with MachineConfig y");

        let old = [node("a", "x", "x", "Done")];
        let rolling = report(&pool_at("y", PoolStatus::default()), None, &old, 0);
        assert_eq!(message(&rolling, "Updating"), "All nodes are updating to MachineConfig y");

        let mut pool = pool_at("y", PoolStatus::default());
        pool.spec.paused = true;
        let paused = report(&pool, None, &old, 0);
        assert_eq!(letters(&paused), "FFFFF");
        assert_eq!(message(&paused, "Updating"), "Pool is paused; will not update to y");
        assert_eq!(
            letters(&report(&pool, None, &[node("a", "y", "y", "Done")], 0)),
            "TFFFF",
            "nothing waits for the pause to end"
        );

        let stuck = ["b", "a"].map(|name| node(name, "x", "y", "Degraded").cordoned().reason("no \"space\""));
        let stuck = report(&pool_at("y", PoolStatus::default()), None, &stuck, 0);
        assert_eq!(stuck.condition("NodeDegraded").unwrap().reason, "2 nodes are reporting degraded status on sync");
        let reports = r#"Node b is reporting: "no \"space\"", Node a is reporting: "no \"space\"""#;
        assert_eq!(message(&stuck, "NodeDegraded"), reports);
        assert_eq!(message(&stuck, "Degraded"), reports);

        let error = RenderError::Extension { config: "50-x".into(), extension: "games".into() };
        let broken = report(&pool_at("y", PoolStatus::default()), Some(&error), &[node("a", "y", "y", "Done")], 0);
        assert_eq!(letters(&broken), "TFTFT", "the nodes are fine, the next config is not");
        assert_eq!(
            message(&broken, "RenderDegraded"),
            "Failed to render configuration for pool worker: MachineConfig 50-x wants extension \"games\", which does not exist"
        );
        let never = report(&pool_at("", PoolStatus::default()), Some(&error), &[NodeBuilder::new("a")], 0);
        assert_eq!(letters(&never), "--TFT", "a pool that was never rendered");
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes_and_those_of_others_stay() {
        let time = |status: &PoolStatus, kind: &str| status.condition(kind).unwrap().last_transition_time.clone();
        let old = [node("a", "x", "x", "Done")];
        let mut before = PoolStatus::default();
        before.conditions.push(Condition { kind: "Building".into(), status: "False".into(), ..Condition::default() });
        let first = report(&pool_at("y", before), None, &old, 100);
        assert_eq!(first.conditions[0].kind, "Building");

        let again = report(&pool_at("y", first.clone()), None, &old, 200);
        assert_eq!(again, first, "nothing changed, nothing to write");

        let retargeted = report(&pool_at("z", first.clone()), None, &old, 200);
        assert_eq!(time(&retargeted, "Updating"), Some(Time(at(100))), "another message is no transition");
        let done = report(&pool_at("y", first), None, &[node("a", "y", "y", "Done")], 300);
        assert_eq!(time(&done, "Updated"), Some(Time(at(300))));
        assert_eq!(time(&done, "Degraded"), Some(Time(at(100))));
        let order = |status: &PoolStatus| status.conditions.iter().map(|known| known.kind.clone()).collect::<Vec<_>>();
        assert_eq!(order(&done), ["Building", "RenderDegraded", "Updated", "Updating", "NodeDegraded", "Degraded"]);
    }
}
