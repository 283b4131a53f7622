//! What happens to one virtual machine when its node is drained and reboots, and why.
//!
//! The strategy of the running VirtualMachineInstance decides, and not that of its VirtualMachine, which counts from the next start on.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    Instance, ObservedCluster, Platform, Reading, VirtualMachine,
    instance::{Migratable, Owner},
};

/// Ordered from the worst to the most harmless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DrainEffect {
    BlocksDrain,
    StaysDown,
    /// What would tell could not be read.
    Unknown,
    Restarts,
    MovesLive,
}

impl DrainEffect {
    pub const ALL: [DrainEffect; 5] = [
        DrainEffect::BlocksDrain,
        DrainEffect::StaysDown,
        DrainEffect::Unknown,
        DrainEffect::Restarts,
        DrainEffect::MovesLive,
    ];

    pub fn words(self) -> &'static str {
        match self {
            DrainEffect::BlocksDrain => "blocks the drain",
            DrainEffect::StaysDown => "goes down and stays down",
            DrainEffect::Unknown => "unknown",
            DrainEffect::Restarts => "restarts",
            DrainEffect::MovesLive => "moves live",
        }
    }
}

/// What happens to one virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestOutcome {
    pub namespace: String,
    pub name: String,
    #[serde(skip)]
    pub uid: String,
    pub node: String,
    pub effect: DrainEffect,
    /// In words.
    pub cause: String,
    /// KubeVirt's own reason why it cannot be migrated, as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// KubeVirt's own message to that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether it is a node of a hosted cluster, which another controller looks after.
    pub hosted_cluster: bool,
    /// The longest time that its shutdown may take, if it is shut down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shutdown_seconds: Option<u64>,
}

/// What the outcomes of all virtual machines depend on.
#[derive(Debug)]
pub(crate) struct DrainContext<'a> {
    platform: &'a Reading<Platform>,
    virtual_machines: Option<HashMap<(&'a str, &'a str), &'a VirtualMachine>>,
    /// Whether nodes are drained at all.
    drained: bool,
}

impl<'a> DrainContext<'a> {
    pub(crate) fn of(observed: &'a ObservedCluster, drained: bool) -> Self {
        let index = |virtual_machines: &'a Vec<VirtualMachine>| {
            virtual_machines
                .iter()
                .map(|machine| ((machine.namespace.as_str(), machine.name.as_str()), machine))
                .collect()
        };
        let virtual_machines = observed.virtual_machines.value().map(index);
        DrainContext { platform: &observed.platform, virtual_machines, drained }
    }

    pub(crate) fn outcome(&self, instance: &Instance) -> GuestOutcome {
        let (effect, cause) = self.effect(instance);
        let (reason, message) = match &instance.migratable {
            Migratable::No { reason, message } => (Some(reason.clone()), Some(message.clone())),
            _ => (None, None),
        };
        let is_told = |text: &String| !text.is_empty();
        let is_shut_down = matches!(effect, DrainEffect::Restarts | DrainEffect::StaysDown | DrainEffect::Unknown);
        GuestOutcome {
            namespace: instance.namespace.clone(),
            name: instance.name.clone(),
            uid: instance.uid.clone(),
            node: instance.node.clone(),
            effect,
            cause,
            reason: reason.filter(is_told),
            message: message.filter(is_told),
            hosted_cluster: self.strategy(instance) == Ok("External"),
            shutdown_seconds: is_shut_down.then_some(instance.grace_seconds),
        }
    }

    fn effect(&self, instance: &Instance) -> (DrainEffect, String) {
        if !self.drained {
            return self.shut_down(instance, "its node reboots without a drain");
        }
        let cannot = || cannot_move(&instance.migratable);
        match self.strategy(instance) {
            Ok("LiveMigrate" | "LiveMigrateIfPossible") if instance.migratable == Migratable::Yes => {
                let disks = if instance.copies_disks { ", with a copy of its local disks" } else { "" };
                (DrainEffect::MovesLive, format!("live migration{disks}"))
            }
            Ok("LiveMigrate") => {
                (DrainEffect::BlocksDrain, format!("must be moved (LiveMigrate) and cannot be: {}", cannot()))
            }
            Ok("LiveMigrateIfPossible") => self.shut_down(instance, &cannot()),
            Ok("None") => self.shut_down(instance, "its eviction strategy is None"),
            Ok("External") => {
                let cause =
                    "node of a hosted cluster (External): the drain waits until its own controller takes it away";
                (DrainEffect::BlocksDrain, cause.into())
            }
            Ok(other) => (DrainEffect::Unknown, format!("its eviction strategy {other} is not known here")),
            Err(why) => (
                DrainEffect::Unknown,
                format!("it has no eviction strategy of its own, and KubeVirt's is not known: {why}"),
            ),
        }
    }

    /// The strategy that counts, or why it is not known.
    fn strategy<'b>(&'b self, instance: &'b Instance) -> Result<&'b str, &'b str> {
        match (&instance.strategy, self.platform) {
            (Some(own), _) => Ok(own),
            (None, Reading::Read(platform)) => Ok(platform.strategy.as_deref().unwrap_or("None")),
            (None, Reading::NotServed) => Ok("None"),
            (None, Reading::Unreadable(why)) => Err(why),
        }
    }

    /// What follows after the guest was shut down, by whoever looks after it.
    fn shut_down(&self, instance: &Instance, why: &str) -> (DrainEffect, String) {
        let Some(Owner { kind, name }) = &instance.owner else {
            return (DrainEffect::StaysDown, format!("{why}; no VirtualMachine starts it again"));
        };
        match kind.as_str() {
            "VirtualMachine" => {}
            "VirtualMachineInstanceReplicaSet" => {
                return (DrainEffect::Restarts, format!("{why}; {kind} {name} starts another one"));
            }
            _ => return (DrainEffect::Unknown, format!("{why}; {kind} {name} decides what follows")),
        }
        let Some(virtual_machines) = &self.virtual_machines else {
            return (
                DrainEffect::Unknown,
                format!("{why}; whether it is started again is not known without VirtualMachines"),
            );
        };
        let Some(machine) = virtual_machines.get(&(instance.namespace.as_str(), name.as_str())) else {
            return (DrainEffect::StaysDown, format!("{why}; its VirtualMachine {name} is gone"));
        };
        let strategy = machine.run_strategy.as_str();
        // A pool creates virtual machines, and does not start them again.
        let pool = machine.pool.as_ref();
        let pool = pool.map(|pool| format!(", and its VirtualMachinePool {pool} does not start it either"));
        let pool = pool.unwrap_or_default();
        match strategy {
            "Always" => (DrainEffect::Restarts, format!("{why}; started again (Always)")),
            "RerunOnFailure" => {
                let stays_off = "an orderly shutdown is no failure, so it stays off (RerunOnFailure)";
                (DrainEffect::StaysDown, format!("{why}; {stays_off}{pool}"))
            }
            "Manual" | "Once" | "Halted" => {
                (DrainEffect::StaysDown, format!("{why}; nobody starts it again ({strategy}){pool}"))
            }
            "" => (DrainEffect::Unknown, format!("{why}; its VirtualMachine has no run strategy")),
            _ => (DrainEffect::Unknown, format!("{why}; its run strategy {strategy} is not known here")),
        }
    }
}

/// Why KubeVirt does not move a guest, in words. Reasons are known by their beginning, because versions differ in how they end.
fn cannot_move(migratable: &Migratable) -> String {
    let (reason, message) = match migratable {
        Migratable::Yes => return "it can be moved".into(),
        Migratable::Unsaid => return "KubeVirt has not said that it can be migrated".into(),
        Migratable::No { reason, message } => (reason, message),
    };
    let stem = reason.strip_suffix("LiveMigratable").map(|stem| stem.strip_suffix("Not").unwrap_or(stem));
    let words = match stem.unwrap_or_default() {
        "Interface" => "its interface to the pod network cannot be migrated",
        "CPUMode" => "its node has no CPU model that others could offer",
        "HostDevice" => "it uses a device of its node",
        "SEV" | "TDX" | "SecureExecution" => "its memory is encrypted",
        "NoTSCFrequency" => "nodes do not tell the frequency of their clock, which Windows needs",
        "HypervPassthrough" => "it passes the Hyper-V features of its node on",
        "Disks" => "a disk of it is not shared between nodes",
        "Hotplug" => "a hotplugged disk cannot be migrated",
        "VirtIOFS" => "it shares a file system with its node",
        "PersistentReservation" => "it reserves a disk for itself",
        "Decentralized" => "it migrates between clusters",
        _ if reason.is_empty() && message.is_empty() => "KubeVirt says so and does not say why",
        _ if message.is_empty() => reason,
        _ if reason.is_empty() => message,
        _ => return format!("{reason}: {message}"),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const YES: (&str, &str) = ("True", "");
    const DISKS: (&str, &str) = ("False", "DisksNotLiveMigratable");
    const UNSAID: (&str, &str) = ("", "");

    fn instance(strategy: Option<&str>, (status, reason): (&str, &str), owner: Option<&str>) -> Instance {
        let condition =
            json!({"type": "LiveMigratable", "status": status, "reason": reason, "message": "PVC a is not shared"});
        let conditions = if status.is_empty() { json!([]) } else { json!([condition]) };
        let owners: Vec<Value> =
            owner.iter().map(|kind| json!({"kind": kind, "name": "a", "controller": true})).collect();
        Instance::of(&json!({
            "metadata": {"namespace": "n", "name": "a", "uid": "u", "ownerReferences": owners},
            "spec": {"evictionStrategy": strategy},
            "status": {"phase": "Running", "nodeName": "node", "conditions": conditions},
        }))
        .unwrap()
    }

    fn observed(run_strategy: &str, strategy: Option<&str>) -> ObservedCluster {
        let machine = json!({"metadata": {"namespace": "n", "name": "a"}, "spec": {"runStrategy": run_strategy}});
        let platform = json!({"spec": {"configuration": {"evictionStrategy": strategy}}});
        ObservedCluster {
            virtual_machines: Reading::Read(vec![VirtualMachine::of(&machine).unwrap()]),
            platform: Reading::Read(Platform::of(&platform)),
            ..ObservedCluster::default()
        }
    }

    fn effect(instance: &Instance, observed: &ObservedCluster) -> DrainEffect {
        DrainContext::of(observed, true).outcome(instance).effect
    }

    #[test]
    fn strategy_and_migratability_decide_whether_a_guest_moves_blocks_or_is_shut_down() {
        use DrainEffect::{BlocksDrain, MovesLive, Restarts, Unknown};
        for (own, of_kubevirt, migratable, expected) in [
            (Some("LiveMigrate"), None, YES, MovesLive),
            (Some("LiveMigrate"), None, DISKS, BlocksDrain),
            (Some("LiveMigrate"), None, UNSAID, BlocksDrain),
            (Some("LiveMigrateIfPossible"), None, YES, MovesLive),
            (Some("LiveMigrateIfPossible"), None, DISKS, Restarts),
            (Some("None"), None, YES, Restarts),
            (Some("None"), Some("LiveMigrate"), YES, Restarts),
            (None, None, YES, Restarts),
            (None, Some("LiveMigrate"), YES, MovesLive),
            (None, Some("LiveMigrate"), DISKS, BlocksDrain),
            (None, Some("LiveMigrateIfPossible"), DISKS, Restarts),
            (Some("External"), None, YES, BlocksDrain),
            (Some("External"), None, DISKS, BlocksDrain),
            (None, Some("External"), YES, BlocksDrain),
            (Some("Teleport"), None, YES, Unknown),
        ] {
            let instance = instance(own, migratable, Some("VirtualMachine"));
            let found = effect(&instance, &observed("Always", of_kubevirt));
            assert_eq!(found, expected, "{own:?} {of_kubevirt:?} {migratable:?}");
        }
    }

    #[test]
    fn whoever_looks_after_a_guest_decides_whether_it_comes_back() {
        use DrainEffect::{Restarts, StaysDown, Unknown};
        for (owner, run_strategy, expected) in [
            (Some("VirtualMachine"), "Always", Restarts),
            (Some("VirtualMachine"), "RerunOnFailure", StaysDown),
            (Some("VirtualMachine"), "Manual", StaysDown),
            (Some("VirtualMachine"), "Once", StaysDown),
            (Some("VirtualMachine"), "Halted", StaysDown),
            (Some("VirtualMachine"), "WaitAsReceiver", Unknown),
            (Some("VirtualMachine"), "", Unknown),
            (Some("VirtualMachineInstanceReplicaSet"), "", Restarts),
            (Some("Surprise"), "", Unknown),
            (None, "", StaysDown),
        ] {
            let instance = instance(Some("None"), YES, owner);
            assert_eq!(effect(&instance, &observed(run_strategy, None)), expected, "{owner:?} {run_strategy}");
        }
        for (run_strategy, expected, words) in [
            ("Always", Restarts, "its eviction strategy is None; started again (Always)"),
            (
                "Manual",
                StaysDown,
                "its eviction strategy is None; nobody starts it again (Manual), and its VirtualMachinePool web \
                 does not start it either",
            ),
        ] {
            let owners = json!([{"kind": "VirtualMachinePool", "name": "web", "controller": true}]);
            let metadata = json!({"namespace": "n", "name": "a", "ownerReferences": owners});
            let machine = json!({"metadata": metadata, "spec": {"runStrategy": run_strategy}});
            let virtual_machines = Reading::Read(vec![VirtualMachine::of(&machine).unwrap()]);
            let observed = ObservedCluster { virtual_machines, ..observed("", None) };
            let instance = instance(Some("None"), YES, Some("VirtualMachine"));
            let outcome = DrainContext::of(&observed, true).outcome(&instance);
            assert_eq!((outcome.effect, outcome.cause.as_str()), (expected, words), "in a pool");
        }
        let gone = ObservedCluster { virtual_machines: Reading::Read(Vec::new()), ..observed("Always", None) };
        assert_eq!(effect(&instance(Some("None"), YES, Some("VirtualMachine")), &gone), StaysDown);
    }

    #[test]
    fn older_machines_say_running_and_it_means_always_or_halted() {
        for (running, expected) in [(true, DrainEffect::Restarts), (false, DrainEffect::StaysDown)] {
            let machine = json!({"metadata": {"namespace": "n", "name": "a"}, "spec": {"running": running}});
            let virtual_machines = Reading::Read(vec![VirtualMachine::of(&machine).unwrap()]);
            let observed = ObservedCluster { virtual_machines, ..observed("", None) };
            assert_eq!(effect(&instance(Some("None"), YES, Some("VirtualMachine")), &observed), expected);
        }
    }

    #[test]
    fn what_could_not_be_read_is_not_guessed() {
        let forbidden = || "forbidden (403)".to_owned();
        let unread = ObservedCluster { virtual_machines: Reading::Unreadable(forbidden()), ..observed("Always", None) };
        let shut_down = instance(Some("None"), YES, Some("VirtualMachine"));
        assert_eq!(effect(&shut_down, &unread), DrainEffect::Unknown);
        let moved = instance(Some("LiveMigrate"), YES, Some("VirtualMachine"));
        assert_eq!(effect(&moved, &unread), DrainEffect::MovesLive, "nothing depends on what is not known");
        let unread = ObservedCluster { platform: Reading::Unreadable(forbidden()), ..observed("Always", None) };
        let unset = instance(None, YES, Some("VirtualMachine"));
        let outcome = DrainContext::of(&unread, true).outcome(&unset);
        assert_eq!(outcome.effect, DrainEffect::Unknown);
        assert!(outcome.cause.ends_with("KubeVirt's is not known: forbidden (403)"), "{}", outcome.cause);
        assert_eq!(effect(&moved, &unread), DrainEffect::MovesLive);
    }

    #[test]
    fn reasons_are_told_in_words_and_unknown_ones_as_they_are() {
        let no = |reason: &str, message: &str| {
            cannot_move(&Migratable::No { reason: reason.into(), message: message.into() })
        };
        for (reason, expected) in [
            ("InterfaceNotLiveMigratable", "its interface to the pod network cannot be migrated"),
            ("CPUModeLiveMigratable", "its node has no CPU model that others could offer"),
            ("CPUModeNotLiveMigratable", "its node has no CPU model that others could offer"),
            ("HostDeviceNotLiveMigratable", "it uses a device of its node"),
            ("SEVNotLiveMigratable", "its memory is encrypted"),
            ("DisksNotLiveMigratable", "a disk of it is not shared between nodes"),
            ("HotplugNotLiveMigratable", "a hotplugged disk cannot be migrated"),
            ("MoodNotLiveMigratable", "MoodNotLiveMigratable: it says"),
            ("NotMigratable", "NotMigratable: it says"),
        ] {
            assert_eq!(no(reason, "it says"), expected);
        }
        assert_eq!(no("MoodNotLiveMigratable", ""), "MoodNotLiveMigratable");
        assert_eq!(no("", "it says"), "it says");
        assert_eq!(no("", ""), "KubeVirt says so and does not say why");
    }

    #[test]
    fn a_node_of_a_hosted_cluster_is_named_as_such() {
        let outcome = DrainContext::of(&observed("Always", None), true).outcome(&instance(Some("External"), YES, None));
        assert!(outcome.hosted_cluster && outcome.cause.starts_with("node of a hosted cluster"), "{outcome:?}");
    }

    #[test]
    fn the_only_node_is_not_drained_so_nothing_moves_and_nothing_blocks() {
        for strategy in ["LiveMigrate", "LiveMigrateIfPossible", "None", "External"] {
            let observed = observed("Always", None);
            let context = DrainContext::of(&observed, false);
            let outcome = context.outcome(&instance(Some(strategy), YES, Some("VirtualMachine")));
            assert_eq!(outcome.effect, DrainEffect::Restarts, "{strategy}");
        }
    }

    #[test]
    fn a_shutdown_may_take_as_long_as_the_guest_is_given() {
        let outcome = DrainContext::of(&observed("Always", None), true).outcome(&instance(Some("None"), YES, None));
        assert_eq!(outcome.shutdown_seconds, Some(60), "30 s of the guest, 30 s of KubeVirt");
    }
}
