//! A view of a VirtualMachineInstance, and what it has in common with KubeVirt's other objects.

use jiff::Timestamp;
use kube::{Resource, ResourceExt, api::DynamicObject};
use kube_io::ObjectKey;
use serde_json::{Value, json};

use crate::machine_config::names::SINCE;

/// A VirtualMachineInstance.
#[derive(Debug, Clone, Copy)]
pub(super) struct InstanceView<'a>(pub(super) &'a DynamicObject);

impl<'a> InstanceView<'a> {
    pub(super) fn key(self) -> ObjectKey {
        ObjectKey::of(self.0)
    }

    pub(super) fn uid(self) -> &'a str {
        self.0.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(super) fn phase(self) -> &'a str {
        self.text("/status/phase").unwrap_or_default()
    }

    /// Whether it has ended.
    pub(super) fn is_final(self) -> bool {
        ["Succeeded", "Failed"].contains(&self.phase())
    }

    pub(super) fn node(self) -> Option<&'a str> {
        self.text("/status/nodeName")
    }

    /// The node that it is to leave.
    pub(super) fn evacuation(self) -> Option<&'a str> {
        self.text("/status/evacuationNodeName")
    }

    /// Its own eviction strategy, or that of KubeVirt.
    pub(super) fn strategy(self, default: Option<&'a str>) -> &'a str {
        self.text("/spec/evictionStrategy").or(default).unwrap_or("None")
    }

    pub(super) fn is_migratable(self) -> bool {
        let conditions = self.0.data.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        conditions.filter(|it| it["type"] == "LiveMigratable").any(|it| it["status"] == "True")
    }

    /// When it began to shut down.
    pub(super) fn stopping_since(self) -> Option<Timestamp> {
        self.0.annotations().get(SINCE)?.parse().ok()
    }

    /// What virt-handler says of a guest that runs: one with a device of its node cannot be migrated.
    pub(super) fn conditions(self) -> Value {
        let devices = self.0.data.pointer("/spec/domain/devices/hostDevices").and_then(Value::as_array);
        let migratable = match devices.is_some_and(|devices| !devices.is_empty()) {
            false => json!({"type": "LiveMigratable", "status": "True"}),
            true => json!({
                "type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable",
                "message": "VMI specifies non-migratable generic PCI host device",
            }),
        };
        json!([{"type": "Ready", "status": "True"}, migratable])
    }

    pub(super) fn spec(self, pointer: &str) -> Option<&'a Value> {
        self.0.data.pointer("/spec")?.pointer(pointer)
    }

    fn text(self, pointer: &str) -> Option<&'a str> {
        self.0.data.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

/// Whether it is being deleted.
pub(super) fn is_ending(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

pub(super) fn owner(object: &DynamicObject, kind: &str, version: &str) -> Value {
    json!({
        "apiVersion": version, "kind": kind, "name": object.name_any(), "uid": object.meta().uid,
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A time with milliseconds: what is simulated may take less than a second.
pub(super) fn precise(time: Timestamp) -> String {
    Timestamp::from_millisecond(time.as_millisecond()).unwrap_or(time).to_string()
}
