//! The rights of each part. Every one of them is needed.

use serde_json::{Value, json};

use standins::descheduler::names;

/// Verbs on resources of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Right {
    group: &'static str,
    resource: &'static str,
    /// The name of the only object. None: all objects.
    name: Option<&'static str>,
    verbs: &'static [&'static str],
}

impl Right {
    pub(super) fn rules(rights: &[Right]) -> Vec<Value> {
        let rule = |right: &Right| {
            let mut rule = json!({"apiGroups": [right.group], "resources": [right.resource], "verbs": right.verbs});
            if let Some(name) = right.name {
                rule["resourceNames"] = json!([name]);
            }
            rule
        };
        rights.iter().map(rule).collect()
    }
}

const fn right(group: &'static str, resource: &'static str, verbs: &'static [&'static str]) -> Right {
    Right { group, resource, name: None, verbs }
}

const fn named(right: Right, name: &'static str) -> Right {
    Right { name: Some(name), ..right }
}

const SIMULATION: &str = api::names::SIMULATION_GROUP;
const MACHINES: &str = "machineconfiguration.openshift.io";
const OPENSHIFT: &str = "operator.openshift.io";

pub(super) const VM_CONTROLLER: [Right; 4] = [
    right("", "pods", &["create", "delete", "get", "list", "patch", "watch"]),
    right("", "nodes", &["list", "watch"]),
    right(SIMULATION, "virtualmachines", &["list", "patch", "watch"]),
    right(SIMULATION, "virtualmachines/status", &["patch"]),
];

/// The webhook reads the KubeDescheduler for the settings of a plugin that it plays.
pub(super) const EVICTION_WEBHOOK: [Right; 6] = [
    right("", "pods", &["get"]),
    right("", "namespaces", &["get"]),
    right(SIMULATION, "virtualmachines", &["get", "patch"]),
    right(SIMULATION, "virtualmachines/status", &["patch"]),
    named(right(OPENSHIFT, "kubedeschedulers", &["get"]), names::OBJECT),
    named(
        right("admissionregistration.k8s.io", "validatingwebhookconfigurations", &["create", "list", "patch", "watch"]),
        crate::webhook::NAME,
    ),
];

pub(super) const METRICS_EXPORTER: [Right; 3] = [
    right("", "nodes", &["list", "watch"]),
    right("", "pods", &["list", "watch"]),
    right(SIMULATION, "virtualmachines", &["list", "watch"]),
];

pub(super) const SOFT_TAINTER: [Right; 1] = [right("", "nodes", &["get", "list", "patch", "watch"])];

/// These are needed only with a KubeDescheduler.
pub(super) const SOFT_TAINTER_AT_HOME: [Right; 1] = [right(OPENSHIFT, "kubedeschedulers", &["list", "watch"])];

/// The real descheduler reads a priority class if the threshold of its policy names one.
pub(super) const DESCHEDULER: [Right; 6] = [
    right("", "nodes", &["list", "watch"]),
    right("", "pods", &["list", "watch"]),
    right("", "pods/eviction", &["create"]),
    right("", "persistentvolumeclaims", &["list", "watch"]),
    right("scheduling.k8s.io", "priorityclasses", &["get"]),
    right("events.k8s.io", "events", &["create"]),
];

/// The stand-in has these in addition to the rights of its descheduler.
pub(super) const DESCHEDULER_OPERATOR: [Right; 1] = [right("", "namespaces", &["list", "watch"])];

/// The stand-in watches the KubeDescheduler and writes its status, a ConfigMap with the policy, a Deployment, and the Secret
/// that its descheduler reads.
pub(super) const DESCHEDULER_OPERATOR_AT_HOME: [Right; 6] = [
    right(OPENSHIFT, "kubedeschedulers", &["list", "watch"]),
    right(OPENSHIFT, "kubedeschedulers/status", &["patch"]),
    named(right("", "configmaps", &["create", "patch"]), names::OBJECT),
    named(right("apps", "deployments", &["create", "patch"]), names::OPERAND),
    named(right("apps", "deployments/status", &["patch"]), names::OPERAND),
    right("", "secrets", &["create", "list", "watch"]),
];

/// The stand-in plays pools and their machines, and sends the heartbeats of these.
pub(super) const MACHINE_CONFIG_OPERATOR: [Right; 8] = [
    right("", "nodes", &["list", "patch", "watch"]),
    right("", "nodes/status", &["patch"]),
    right("", "pods", &["get", "list"]),
    right("", "pods/eviction", &["create"]),
    right(MACHINES, "machineconfigs", &["create", "delete", "list", "watch"]),
    right(MACHINES, "machineconfigpools", &["list", "patch", "watch"]),
    right(MACHINES, "machineconfigpools/status", &["patch"]),
    right("coordination.k8s.io", "leases", &["create", "patch"]),
];

pub(super) const KWOK: [Right; 5] = [
    right("", "nodes", &["list", "watch"]),
    right("", "nodes/status", &["patch"]),
    right("", "pods", &["delete", "list", "watch"]),
    right("", "pods/status", &["patch"]),
    right("coordination.k8s.io", "leases", &["create", "list", "update", "watch"]),
];
