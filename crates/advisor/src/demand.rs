//! What a pod asks of a node: resources, labels, tolerated taints. And what a node has. As the scheduler decides it.

use std::{collections::BTreeMap, fmt};

use api::quantity;
use serde_json::Value;

use crate::selector::{NodeAffinity, Selector, texts};

/// Amounts of resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resources {
    /// In thousandths.
    pub cpu: u64,
    /// In bytes.
    pub memory: u64,
    /// Huge pages, devices, the number of pods.
    pub(crate) others: BTreeMap<String, u64>,
}

pub(crate) const PODS: &str = "pods";

impl Resources {
    /// A map of quantities. What is not a quantity is left out.
    pub(crate) fn of(map: Option<&Value>) -> Self {
        let mut resources = Resources::default();
        for (name, amount) in map.and_then(Value::as_object).into_iter().flatten() {
            let amount = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            match name.as_str() {
                "cpu" => resources.cpu = quantity::thousandths(&amount).unwrap_or(0),
                "memory" => resources.memory = quantity::units(&amount).unwrap_or(0),
                // Volumes decide about these, and requests of them are only estimates.
                "ephemeral-storage" => {}
                _ => {
                    resources.others.insert(name.clone(), quantity::units(&amount).unwrap_or(0));
                }
            }
        }
        resources
    }

    pub(crate) fn add(&mut self, other: &Resources) {
        self.cpu = self.cpu.saturating_add(other.cpu);
        self.memory = self.memory.saturating_add(other.memory);
        for (name, amount) in &other.others {
            let sum = self.others.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*amount);
        }
    }

    /// A node may be overcommitted: then nothing of a resource is left.
    pub(crate) fn take(&mut self, other: &Resources) {
        self.cpu = self.cpu.saturating_sub(other.cpu);
        self.memory = self.memory.saturating_sub(other.memory);
        for (name, amount) in &other.others {
            if let Some(left) = self.others.get_mut(name) {
                *left = left.saturating_sub(*amount);
            }
        }
    }

    fn at_least(&mut self, other: &Resources) {
        self.cpu = self.cpu.max(other.cpu);
        self.memory = self.memory.max(other.memory);
        for (name, amount) in &other.others {
            let most = self.others.entry(name.clone()).or_default();
            *most = (*most).max(*amount);
        }
    }

    pub(crate) fn other(&self, name: &str) -> u64 {
        self.others.get(name).copied().unwrap_or(0)
    }
}

/// What the scheduler reserves for a pod: the sum of its containers, or more while one of its init containers runs.
pub(crate) fn requests(spec: &Value) -> Resources {
    let mut sidecars = Resources::default();
    let mut most = Resources::default();
    for container in containers(spec, "initContainers") {
        let mut needed = requests_of(container);
        if is_sidecar(container) {
            sidecars.add(&needed);
            most.at_least(&sidecars);
        } else {
            needed.add(&sidecars);
            most.at_least(&needed);
        }
    }
    most.add(&Resources::of(spec.get("overhead")));
    most.at_least(&requests_while_running(spec));
    most.others.insert(PODS.into(), 1);
    most
}

/// What a pod requests once it runs: its containers and sidecars. Its other init containers have ended.
pub fn requests_while_running(spec: &Value) -> Resources {
    let sidecars = containers(spec, "initContainers").filter(|container| is_sidecar(container));
    let mut sum = Resources::of(spec.get("overhead"));
    sidecars.chain(containers(spec, "containers")).for_each(|container| sum.add(&requests_of(container)));
    sum
}

fn containers<'a>(spec: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    spec[field].as_array().into_iter().flatten()
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn requests_of(container: &Value) -> Resources {
    Resources::of(container.pointer("/resources/requests"))
}

/// Something about a node that keeps pods away, or only makes other nodes better.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    pub key: String,
    value: String,
    effect: String,
}

impl Taint {
    pub fn of(taint: &Value) -> Self {
        let text = |name: &str| taint[name].as_str().unwrap_or_default().to_owned();
        Taint { key: text("key"), value: text("value"), effect: text("effect") }
    }

    /// Whether a node has it only while it is out of service, which other fields say.
    pub fn is_passing(&self) -> bool {
        let passing = ["unschedulable", "not-ready", "unreachable"];
        self.key.strip_prefix("node.kubernetes.io/").is_some_and(|key| passing.contains(&key))
    }

    /// Whether it only makes other nodes better.
    pub fn is_preference(&self) -> bool {
        self.effect == "PreferNoSchedule"
    }

    /// Whether it keeps pods away.
    fn refuses(&self) -> bool {
        !self.is_preference() && !self.is_passing()
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "{}{equals}{}:{}", self.key, self.value, self.effect)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Toleration {
    key: String,
    exists: bool,
    value: String,
    effect: String,
}

impl Toleration {
    fn of(toleration: &Value) -> Self {
        let text = |name: &str| toleration[name].as_str().unwrap_or_default().to_owned();
        let exists = toleration["operator"] == "Exists";
        Toleration { key: text("key"), exists, value: text("value"), effect: text("effect") }
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        (self.effect.is_empty() || self.effect == taint.effect)
            && (self.key == taint.key || (self.key.is_empty() && self.exists))
            && (self.exists || self.value == taint.value)
    }
}

/// What has to hold for the node of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Demand {
    pub(crate) requests: Resources,
    pub(crate) selector: Selector,
    /// The node selector as text.
    pub(crate) selector_text: String,
    pub(crate) affinity: Option<NodeAffinity>,
    tolerations: Vec<Toleration>,
    /// Whether it depends on other pods of the node, which nothing here looks at.
    pub depends_on_pods: bool,
}

impl Demand {
    /// Of the spec of a pod, or of a VirtualMachineInstance, which calls these fields the same.
    pub fn of(spec: &Value, requests: Resources) -> Self {
        let labels = texts(spec.get("nodeSelector"));
        let listed: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let tolerations = spec["tolerations"].as_array().into_iter().flatten().map(Toleration::of);
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        let pods = ["podAffinity", "podAntiAffinity"];
        let depends = |kind: &str| spec["affinity"][kind][required].as_array().is_some_and(|terms| !terms.is_empty());
        Demand {
            requests,
            selector: Selector::exact(&labels),
            selector_text: listed.join(","),
            affinity: NodeAffinity::of(&spec["affinity"]),
            tolerations: tolerations.collect(),
            depends_on_pods: pods.into_iter().any(depends),
        }
    }

    /// Whether labels, required affinity and taints allow a node, whatever room it has.
    pub fn allows(&self, name: &str, labels: &BTreeMap<String, String>, taints: &[Taint]) -> bool {
        self.selector.matches(labels) && self.affinity_allows(name, labels) && self.tolerates_all(taints)
    }

    pub(crate) fn affinity_allows(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.affinity.as_ref().is_none_or(|affinity| affinity.allows(name, labels))
    }

    pub(crate) fn tolerates_all(&self, taints: &[Taint]) -> bool {
        taints.iter().all(|taint| self.tolerates(taint))
    }

    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        !taint.refuses() || self.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_are_counted_as_the_scheduler_counts_them() {
        let container = |cpu: &str, memory: &str| json!({"resources": {"requests": {"cpu": cpu, "memory": memory}}});
        let sidecar = |cpu: &str| json!({"restartPolicy": "Always", "resources": {"requests": {"cpu": cpu}}});
        for (case, spec, cpu, memory) in [
            ("none", json!({"containers": [{}]}), 0, 0),
            ("two containers", json!({"containers": [container("100m", "1Ki"), container("1", "2Ki")]}), 1100, 3072),
            (
                "an init container that needs more",
                json!({"initContainers": [container("2", "1Ki")], "containers": [container("1", "2Ki")]}),
                2000,
                2048,
            ),
            ("a sidecar", json!({"initContainers": [sidecar("500m")], "containers": [container("1", "0")]}), 1500, 0),
            (
                "a sidecar before an init container",
                json!({"initContainers": [sidecar("500m"), container("1", "0")], "containers": [container("100m", "0")]}),
                1500,
                0,
            ),
            ("overhead", json!({"containers": [container("1", "1Ki")], "overhead": {"cpu": "1"}}), 2000, 1024),
            ("nonsense", json!({"containers": [container("two", "some")]}), 0, 0),
        ] {
            let found = requests(&spec);
            assert_eq!((found.cpu, found.memory, found.other(PODS)), (cpu, memory, 1), "{case}");
        }
    }

    #[test]
    fn taints_are_tolerated_as_the_scheduler_tolerates_them() {
        let taint = Taint::of(&json!({"key": "gpu", "value": "a", "effect": "NoSchedule"}));
        for (tolerations, tolerates) in [
            (json!([]), false),
            (json!([{"key": "gpu", "operator": "Exists"}]), true),
            (json!([{"key": "gpu", "value": "a"}]), true),
            (json!([{"key": "gpu", "operator": "Equal", "value": "b"}]), false),
            (json!([{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}]), false),
            (json!([{"operator": "Exists"}]), true),
            (json!([{"key": "other", "operator": "Exists"}]), false),
        ] {
            let demand = Demand::of(&json!({"tolerations": tolerations}), Resources::default());
            assert_eq!(demand.tolerates(&taint), tolerates, "{tolerations}");
        }
        assert_eq!(taint.to_string(), "gpu=a:NoSchedule");
        let soft = Taint::of(&json!({"key": "UpdateInProgress", "effect": "PreferNoSchedule"}));
        assert!(Demand::default().tolerates(&soft), "what is only preferred refuses nobody");
    }
}
