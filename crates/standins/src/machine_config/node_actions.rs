//! The machine config daemon of one node. It depends on its node only: a pool that is paused or gets another target
//! does not stop a node that has begun its update.

use std::time::Duration;

use jiff::Timestamp;

use super::{Action, DaemonState, Machine, MachineConfigSettings};

/// The next actions on a node that has a desired config.
pub(super) fn node_actions(machine: Machine<'_>, now: Timestamp, settings: &MachineConfigSettings) -> Vec<Action> {
    let (Some(current), Some(desired)) = (machine.current(), machine.desired()) else { return Vec::new() };
    let node = machine.name();
    // Without a kubelet only the stand-in can make the node ready.
    if machine.lacks_kubelet() && machine.state() != DaemonState::Rebooting {
        return vec![Action::SetReady { node }];
    }
    match machine.state() {
        DaemonState::Done if current == desired => Vec::new(),
        DaemonState::Rebooting => reboot(machine, desired, now, settings),
        // The desired config was set back to the current one.
        _ if current == desired => vec![come_back(machine, desired)],
        DaemonState::Done => vec![Action::Cordon { node, config: desired.to_owned() }],
        DaemonState::Working | DaemonState::Degraded | DaemonState::Unreconcilable => {
            prepare(machine, desired, now, settings)
        }
    }
}

/// From the cordon over the drain to the reboot.
fn prepare(machine: Machine<'_>, desired: &str, now: Timestamp, settings: &MachineConfigSettings) -> Vec<Action> {
    let node = machine.name();
    let degrade = |reason: String| {
        let is_known = machine.state() == DaemonState::Degraded && machine.reason() == reason;
        (!is_known).then(|| Action::MarkDegraded { node: node.clone(), reason })
    };
    if !machine.is_cordoned() {
        return vec![Action::Cordon { node, config: desired.to_owned() }];
    }
    if !machine.is_drained() {
        let mut actions = vec![Action::Drain { node: node.clone(), config: desired.to_owned() }];
        if machine.state() == DaemonState::Working {
            let deadline = later(machine.since().unwrap_or(now), settings.drain_timeout);
            if now < deadline {
                actions.push(Action::WakeAt(deadline));
            } else {
                let limit = settings.drain_timeout.as_secs();
                actions.extend(degrade(format!("failed to drain node: {node} is not empty after {limit} s")));
            }
        }
        return actions;
    }
    if settings.fail.contains(&node) {
        let reason = format!("failed to apply {desired}: the stand-in was told to fail on this node");
        return degrade(reason).into_iter().collect();
    }
    // Not ready before the state is Rebooting: watchers see the reboot even if it takes no time.
    if machine.ready() == Some(true) && !machine.is_managed_by_kwok() {
        return vec![Action::SetNotReady { node }];
    }
    vec![Action::StartReboot { node }]
}

/// Waits for the end of the reboot, then makes the node ready, then ends the update.
fn reboot(machine: Machine<'_>, desired: &str, now: Timestamp, settings: &MachineConfigSettings) -> Vec<Action> {
    let end = machine.since().map_or(now, |since| later(since, settings.reboot));
    if now < end {
        return vec![Action::WakeAt(end)];
    }
    // KWOK makes its nodes ready by itself.
    let waits_for_kwok = machine.is_managed_by_kwok() && machine.ready() != Some(true);
    if waits_for_kwok { Vec::new() } else { vec![come_back(machine, desired)] }
}

/// First ready, then uncordoned.
fn come_back(machine: Machine<'_>, config: &str) -> Action {
    let node = machine.name();
    if machine.ready() == Some(true) || machine.is_managed_by_kwok() {
        Action::Uncordon { node, config: config.to_owned() }
    } else {
        Action::SetReady { node }
    }
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::test_objects::{NodeBuilder, at};

    fn settings() -> MachineConfigSettings {
        MachineConfigSettings {
            reboot: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(60),
            ..MachineConfigSettings::default()
        }
    }

    fn next_at(second: i64, node: NodeBuilder, settings: &MachineConfigSettings) -> Vec<Action> {
        node_actions(Machine::of(&node.build()), at(second), settings)
    }

    #[test]
    fn a_node_goes_from_done_to_done_one_action_at_a_time() {
        let node = || NodeBuilder::new("a").annotated("x", "y", "Done");
        let working = || node().state("Working").since(100).cordoned();
        let rebooting = || working().state("Rebooting").drained("y");
        let name = || "a".to_owned();
        let y = || "y".to_owned();
        let cases = [
            ("nothing to do", node().annotated("x", "x", "Done"), vec![]),
            ("without annotations", NodeBuilder::new("a"), vec![]),
            ("with another desired config", node(), vec![Action::Cordon { node: name(), config: y() }]),
            ("uncordoned by somebody", working().uncordoned(), vec![Action::Cordon { node: name(), config: y() }]),
            ("cordoned", working(), vec![Action::Drain { node: name(), config: y() }, Action::WakeAt(at(160))]),
            (
                "drained for another config",
                working().drained("z"),
                vec![Action::Drain { node: name(), config: y() }, Action::WakeAt(at(160))],
            ),
            ("drained", working().drained("y"), vec![Action::SetNotReady { node: name() }]),
            ("drained and down", working().drained("y").ready(false), vec![Action::StartReboot { node: name() }]),
            ("drained, and KWOK's", working().drained("y").kwok(), vec![Action::StartReboot { node: name() }]),
            ("down", rebooting().ready(false), vec![Action::WakeAt(at(110))]),
            ("KWOK's node", rebooting().kwok(), vec![Action::WakeAt(at(110))]),
            ("over", rebooting().since(90).ready(false), vec![Action::SetReady { node: name() }]),
            (
                "over, and somebody brought it up",
                rebooting().since(90),
                vec![Action::Uncordon { node: name(), config: y() }],
            ),
            ("over, and KWOK has to act", rebooting().since(90).kwok().ready(false), vec![]),
            ("KWOK's node, over", rebooting().since(90).kwok(), vec![Action::Uncordon { node: name(), config: y() }]),
            (
                "rebooting since nobody knows",
                rebooting().since_nothing(),
                vec![Action::Uncordon { node: name(), config: y() }],
            ),
            (
                "taken back",
                working().annotated("x", "x", "Degraded"),
                vec![Action::Uncordon { node: name(), config: "x".into() }],
            ),
            (
                "taken back while it was down",
                working().annotated("x", "x", "Working").ready(false),
                vec![Action::SetReady { node: name() }],
            ),
            ("bare", node().annotated("x", "x", "Done").without_ready(), vec![Action::SetReady { node: name() }]),
            ("bare, but KWOK's", node().annotated("x", "x", "Done").without_ready().kwok(), vec![]),
            ("down for reasons of its own", node().annotated("x", "x", "Done").ready(false), vec![]),
        ];
        for (case, node, expected) in cases {
            assert_eq!(next_at(100, node, &settings()), expected, "{case}");
        }
    }

    #[test]
    fn a_drain_that_takes_too_long_degrades_the_node_and_continues() {
        let drain = Action::Drain { node: "a".into(), config: "y".into() };
        let reason = "failed to drain node: a is not empty after 60 s".to_owned();
        let node = || NodeBuilder::new("a").annotated("x", "y", "Working").since(100).cordoned();
        assert_eq!(next_at(159, node(), &settings()), [drain.clone(), Action::WakeAt(at(160))]);
        assert_eq!(
            next_at(160, node(), &settings()),
            [drain.clone(), Action::MarkDegraded { node: "a".into(), reason: reason.clone() }]
        );
        assert_eq!(next_at(500, node().state("Degraded").reason(&reason), &settings()), [drain]);
        let empty = node().state("Degraded").reason(&reason).drained("y");
        assert_eq!(next_at(500, empty, &settings()), [Action::SetNotReady { node: "a".into() }]);
    }

    #[test]
    fn a_node_that_is_set_to_fail_is_degraded_after_its_drain_until_that_is_cleared() {
        let mut failing = settings();
        failing.fail.insert("a".into());
        let reason = "failed to apply y: the stand-in was told to fail on this node".to_owned();
        let node = || NodeBuilder::new("a").annotated("x", "y", "Working").since(100).cordoned().drained("y");
        assert_eq!(next_at(100, node(), &failing), [Action::MarkDegraded { node: "a".into(), reason: reason.clone() }]);
        assert_eq!(next_at(999, node().state("Degraded").reason(&reason), &failing), []);
        let cleared = next_at(999, node().state("Degraded").reason(&reason), &settings());
        assert_eq!(cleared, [Action::SetNotReady { node: "a".into() }]);
        let healthy = NodeBuilder::new("b").annotated("x", "y", "Working").cordoned().drained("y");
        assert_eq!(next_at(100, healthy, &failing), [Action::SetNotReady { node: "b".into() }]);
    }
}
