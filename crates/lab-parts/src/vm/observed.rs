//! VMs and their pods as the controller observes them.

use std::collections::BTreeMap;

use api::{VirtualMachineSpec, VirtualMachineStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, core::DynamicObject};
use kube_io::ObjectKey;
use serde_json::Value;
use sim::units::Rate;

use crate::launcher;

/// The VM's name becomes the value of a label, which has at most so many characters.
const LONGEST_NAME: usize = 63;

#[derive(Debug, Clone, PartialEq)]
pub struct Vm {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `resourceVersion`.
    pub version: String,
    pub generation: Option<i64>,
    pub is_deleted: bool,
    /// The value of the label with the VM's node.
    pub label: Option<String>,
    /// The spec, or why it cannot be read.
    pub spec: Result<VmSpec, String>,
    pub status: VirtualMachineStatus,
    /// The stored status, if it cannot be read. The controller replaces it.
    pub unreadable_status: Option<Value>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct VmSpec {
    pub running: bool,
    pub cores: f64,
    pub bytes: u64,
    /// Quantities as the spec has them.
    pub cpu: String,
    pub memory: String,
    pub cpu_utilization: String,
    pub memory_utilization: String,
    pub bytes_in_use: f64,
    /// The rate at which the VM writes to its memory, if it has its own.
    pub dirty_rate: Option<Rate>,
}

impl VmSpec {
    fn of(vm: &DynamicObject) -> Result<VmSpec, String> {
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
        Ok(VmSpec {
            running: spec.running,
            cores: resources.cpu.cores().map_err(words)?,
            bytes,
            cpu: resources.cpu.to_string(),
            memory: resources.memory.to_string(),
            cpu_utilization: cpu_utilization.to_string(),
            memory_utilization: memory_utilization.to_string(),
            bytes_in_use: bytes as f64 * memory_utilization,
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

impl Vm {
    pub(super) fn key(&self) -> ObjectKey {
        ObjectKey { namespace: self.namespace.clone(), name: self.name.clone() }
    }

    /// Reads each field by itself: a field that cannot be read must not hide the others.
    pub fn of(vm: &DynamicObject) -> Vm {
        let stored = &vm.data["status"];
        let (status, unreadable_status) = match serde_json::from_value::<Option<_>>(stored.clone()) {
            Ok(status) => (status.unwrap_or_default(), None),
            Err(_) => (VirtualMachineStatus::default(), Some(stored.clone())),
        };
        Vm {
            namespace: vm.namespace().unwrap_or_default(),
            name: vm.name_any(),
            uid: vm.uid().unwrap_or_default(),
            version: vm.resource_version().unwrap_or_default(),
            generation: vm.metadata.generation,
            is_deleted: vm.metadata.deletion_timestamp.is_some(),
            label: vm.labels().get(launcher::NODE_NAME).cloned(),
            spec: VmSpec::of(vm),
            status,
            unreadable_status,
        }
    }
}

/// A pod that runs a VM.
#[derive(Debug, Clone, PartialEq)]
pub struct LauncherPod {
    pub name: String,
    pub uid: String,
    /// `resourceVersion`.
    pub version: String,
    /// The UID of its VM.
    pub owner: Option<String>,
    pub node: Option<String>,
    pub is_running: bool,
    pub is_finished: bool,
    pub is_deleted: bool,
    /// Whether the pod has our finalizer.
    pub is_protected: bool,
    pub created: Option<Timestamp>,
    pub annotations: BTreeMap<String, String>,
}

impl LauncherPod {
    pub fn of(pod: &Pod) -> LauncherPod {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let owner = pod.owner_references().iter().find(|owner| owner.kind == "VirtualMachine");
        LauncherPod {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            version: pod.resource_version().unwrap_or_default(),
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

    pub(super) fn has_size_of(&self, spec: &VmSpec) -> bool {
        let has = |name: &str, value: String| self.annotations.get(name) == Some(&value);
        has(launcher::CPU_CORES, spec.cores.to_string()) && has(launcher::MEMORY_BYTES, spec.bytes.to_string())
    }

    /// Whether a removal has anything left to do.
    pub(super) fn is_removable(&self) -> bool {
        self.is_protected || !self.is_deleted
    }

    pub(super) fn source(&self) -> Option<&str> {
        self.annotations.get(launcher::SOURCE).map(String::as_str)
    }
}
