//! The machine config daemon of one node. It depends on its node only: a pool that is paused or gets another target
//! does not stop a node that has begun its update.

use std::time::Duration;

use jiff::Timestamp;

use super::{Actions, DaemonState, Drain, Machine, MachineConfigSettings, Request};

/// The next actions on a node that has a desired config.
pub(super) fn node_actions(machine: Machine<'_>, now: Timestamp, settings: &MachineConfigSettings) -> Actions {
    let (Some(current), Some(desired)) = (machine.current(), machine.desired()) else { return Actions::default() };
    let node = machine.name();
    // Without a kubelet only the stand-in can make the node ready.
    if machine.lacks_kubelet() && machine.state() != DaemonState::Rebooting {
        return Request::SetReady { node }.into();
    }
    match machine.state() {
        DaemonState::Done if current == desired => Actions::default(),
        DaemonState::Rebooting => reboot(machine, desired, now, settings),
        // The desired config was set back to the current one.
        _ if current == desired => come_back(machine, desired).into(),
        DaemonState::Done => Request::Cordon { node, config: desired.to_owned() }.into(),
        DaemonState::Working | DaemonState::Degraded | DaemonState::Unreconcilable => {
            prepare(machine, desired, now, settings)
        }
    }
}

/// From the cordon over the drain to the reboot.
fn prepare(machine: Machine<'_>, desired: &str, now: Timestamp, settings: &MachineConfigSettings) -> Actions {
    let node = machine.name();
    let degrade = |reason: String| {
        let is_known = machine.state() == DaemonState::Degraded && machine.reason() == reason;
        (!is_known).then(|| Request::MarkDegraded { node: node.clone(), reason })
    };
    if !machine.is_cordoned() {
        return Request::Cordon { node, config: desired.to_owned() }.into();
    }
    if !machine.is_drained() {
        let drain = Drain { node: node.clone(), config: desired.to_owned() };
        let mut actions = Actions { drains: [drain].into(), ..Actions::default() };
        if machine.state() == DaemonState::Working {
            let deadline = later(machine.since().unwrap_or(now), settings.drain.timeout);
            if now < deadline {
                actions.wake_at = Some(deadline);
            } else {
                actions.requests.extend(degrade(drain_failed(&node)));
            }
        }
        return actions;
    }
    if settings.fail.contains(&node) {
        let reason = format!("failed to apply {desired}: the stand-in was told to fail on this node");
        return degrade(reason).map(Actions::from).unwrap_or_default();
    }
    let applied = machine.since().map_or(now, |since| later(since, settings.apply));
    if now < applied {
        return Actions { wake_at: Some(applied), ..Actions::default() };
    }
    // Not ready before the state is Rebooting: watchers see the reboot even if it takes no time.
    if machine.ready() == Some(true) && !machine.is_managed_by_kwok() {
        return Request::SetNotReady { node }.into();
    }
    Request::StartReboot { node }.into()
}

/// Waits for the end of the reboot, then makes the node ready, then ends the update.
fn reboot(machine: Machine<'_>, desired: &str, now: Timestamp, settings: &MachineConfigSettings) -> Actions {
    let end = machine.since().map_or(now, |since| later(since, settings.reboot));
    if now < end {
        return Actions { wake_at: Some(end), ..Actions::default() };
    }
    // KWOK makes its nodes ready by itself.
    let waits_for_kwok = machine.is_managed_by_kwok() && machine.ready() != Some(true);
    if waits_for_kwok { Actions::default() } else { come_back(machine, desired).into() }
}

/// First ready, then uncordoned.
fn come_back(machine: Machine<'_>, config: &str) -> Request {
    let node = machine.name();
    if machine.ready() == Some(true) || machine.is_managed_by_kwok() {
        Request::Uncordon { node, config: config.to_owned() }
    } else {
        Request::SetReady { node }
    }
}

/// What the real daemon says, however long its hour is here.
fn drain_failed(node: &str) -> String {
    format!("failed to drain node: {node} after 1 hour. Please see machine-config-controller logs for more information")
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine_config::{
        DrainSettings,
        test_objects::{NodeBuilder, at},
    };

    fn settings() -> MachineConfigSettings {
        MachineConfigSettings {
            reboot: Duration::from_secs(10),
            drain: DrainSettings { timeout: Duration::from_secs(60), ..DrainSettings::default() },
            ..MachineConfigSettings::default()
        }
    }

    fn next_at(second: i64, node: NodeBuilder, settings: &MachineConfigSettings) -> Actions {
        node_actions(Machine::of(&node.build()), at(second), settings)
    }

    fn draining() -> Actions {
        let drain = Drain { node: "a".into(), config: "y".into() };
        Actions { drains: [drain].into(), ..Actions::default() }
    }

    fn wake_at(second: i64, actions: Actions) -> Actions {
        Actions { wake_at: Some(at(second)), ..actions }
    }

    #[test]
    fn a_node_goes_from_done_to_done_one_action_at_a_time() {
        let node = || NodeBuilder::new("a").annotated("x", "y", "Done");
        let working = || node().state("Working").since(100).cordoned();
        let rebooting = || working().state("Rebooting").drained("y");
        let name = || "a".to_owned();
        let y = || "y".to_owned();
        let cases = [
            ("nothing to do", node().annotated("x", "x", "Done"), Actions::default()),
            ("without annotations", NodeBuilder::new("a"), Actions::default()),
            ("with another desired config", node(), Request::Cordon { node: name(), config: y() }.into()),
            ("uncordoned by somebody", working().uncordoned(), Request::Cordon { node: name(), config: y() }.into()),
            ("cordoned", working(), wake_at(160, draining())),
            ("drained for another config", working().drained("z"), wake_at(160, draining())),
            ("drained", working().drained("y"), Request::SetNotReady { node: name() }.into()),
            ("drained and down", working().drained("y").ready(false), Request::StartReboot { node: name() }.into()),
            ("drained, and KWOK's", working().drained("y").kwok(), Request::StartReboot { node: name() }.into()),
            ("down", rebooting().ready(false), wake_at(110, Actions::default())),
            ("KWOK's node", rebooting().kwok(), wake_at(110, Actions::default())),
            ("over", rebooting().since(90).ready(false), Request::SetReady { node: name() }.into()),
            (
                "over, and somebody brought it up",
                rebooting().since(90),
                Request::Uncordon { node: name(), config: y() }.into(),
            ),
            ("over, and KWOK has to act", rebooting().since(90).kwok().ready(false), Actions::default()),
            ("KWOK's node, over", rebooting().since(90).kwok(), Request::Uncordon { node: name(), config: y() }.into()),
            (
                "rebooting since nobody knows",
                rebooting().since_nothing(),
                Request::Uncordon { node: name(), config: y() }.into(),
            ),
            (
                "taken back",
                working().annotated("x", "x", "Degraded"),
                Request::Uncordon { node: name(), config: "x".into() }.into(),
            ),
            (
                "taken back while it was down",
                working().annotated("x", "x", "Working").ready(false),
                Request::SetReady { node: name() }.into(),
            ),
            ("bare", node().annotated("x", "x", "Done").without_ready(), Request::SetReady { node: name() }.into()),
            ("bare, but KWOK's", node().annotated("x", "x", "Done").without_ready().kwok(), Actions::default()),
            ("down for reasons of its own", node().annotated("x", "x", "Done").ready(false), Actions::default()),
        ];
        for (case, node, expected) in cases {
            assert_eq!(next_at(100, node, &settings()), expected, "{case}");
        }
    }

    #[test]
    fn a_drain_that_takes_too_long_degrades_the_node_and_continues() {
        let reason =
            "failed to drain node: a after 1 hour. Please see machine-config-controller logs for more information"
                .to_owned();
        let node = || NodeBuilder::new("a").annotated("x", "y", "Working").since(100).cordoned();
        assert_eq!(next_at(159, node(), &settings()), wake_at(160, draining()));
        let degrade = Request::MarkDegraded { node: "a".into(), reason: reason.clone() };
        assert_eq!(next_at(160, node(), &settings()), Actions { requests: vec![degrade], ..draining() });
        assert_eq!(next_at(500, node().state("Degraded").reason(&reason), &settings()), draining());
        let empty = node().state("Degraded").reason(&reason).drained("y");
        assert_eq!(next_at(500, empty, &settings()), Request::SetNotReady { node: "a".into() }.into());
    }

    #[test]
    fn a_drained_node_needs_some_time_before_it_reboots() {
        let settings = MachineConfigSettings { apply: Duration::from_secs(20), ..settings() };
        let node = || NodeBuilder::new("a").annotated("x", "y", "Working").since(100).cordoned().drained("y");
        assert_eq!(next_at(119, node(), &settings), wake_at(120, Actions::default()));
        assert_eq!(next_at(120, node(), &settings), Request::SetNotReady { node: "a".into() }.into());
    }

    #[test]
    fn a_node_that_is_set_to_fail_is_degraded_after_its_drain_until_that_is_cleared() {
        let mut failing = settings();
        failing.fail.insert("a".into());
        let reason = "failed to apply y: the stand-in was told to fail on this node".to_owned();
        let node = || NodeBuilder::new("a").annotated("x", "y", "Working").since(100).cordoned().drained("y");
        let degrade = Request::MarkDegraded { node: "a".into(), reason: reason.clone() };
        assert_eq!(next_at(100, node(), &failing), degrade.into());
        assert_eq!(next_at(999, node().state("Degraded").reason(&reason), &failing), Actions::default());
        let cleared = next_at(999, node().state("Degraded").reason(&reason), &settings());
        assert_eq!(cleared, Request::SetNotReady { node: "a".into() }.into());
        let healthy = NodeBuilder::new("b").annotated("x", "y", "Working").cordoned().drained("y");
        assert_eq!(next_at(100, healthy, &failing), Request::SetNotReady { node: "b".into() }.into());
    }
}
