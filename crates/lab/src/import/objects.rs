//! Nodes, VMs and pods of a cluster as a scenario has them. A pure function of the objects, which come one by one.

use std::collections::{BTreeMap, HashMap};

use advisor::demand;
use api::{quantity, virtual_machine::Cpu};
use serde_json::{Value, json};
use sim::{
    import::ImportedVm,
    scenario::{Effect, NodeGroup, Requests, Taint, VmGroup},
    units::{Bytes, Rate},
};

use super::{
    constraints::{Constraints, apart},
    requirements::{Candidate, requests},
};
use crate::launcher;

const CREATED_BY: &str = "kubevirt.io/created-by";
/// KubeVirt's own label of nodes that take VMs.
const SCHEDULABLE: &str = "kubevirt.io/schedulable";
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// The simulator sets these by itself.
const SOFT_TAINTS: &str = "nodeutilization.descheduler.openshift.io/";
/// The cause where KubeVirt gives none yet.
const UNSAID: &str = "LiveMigratable is not known yet";

/// A node of the cluster.
#[derive(Debug, Clone)]
pub struct FoundNode {
    pub name: String,
    /// Other names under which it is measured: its addresses.
    pub addresses: Vec<String>,
    pub group: NodeGroup,
    pub(super) candidate: Candidate,
}

/// A VM of the cluster.
#[derive(Debug, Clone)]
pub struct FoundVm {
    pub namespace: String,
    pub name: String,
    /// The pod that runs it.
    pub pod: Option<String>,
    pub vm: ImportedVm,
}

/// Everything that was found.
#[derive(Debug, Clone)]
pub struct Objects {
    pub nodes: Vec<FoundNode>,
    pub vms: Vec<FoundVm>,
    /// The kind that stands for VMs.
    pub kind: &'static str,
    /// What a scenario cannot say.
    pub notes: Vec<String>,
}

/// What stands for VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// KubeVirt's VirtualMachineInstance.
    Instance,
    /// The lab's VirtualMachine.
    Lab,
    Pod,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Instance => "VirtualMachineInstances of KubeVirt",
            Kind::Lab => "VirtualMachines of the lab",
            Kind::Pod => "pods",
        }
    }
}

/// Objects as they come: nodes, then VMs, then pods.
#[derive(Debug)]
pub struct Collector {
    kind: Kind,
    nodes: Vec<FoundNode>,
    numbers: HashMap<String, usize>,
    vms: Vec<FoundVm>,
    /// The number of a VM by the UID of its object, and by `namespace/name` of its pod.
    by_pod: HashMap<String, usize>,
    constraints: Constraints,
    /// By VM, the spec that says where it may run.
    specs: Vec<Value>,
    skipped: BTreeMap<&'static str, usize>,
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
}

fn amount(object: &Value, pointer: &str) -> Option<String> {
    let value = object.pointer(pointer)?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn cores(text: &str) -> Option<f64> {
    Cpu::from(text).cores().ok()
}

impl Collector {
    pub fn new(kind: Kind) -> Self {
        Collector {
            kind,
            nodes: Vec::new(),
            numbers: HashMap::new(),
            vms: Vec::new(),
            by_pod: HashMap::new(),
            constraints: Constraints::default(),
            specs: Vec::new(),
            skipped: BTreeMap::new(),
        }
    }

    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// Nodes of the control plane that take no VMs are left out, unless they were `asked` for.
    pub fn node(&mut self, object: &Value, asked: bool) {
        let Some(name) = text(object, "/metadata/name") else { return };
        let size = |resource: &str, first: &str, second: &str| {
            amount(object, &format!("/status/{first}/{resource}"))
                .or_else(|| amount(object, &format!("/status/{second}/{resource}")))
        };
        // node-exporter measures all cores, and the rules of the descheduler divide by the allocatable memory.
        let cpu = size("cpu", "capacity", "allocatable").and_then(|text| cores(&text));
        let memory = size("memory", "allocatable", "capacity").and_then(|text| quantity::units(&text));
        let (Some(cpu), Some(memory)) = (cpu, memory.filter(|bytes| *bytes > 0)) else {
            return self.skip("nodes that do not say how large they are");
        };
        let labels: BTreeMap<String, String> = object
            .pointer("/metadata/labels")
            .and_then(|labels| serde_json::from_value(labels.clone()).ok())
            .unwrap_or_default();
        let taints = taints(object);
        let is_control_plane = CONTROL_PLANE.iter().any(|label| labels.contains_key(*label));
        if !asked && is_control_plane && taints.iter().any(|taint| CONTROL_PLANE.contains(&taint.key.as_str())) {
            return self.skip("nodes of the control plane");
        }
        let list = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        let ready = list("/status/conditions").find(|known| known["type"] == "Ready");
        let pods = amount(object, "/status/allocatable/pods").and_then(|text| quantity::units(&text)).unwrap_or(250);
        let group = NodeGroup {
            cores: cpu,
            memory: Bytes(memory),
            max_vms: u32::try_from(pods).unwrap_or(u32::MAX),
            cordoned: object.pointer("/spec/unschedulable") == Some(&Value::Bool(true))
                || ready.is_some_and(|ready| ready["status"] != "True"),
            taints: taints.iter().map(in_scenario).collect(),
            labels: labels.clone(),
            ..NodeGroup::reference(name)
        };
        let addresses = list("/status/addresses").filter_map(|address| address["address"].as_str());
        let addresses = addresses.map(str::to_owned).collect();
        self.numbers.insert(name.to_owned(), self.nodes.len());
        let candidate = Candidate { name: name.to_owned(), labels, taints };
        self.nodes.push(FoundNode { name: name.to_owned(), addresses, group, candidate });
    }

    fn add(
        &mut self,
        object: &Value,
        group: VmGroup,
        node: Option<&str>,
        stated: Option<[f64; 2]>,
        spec: Value,
    ) -> usize {
        let node = node.and_then(|name| self.numbers.get(name)).copied();
        let name = text(object, "/metadata/name").unwrap_or_default().to_owned();
        let namespace = text(object, "/metadata/namespace").unwrap_or_default().to_owned();
        self.vms.push(FoundVm { namespace, name, pod: None, vm: ImportedVm { group, node, stated } });
        self.specs.push(spec);
        self.vms.len() - 1
    }

    /// A VirtualMachineInstance.
    pub fn instance(&mut self, object: &Value) {
        let phase = text(object, "/status/phase").unwrap_or_default();
        if ["Succeeded", "Failed"].contains(&phase) {
            return self.skip("VMs that have ended");
        }
        let topology = |at: &str| {
            let part = |name: &str| object.pointer(&format!("{at}/{name}")).and_then(Value::as_u64);
            let known = ["cores", "sockets", "threads"].map(part);
            known
                .iter()
                .any(Option::is_some)
                .then(|| known.iter().map(|part| part.unwrap_or(1).max(1) as f64).product())
        };
        let requested =
            || amount(object, "/spec/domain/resources/requests/cpu").and_then(|text| cores(&text)).map(f64::ceil);
        let cpu = topology("/status/currentCPUTopology").or_else(|| topology("/spec/domain/cpu")).or_else(requested);
        let memory =
            ["/status/memory/guestCurrent", "/spec/domain/memory/guest", "/spec/domain/resources/requests/memory"];
        let memory =
            memory.into_iter().find_map(|pointer| amount(object, pointer)).and_then(|text| quantity::units(&text));
        let Some(memory) = memory.filter(|bytes| *bytes > 0) else {
            return self.skip("VMs that do not say how much memory they have");
        };
        let blocker = blocker(object);
        let group = VmGroup {
            cores: cpu.unwrap_or(1.0),
            memory: Bytes(memory),
            migratable: blocker.is_none(),
            not_migratable_because: blocker,
            ..VmGroup::new("")
        };
        let mut spec = json!({});
        for field in ["nodeSelector", "affinity", "tolerations"] {
            spec[field] = object.pointer(&format!("/spec/{field}")).cloned().unwrap_or(Value::Null);
        }
        let number = self.add(object, group, text(object, "/status/nodeName"), None, spec);
        self.vms[number].vm.group.affinity.apart = apart(object);
        if let Some(uid) = text(object, "/metadata/uid") {
            self.by_pod.insert(uid.to_owned(), number);
        }
    }

    /// A VirtualMachine of the lab.
    pub fn lab_vm(&mut self, object: &Value) {
        let size = amount(object, "/spec/resources/cpu").and_then(|text| cores(&text));
        let memory = amount(object, "/spec/resources/memory").and_then(|text| quantity::units(&text));
        let (Some(cores), Some(memory)) = (size, memory.filter(|bytes| *bytes > 0)) else {
            return self.skip("VMs whose size cannot be read");
        };
        if object.pointer("/spec/running") == Some(&Value::Bool(false)) {
            return self.skip("VMs that are stopped");
        }
        let used = |resource: &str, otherwise: f64| {
            amount(object, &format!("/spec/utilization/{resource}"))
                .and_then(|text| text.parse().ok())
                .unwrap_or(otherwise)
        };
        let stated = [used("cpu", 0.5), used("memory", 0.8)];
        let annotations = object.pointer("/metadata/annotations").unwrap_or(&Value::Null);
        let dirty_rate = annotations[launcher::DIRTY_RATE].as_str().and_then(|text| text.parse::<f64>().ok());
        let mut group = VmGroup { cores, memory: Bytes(memory), ..VmGroup::new("") };
        if let Some(megabits) = dirty_rate.filter(|rate| (0.0..1e9).contains(rate)) {
            group.dirty_rate = Rate((megabits * 1e6) as u64);
        }
        let number = self.add(object, group, text(object, "/status/nodeName"), Some(stated), Value::Null);
        let namespace = text(object, "/metadata/namespace").unwrap_or_default();
        if let Some(pod) = text(object, "/status/podName") {
            self.by_pod.insert(format!("{namespace}/{pod}"), number);
        }
    }

    /// A pod: of a VM, or of something else that takes room. `selected` makes it a VM where pods stand for them.
    pub fn pod(&mut self, object: &Value, selected: bool) {
        let Some(spec) = object.get("spec") else { return };
        if matches!(text(object, "/status/phase"), Some("Succeeded" | "Failed")) {
            return;
        }
        let (Some(namespace), Some(name)) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"))
        else {
            return;
        };
        let node = text(object, "/spec/nodeName");
        let requests = requests(spec);
        if self.kind == Kind::Pod && selected {
            return self.pod_as_vm(object, spec, node, requests);
        }
        let created_by = object.pointer("/metadata/labels").and_then(|labels| labels[CREATED_BY].as_str());
        let of_vm =
            created_by.and_then(|uid| self.by_pod.get(uid)).or_else(|| self.by_pod.get(&format!("{namespace}/{name}")));
        let number = node.and_then(|name| self.numbers.get(name)).copied();
        match of_vm.copied() {
            Some(vm) => {
                // The target of a migration is not the VM yet, and its room is free again soon.
                if self.vms[vm].vm.node == number {
                    let found = &mut self.vms[vm];
                    found.pod = Some(name.to_owned());
                    found.vm.group.requests = reserved(requests);
                    found.vm.group.priority = priority(spec);
                    if self.kind == Kind::Lab {
                        self.specs[vm] =
                            json!({"nodeSelector": spec["nodeSelector"], "tolerations": spec["tolerations"]});
                    }
                }
            }
            None => {
                if let Some(node) = number.and_then(|number| self.nodes.get_mut(number)) {
                    let before = node.group.reserved;
                    let cpu = before.cpu.unwrap_or(0.0) + requests[0] as f64 / 1000.0;
                    let memory = before.memory.map_or(0, |memory| memory.0).saturating_add(requests[1]);
                    node.group.reserved = Requests { cpu: Some(cpu), memory: Some(Bytes(memory)) };
                    node.group.max_vms = node.group.max_vms.saturating_sub(1);
                }
            }
        }
    }

    fn pod_as_vm(&mut self, object: &Value, spec: &Value, node: Option<&str>, requests: [u64; 2]) {
        let limits =
            spec["containers"].as_array().into_iter().flatten().map(|container| &container["resources"]["limits"]);
        let (mut cpu, mut memory) = (0.0, 0);
        for limit in limits {
            cpu += amount(limit, "/cpu").and_then(|text| cores(&text)).unwrap_or(0.0);
            let more = amount(limit, "/memory").and_then(|text| quantity::units(&text)).unwrap_or(0);
            memory = more.saturating_add(memory);
        }
        let cpu = if cpu > 0.0 { cpu } else { requests[0] as f64 / 1000.0 };
        let memory = memory.max(requests[1]);
        if cpu <= 0.0 || memory == 0 {
            return self.skip("pods without a size: they neither request nor limit CPU and memory");
        }
        let size = VmGroup { cores: cpu, memory: Bytes(memory), ..VmGroup::new("") };
        let group = VmGroup { requests: reserved(requests), priority: priority(spec), ..size };
        let fields = json!({"nodeSelector": spec["nodeSelector"], "affinity": spec["affinity"], "tolerations": spec["tolerations"]});
        let number = self.add(object, group, node, None, fields);
        self.vms[number].vm.group.affinity.apart = apart(object);
        let (namespace, name) = (self.vms[number].namespace.clone(), self.vms[number].name.clone());
        self.by_pod.insert(format!("{namespace}/{name}"), number);
        self.vms[number].pod = Some(name);
    }

    /// Everything, with names that are used once, and with constraints that a scenario can say.
    pub fn finish(mut self) -> Objects {
        let wants_schedulable = self.kind == Kind::Instance
            && self.nodes.iter().any(|node| node.group.labels.get(SCHEDULABLE).is_some_and(|value| value == "true"));
        for (found, mut spec) in self.vms.iter_mut().zip(std::mem::take(&mut self.specs)) {
            if wants_schedulable {
                spec["nodeSelector"][SCHEDULABLE] = json!("true");
            }
            let (labels, tolerations) = self.constraints.of(&spec, &mut self.nodes);
            found.vm.group.affinity.nodes = labels;
            found.vm.group.tolerations = tolerations;
        }
        let mut count: HashMap<String, usize> = HashMap::new();
        for found in &self.vms {
            *count.entry(found.name.clone()).or_default() += 1;
        }
        for found in &mut self.vms {
            let is_unique = count.get(&found.name) == Some(&1);
            found.vm.group.name =
                if is_unique { found.name.clone() } else { format!("{}.{}", found.namespace, found.name) };
        }
        let mut notes: Vec<String> =
            self.skipped.iter().map(|(why, count)| format!("{count} {why} are left out")).collect();
        notes.extend(self.constraints.notes());
        Objects { nodes: self.nodes, vms: self.vms, kind: self.kind.name(), notes }
    }
}

fn reserved([cpu, memory]: [u64; 2]) -> Requests {
    Requests { cpu: Some(cpu as f64 / 1000.0), memory: Some(Bytes(memory)) }
}

fn priority(spec: &Value) -> i32 {
    spec["priority"].as_i64().and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0)
}

/// The taints of a node, apart from those that it has only while it is out of service: other fields say that.
fn taints(object: &Value) -> Vec<demand::Taint> {
    let listed = object.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let taints = listed.map(demand::Taint::of);
    taints.filter(|taint| !taint.is_passing() && !taint.key.starts_with(SOFT_TAINTS)).collect()
}

/// A taint as a scenario has it.
fn in_scenario(taint: &demand::Taint) -> Taint {
    let effect = if taint.is_preference() { Effect::PreferNoSchedule } else { Effect::NoSchedule };
    Taint { key: taint.key.clone(), effect }
}

/// Why a VirtualMachineInstance cannot be migrated.
fn blocker(object: &Value) -> Option<String> {
    let mut conditions = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let Some(condition) = conditions.find(|known| known["type"] == "LiveMigratable") else {
        return Some(UNSAID.to_owned());
    };
    let reason = condition["reason"].as_str().filter(|reason| !reason.is_empty()).unwrap_or("NotMigratable");
    (condition["status"] != "True").then(|| reason.to_owned())
}
