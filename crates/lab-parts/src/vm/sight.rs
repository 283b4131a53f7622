//! What the controller reads of VMs and pods.

use std::collections::BTreeMap;

use api::{VirtualMachineSpec, VirtualMachineStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt, core::DynamicObject};
use serde_json::Value;
use sim::units::Rate;

use crate::launcher;

/// A label's value, which the VM's name becomes, has at most so many characters.
const LONGEST_NAME: usize = 63;

/// A VM.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub version: u64,
    pub generation: Option<i64>,
    pub is_deleted: bool,
    /// The value of the label that tells its node.
    pub label: Option<String>,
    /// What is wanted, or why that cannot be read.
    pub wanted: Result<Wanted, String>,
    pub status: VirtualMachineStatus,
    /// The status as it is stored, if it makes no sense. It is written anew.
    pub unreadable: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    pub running: bool,
    pub cores: f64,
    pub bytes: u64,
    /// As they are written.
    pub cpu: String,
    pub memory: String,
    pub cpu_utilization: String,
    pub memory_utilization: String,
    /// Bytes in use.
    pub in_use: f64,
    /// At what rate it writes to its memory, if not at the usual one.
    pub dirty_rate: Option<Rate>,
}

impl Wanted {
    fn of(vm: &DynamicObject) -> Result<Wanted, String> {
        if vm.name_any().len() > LONGEST_NAME {
            return Err(format!("the name has more than {LONGEST_NAME} characters; give the VM a shorter one"));
        }
        let spec = vm.data["spec"].clone();
        let spec: VirtualMachineSpec = serde_json::from_value(spec).map_err(|error| error.to_string())?;
        let (resources, utilization) = (&spec.resources, &spec.utilization);
        let words = |error: api::InvalidValue| error.to_string();
        let bytes = resources.memory.bytes().map_err(words)?;
        let cpu_utilization = utilization.cpu.value().map_err(words)?;
        let memory_utilization = utilization.memory.value().map_err(words)?;
        Ok(Wanted {
            running: spec.running,
            cores: resources.cpu.cores().map_err(words)?,
            bytes,
            cpu: resources.cpu.to_string(),
            memory: resources.memory.to_string(),
            cpu_utilization: cpu_utilization.to_string(),
            memory_utilization: memory_utilization.to_string(),
            in_use: bytes as f64 * memory_utilization,
            dirty_rate: dirty_rate(vm)?,
        })
    }
}

fn dirty_rate(vm: &DynamicObject) -> Result<Option<Rate>, String> {
    let Some(text) = vm.annotations().get(launcher::DIRTY_RATE) else { return Ok(None) };
    let rate = text.trim().parse::<f64>().ok().filter(|rate| (0.0..=1e6).contains(rate));
    let rate = rate.ok_or_else(|| {
        format!("annotation {} is `{text}`; it must be a number of megabits per second", launcher::DIRTY_RATE)
    })?;
    Ok(Some(Rate((rate * 1e6).round() as u64)))
}

impl Machine {
    /// Reads part by part, so that a VM that makes no sense is a VM that makes no sense, and no reason to stop.
    pub fn of(vm: &DynamicObject) -> Machine {
        let stored = &vm.data["status"];
        let (status, unreadable) = match serde_json::from_value::<Option<_>>(stored.clone()) {
            Ok(status) => (status.unwrap_or_default(), None),
            Err(_) => (VirtualMachineStatus::default(), Some(stored.clone())),
        };
        Machine {
            namespace: vm.namespace().unwrap_or_default(),
            name: vm.name_any(),
            uid: vm.uid().unwrap_or_default(),
            version: version(vm),
            generation: vm.metadata.generation,
            is_deleted: vm.metadata.deletion_timestamp.is_some(),
            label: vm.labels().get(launcher::NODE_NAME).cloned(),
            wanted: Wanted::of(vm),
            status,
            unreadable,
        }
    }
}

/// A pod that plays a VM.
#[derive(Debug, Clone, PartialEq)]
pub struct Launcher {
    pub name: String,
    pub uid: String,
    pub version: u64,
    /// The VM that it belongs to.
    pub owner: Option<String>,
    pub node: Option<String>,
    pub is_running: bool,
    pub is_finished: bool,
    pub is_deleted: bool,
    /// Whether it has our finalizer.
    pub is_protected: bool,
    pub created: Option<Timestamp>,
    pub annotations: BTreeMap<String, String>,
}

impl Launcher {
    pub fn of(pod: &Pod) -> Launcher {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let owner = pod.owner_references().iter().find(|owner| owner.kind == "VirtualMachine");
        Launcher {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            version: version(pod),
            owner: owner.map(|owner| owner.uid.clone()),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).filter(|node| !node.is_empty()),
            is_running: phase == Some("Running"),
            is_finished: matches!(phase, Some("Succeeded" | "Failed")),
            is_deleted: pod.metadata.deletion_timestamp.is_some(),
            is_protected: pod.finalizers().iter().any(|finalizer| finalizer == launcher::FINALIZER),
            created: pod.metadata.creation_timestamp.as_ref().map(|time| time.0),
            annotations: pod.annotations().clone(),
        }
    }

    pub(super) fn has_size_of(&self, wanted: &Wanted) -> bool {
        let has = |name: &str, value: String| self.annotations.get(name) == Some(&value);
        has(launcher::CPU_CORES, wanted.cores.to_string()) && has(launcher::MEMORY_BYTES, wanted.bytes.to_string())
    }

    /// Whether there is anything left to do to be rid of it.
    pub(super) fn is_removable(&self) -> bool {
        self.is_protected || !self.is_deleted
    }

    pub(super) fn source(&self) -> Option<&str> {
        self.annotations.get(launcher::SOURCE).map(String::as_str)
    }
}

fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}
