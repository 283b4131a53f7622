//! Virtual machines: KubeVirt's VirtualMachineInstance, which runs, and the VirtualMachine behind it, which says whether it is started
//! again.

use api::quantity;
use serde_json::Value;

use crate::{
    demand::{Demand, PODS, Resources},
    selector::{Labels, texts},
};

/// What KubeVirt takes where nothing is set.
const GRACE_SECONDS: u64 = 30;
/// What KubeVirt adds to the time that a guest has to shut down, before its pod is killed.
const GRACE_PADDING_SECONDS: u64 = 30;

/// What the condition LiveMigratable says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Migratable {
    Yes,
    No {
        reason: String,
        message: String,
    },
    /// There is no such condition, as before the guest has started. KubeVirt does not move such a guest.
    Unsaid,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) kind: String,
    pub(super) name: String,
}

/// A VirtualMachineInstance that is on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instance {
    pub namespace: String,
    pub name: String,
    pub(super) uid: String,
    pub node: String,
    pub(super) owner: Option<Owner>,
    pub(super) strategy: Option<String>,
    pub(super) migratable: Migratable,
    /// Whether its local disks are copied with its memory.
    pub(super) copies_disks: bool,
    /// The longest time between its eviction and the end of its pod.
    pub(super) grace_seconds: u64,
    /// Of the guest, in bytes.
    pub(super) memory: Option<u64>,
    /// What it asks of a node, as far as its own spec tells.
    pub(super) demand: Demand,
}

impl Instance {
    /// None unless it occupies a node: it is not scheduled yet, has ended, or is being deleted.
    pub fn of(object: &Value) -> Option<Self> {
        let at = |pointer: &str| object.pointer(pointer);
        let text = |pointer: &str| at(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let phase = text("/status/phase").unwrap_or_default();
        if !["Scheduled", "Running", "Unknown"].contains(&phase) || at("/metadata/deletionTimestamp").is_some() {
            return None;
        }
        let memory = ["/status/memory/guestCurrent", "/spec/domain/memory/guest"].into_iter().find_map(text);
        let memory = memory.or_else(|| text("/spec/domain/resources/requests/memory")).and_then(quantity::units);
        let grace = at("/spec/terminationGracePeriodSeconds").and_then(Value::as_u64).unwrap_or(GRACE_SECONDS);
        let spec = object.get("spec").unwrap_or(&Value::Null);
        let (namespace, name) = (text("/metadata/namespace")?, text("/metadata/name")?);
        Some(Instance {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: text("/metadata/uid").map_or_else(|| format!("{namespace}/{name}"), str::to_owned),
            node: text("/status/nodeName")?.to_owned(),
            owner: owner(at("/metadata/ownerReferences")),
            strategy: text("/spec/evictionStrategy").map(str::to_owned),
            migratable: migratable(at("/status/conditions")),
            copies_disks: text("/status/migrationMethod") == Some("BlockMigration"),
            grace_seconds: grace.saturating_add(GRACE_PADDING_SECONDS),
            memory,
            demand: Demand::of(spec, requests(spec, memory)),
        })
    }
}

/// The least that its pod asks for. KubeVirt adds what the hypervisor needs.
fn requests(spec: &Value, memory: Option<u64>) -> Resources {
    let mut requests = Resources::of(spec.pointer("/domain/resources/requests"));
    requests.memory = requests.memory.max(memory.unwrap_or(0));
    requests.others.insert(PODS.into(), 1);
    requests
}

fn owner(references: Option<&Value>) -> Option<Owner> {
    let mut references = references.and_then(Value::as_array).into_iter().flatten();
    let controller = references.find(|reference| reference["controller"] == true)?;
    let text = |name: &str| controller[name].as_str().unwrap_or_default().to_owned();
    Some(Owner { kind: text("kind"), name: text("name") })
}

fn migratable(conditions: Option<&Value>) -> Migratable {
    let mut conditions = conditions.and_then(Value::as_array).into_iter().flatten();
    let Some(condition) = conditions.find(|known| known["type"] == "LiveMigratable") else { return Migratable::Unsaid };
    let text = |name: &str| condition[name].as_str().unwrap_or_default().to_owned();
    match condition["status"].as_str() {
        Some("True") => Migratable::Yes,
        _ => Migratable::No { reason: text("reason"), message: text("message") },
    }
}

/// A VirtualMachine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualMachine {
    pub namespace: String,
    pub name: String,
    /// As it is written, or as the older field `running` says it.
    pub(super) run_strategy: String,
    /// The VirtualMachinePool that created it.
    pub(super) pool: Option<String>,
}

impl VirtualMachine {
    /// None if the object has no name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let running = object.pointer("/spec/running").and_then(Value::as_bool);
        let running = running.map(|running| if running { "Always" } else { "Halted" }.to_owned());
        Some(VirtualMachine {
            namespace: text("/metadata/namespace")?,
            name: text("/metadata/name")?,
            run_strategy: text("/spec/runStrategy").or(running).unwrap_or_default(),
            pool: owner(object.pointer("/metadata/ownerReferences"))
                .filter(|owner| owner.kind == "VirtualMachinePool")
                .map(|owner| owner.name),
        })
    }
}

/// The annotations of an object.
pub(super) fn annotations(object: &Value) -> Labels {
    texts(object.pointer("/metadata/annotations"))
}
