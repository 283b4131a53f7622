//! Pods and PodDisruptionBudgets: what takes room on nodes, and what keeps a drain from ending.

use serde_json::Value;

use super::instance::annotations;
use crate::{
    demand::{Demand, requests},
    selector::{Labels, Selector, labels},
};

const LAUNCHER: &str = "kubevirt.io";
const CREATED_BY: &str = "kubevirt.io/created-by";
const MIRROR: &str = "kubernetes.io/config.mirror";
/// Kubernetes' default.
const GRACE_SECONDS: u64 = 30;

/// A pod that is on a node and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    pub node: String,
    pub(super) labels: Labels,
    pub(super) demand: Demand,
    /// The UID of the VirtualMachineInstance that it runs.
    pub(super) instance: Option<String>,
    /// Whether a drain leaves it where it is: it belongs to a DaemonSet, or the kubelet runs it from a file.
    pub(super) stays: bool,
    /// The longest time between its eviction and its end.
    pub(super) grace_seconds: u64,
}

impl Pod {
    /// None unless it is on a node and has not ended.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        if matches!(text("/status/phase"), Some("Succeeded" | "Failed")) {
            return None;
        }
        let labels = labels(object);
        let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
        let is_daemon = owners.into_iter().flatten().any(|owner| owner["kind"] == "DaemonSet");
        let is_launcher = labels.get(LAUNCHER).is_some_and(|value| value == "virt-launcher");
        let spec = object.get("spec")?;
        Some(Pod {
            namespace: text("/metadata/namespace")?.to_owned(),
            name: text("/metadata/name")?.to_owned(),
            node: text("/spec/nodeName").filter(|name| !name.is_empty())?.to_owned(),
            demand: Demand::of(spec, requests(spec)),
            instance: labels.get(CREATED_BY).filter(|_| is_launcher).cloned(),
            grace_seconds: spec["terminationGracePeriodSeconds"].as_u64().unwrap_or(GRACE_SECONDS),
            stays: is_daemon || annotations(object).contains_key(MIRROR),
            labels,
        })
    }

    /// The UID of the VirtualMachineInstance that it runs.
    pub fn instance(&self) -> Option<&str> {
        self.instance.as_deref()
    }

    /// Whether it is the pod that runs this VirtualMachineInstance, and not the one that it migrates to.
    pub fn runs(&self, instance: &super::Instance) -> bool {
        self.instance.as_deref() == Some(&instance.uid) && self.node == instance.node
    }

    /// Whether it is the operator that rolls machine configs out. The node that it is on comes last.
    pub(super) fn is_machine_config_operator(&self) -> bool {
        self.namespace == "openshift-machine-config-operator"
            && self.labels.get("k8s-app").is_some_and(|app| app == "machine-config-operator")
    }
}

/// A PodDisruptionBudget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub namespace: String,
    pub name: String,
    selector: Option<Selector>,
    pub(super) allowed: Option<i64>,
}

impl Budget {
    /// None for those that KubeVirt up to 1.5 made for virtual machines: what they say is known from the machines.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let name = text("/metadata/name")?;
        let is_kubevirt = ["kubevirt-disruption-budget-", "kubevirt-migration-pdb-"];
        if is_kubevirt.iter().any(|prefix| name.starts_with(prefix)) {
            return None;
        }
        Some(Budget {
            namespace: text("/metadata/namespace")?.to_owned(),
            name: name.to_owned(),
            selector: Selector::of(object.pointer("/spec/selector")),
            allowed: object.pointer("/status/disruptionsAllowed").and_then(Value::as_i64),
        })
    }

    /// A label that each of its pods has, with the values of which it has one. None if the selector names no such label.
    pub(super) fn required_label(&self) -> Option<(&str, &[String])> {
        self.selector.as_ref()?.required_label()
    }

    /// An empty selector covers all pods of the namespace, and none covers none.
    pub(super) fn covers(&self, pod: &Pod) -> bool {
        pod.namespace == self.namespace && self.selector.as_ref().is_some_and(|known| known.matches(&pod.labels))
    }
}
