//! What was read of a cluster, and what could not be read.

use std::collections::BTreeMap;

use api::quantity;
use jiff::Timestamp;
use serde_json::Value;

use super::{Budget, Instance, MachinePool, Node, Pod, VirtualMachine, node::timestamp};

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reading<T> {
    Read(T),
    /// The kind is not installed, so there are no such objects.
    NotServed,
    /// Why it could not be read.
    Unreadable(String),
}

impl<T> Reading<T> {
    pub fn value(&self) -> Option<&T> {
        match self {
            Reading::Read(value) => Some(value),
            Reading::NotServed | Reading::Unreadable(_) => None,
        }
    }

    pub fn is_unreadable(&self) -> bool {
        matches!(self, Reading::Unreadable(_))
    }
}

impl<T> Reading<Vec<T>> {
    /// What is there. Empty where nothing is known.
    pub fn items(&self) -> &[T] {
        self.value().map_or(&[], Vec::as_slice)
    }
}

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Reading::Unreadable("it was not asked for".into())
    }
}

/// What was read of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedCluster {
    /// The only namespace that was looked at. None if all were.
    pub namespace: Option<String>,
    /// `status.controlPlaneTopology` of the Infrastructure.
    pub topology: Reading<String>,
    pub nodes: Reading<Vec<Node>>,
    pub pools: Reading<Vec<MachinePool>>,
    pub instances: Reading<Vec<Instance>>,
    pub virtual_machines: Reading<Vec<VirtualMachine>>,
    /// The settings of KubeVirt.
    pub platform: Reading<Platform>,
    pub migrations: Reading<Vec<ObservedMigration>>,
    pub budgets: Reading<Vec<Budget>>,
    pub pods: Reading<Vec<Pod>>,
    /// From Events, which a cluster keeps for some hours.
    pub reboots: Reading<Vec<Reboot>>,
    pub operations: Reading<Vec<Operation>>,
}

/// What a KubeVirt object sets, with KubeVirt's defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    pub(super) strategy: Option<String>,
    pub(super) per_node: u64,
    pub(super) per_cluster: u64,
    /// After this much time per GiB, a migration is given up.
    pub(super) seconds_per_gib: u64,
    /// In bytes per second.
    pub(super) bandwidth: Option<u64>,
}

impl Platform {
    pub fn of(object: &Value) -> Self {
        let setting = |name: &str| object.pointer(&format!("/spec/configuration/{name}"));
        let number = |name: &str| setting(&format!("migrations/{name}")).and_then(Value::as_u64).filter(|n| *n > 0);
        let bandwidth = setting("migrations/bandwidthPerMigration").and_then(Value::as_str);
        Platform {
            strategy: setting("evictionStrategy").and_then(Value::as_str).map(str::to_owned),
            per_node: number("parallelOutboundMigrationsPerNode").unwrap_or(2),
            per_cluster: number("parallelMigrationsPerCluster").unwrap_or(5),
            seconds_per_gib: number("completionTimeoutPerGiB").unwrap_or(150),
            bandwidth: bandwidth.and_then(quantity::units).filter(|bandwidth| *bandwidth > 0),
        }
    }
}

/// A VirtualMachineInstanceMigration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedMigration {
    pub(super) is_running: bool,
    /// From leaving the queue to success.
    pub(super) seconds: Option<u64>,
}

impl ObservedMigration {
    pub fn of(object: &Value) -> Self {
        let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
        let transitions = object.pointer("/status/phaseTransitionTimestamps").and_then(Value::as_array);
        let time = |transition: &Value| timestamp(transition.get("phaseTransitionTimestamp"));
        let (mut begun, mut ended): (Option<Timestamp>, Option<Timestamp>) = (None, None);
        for transition in transitions.into_iter().flatten() {
            let Some(time) = time(transition) else { continue };
            match transition["phase"].as_str() {
                Some("" | "Pending") | None => {}
                Some("Succeeded") => ended = Some(time),
                Some(_) => begun = Some(begun.map_or(time, |begun| begun.min(time))),
            }
        }
        let seconds = begun.zip(ended).map(|(begun, ended)| ended.duration_since(begun).as_secs());
        ObservedMigration {
            is_running: !["Succeeded", "Failed", ""].contains(&phase),
            seconds: seconds.and_then(|seconds| u64::try_from(seconds).ok()),
        }
    }
}

/// A reboot that was seen: how long a node was away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reboot {
    pub node: String,
    pub seconds: u64,
}

/// The reboots that Events about nodes tell of: from the machine config daemon's `Reboot` to the kubelet's next `NodeReady`.
pub fn reboots(events: &[Value]) -> Vec<Reboot> {
    let mut by_node: BTreeMap<&str, Vec<(Timestamp, bool)>> = BTreeMap::new();
    for event in events {
        let is_start = match event["reason"].as_str() {
            Some("Reboot") => true,
            Some("NodeReady") => false,
            _ => continue,
        };
        let time = ["lastTimestamp", "eventTime", "firstTimestamp"];
        let time = time.into_iter().find_map(|field| timestamp(event.get(field)));
        let node = event.pointer("/involvedObject/name").and_then(Value::as_str);
        if let Some((node, time)) = node.zip(time) {
            by_node.entry(node).or_default().push((time, is_start));
        }
    }
    let mut reboots = Vec::new();
    for (node, mut times) in by_node {
        times.sort();
        for pair in times.windows(2) {
            if let [(begun, true), (ready, false)] = *pair {
                let seconds = u64::try_from(ready.duration_since(begun).as_secs()).unwrap_or(0);
                reboots.push(Reboot { node: node.to_owned(), seconds });
            }
        }
    }
    reboots
}

/// An InFlightOperation: something that somebody else is doing to the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub(super) what: String,
    pub(super) subject: String,
}

impl Operation {
    /// None if it has ended.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let name = [text("/spec/subject/namespace"), text("/spec/subject/name")];
        let name: Vec<&str> = name.into_iter().filter(|part| !part.is_empty()).collect();
        (text("/status/phase") == "Active").then(|| Operation {
            what: text("/spec/operation").to_owned(),
            subject: format!("{} {}", text("/spec/subject/kind"), name.join("/")),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_migration_takes_from_leaving_the_queue_to_success() {
        let migration = |phases: &[(&str, &str)], phase: &str| {
            let at = |(phase, time): &(&str, &str)| json!({"phase": phase, "phaseTransitionTimestamp": format!("2026-01-01T10:{time}Z")});
            let transitions: Vec<_> = phases.iter().map(at).collect();
            ObservedMigration::of(&json!({"status": {"phase": phase, "phaseTransitionTimestamps": transitions}}))
        };
        let all = [("Pending", "00:00"), ("Scheduling", "05:00"), ("Running", "05:20"), ("Succeeded", "06:10")];
        for (case, phases, phase, seconds, is_running) in [
            ("done", &all[..], "Succeeded", Some(70), false),
            ("running", &all[..3], "Running", None, true),
            ("queued", &all[..1], "Pending", None, true),
            ("failed", &[("Scheduling", "05:00"), ("Failed", "06:00")], "Failed", None, false),
            ("unseen", &[], "", None, false),
        ] {
            assert_eq!(migration(phases, phase), ObservedMigration { is_running, seconds }, "{case}");
        }
    }

    #[test]
    fn a_reboot_ends_when_the_node_is_ready_again() {
        let event = |node: &str, reason: &str, time: &str| json!({"reason": reason, "involvedObject": {"name": node}, "lastTimestamp": format!("2026-01-01T{time}Z")});
        let events = [
            event("a", "NodeReady", "10:04:00"),
            event("a", "Reboot", "10:00:00"),
            event("b", "Reboot", "10:00:00"),
            event("c", "NodeReady", "10:00:00"),
            event("a", "Drain", "10:01:00"),
            event("d", "Reboot", "nonsense"),
        ];
        assert_eq!(reboots(&events), [Reboot { node: "a".into(), seconds: 240 }]);
    }

    #[test]
    fn settings_have_the_defaults_of_kubevirt() {
        let defaults = Platform { strategy: None, per_node: 2, per_cluster: 5, seconds_per_gib: 150, bandwidth: None };
        assert_eq!(Platform::of(&json!({})), defaults);
        let migrations = json!({
            "parallelOutboundMigrationsPerNode": 1, "parallelMigrationsPerCluster": 10, "completionTimeoutPerGiB": 20,
            "bandwidthPerMigration": "64Mi",
        });
        let object = json!({"spec": {"configuration": {"evictionStrategy": "LiveMigrate", "migrations": migrations}}});
        let strategy = Some("LiveMigrate".to_owned());
        let bandwidth = Some(64 << 20);
        let expected = Platform { strategy, per_node: 1, per_cluster: 10, seconds_per_gib: 20, bandwidth };
        assert_eq!(Platform::of(&object), expected);
    }
}
