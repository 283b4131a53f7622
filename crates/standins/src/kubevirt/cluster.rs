//! What the stand-in knows of the cluster.

use k8s_openapi::api::core::v1::Pod;
use kube::{
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
};
use kube_io::{Change, ObjectKey};
use serde_json::Value;

use super::launcher;
use crate::objects::Objects;

/// The kinds that the stand-in reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    KubeVirt,
    VirtualMachine,
    VirtualMachinePool,
    ReplicaSet,
    Instance,
    Migration,
    Pod,
}

impl Kind {
    pub(super) const ALL: [Kind; 7] = [
        Kind::KubeVirt,
        Kind::VirtualMachine,
        Kind::VirtualMachinePool,
        Kind::ReplicaSet,
        Kind::Instance,
        Kind::Migration,
        Kind::Pod,
    ];

    /// Selects the objects that are read.
    pub(super) fn labels(self) -> &'static str {
        if self == Kind::Pod { launcher::SELECTOR } else { "" }
    }

    pub(super) fn resource(self) -> ApiResource {
        let kubevirt = |kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk("kubevirt.io", "v1", kind));
        match self {
            Kind::KubeVirt => kubevirt("KubeVirt"),
            Kind::VirtualMachine => kubevirt("VirtualMachine"),
            Kind::VirtualMachinePool => {
                ApiResource::from_gvk(&GroupVersionKind::gvk("pool.kubevirt.io", "v1beta1", "VirtualMachinePool"))
            }
            Kind::ReplicaSet => kubevirt("VirtualMachineInstanceReplicaSet"),
            Kind::Instance => kubevirt("VirtualMachineInstance"),
            Kind::Migration => kubevirt("VirtualMachineInstanceMigration"),
            Kind::Pod => ApiResource::erase::<Pod>(&()),
        }
    }
}

/// All objects of these kinds; of the pods those of guests.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    kubevirts: Objects<DynamicObject>,
    virtual_machines: Objects<DynamicObject>,
    pools: Objects<DynamicObject>,
    sets: Objects<DynamicObject>,
    instances: Objects<DynamicObject>,
    migrations: Objects<DynamicObject>,
    pods: Objects<DynamicObject>,
}

impl Cluster {
    pub(super) fn objects(&self, kind: Kind) -> &Objects<DynamicObject> {
        match kind {
            Kind::KubeVirt => &self.kubevirts,
            Kind::VirtualMachine => &self.virtual_machines,
            Kind::VirtualMachinePool => &self.pools,
            Kind::ReplicaSet => &self.sets,
            Kind::Instance => &self.instances,
            Kind::Migration => &self.migrations,
            Kind::Pod => &self.pods,
        }
    }

    pub(super) fn objects_mut(&mut self, kind: Kind) -> &mut Objects<DynamicObject> {
        match kind {
            Kind::KubeVirt => &mut self.kubevirts,
            Kind::VirtualMachine => &mut self.virtual_machines,
            Kind::VirtualMachinePool => &mut self.pools,
            Kind::ReplicaSet => &mut self.sets,
            Kind::Instance => &mut self.instances,
            Kind::Migration => &mut self.migrations,
            Kind::Pod => &mut self.pods,
        }
    }

    pub(super) fn apply(&mut self, kind: Kind, change: Change<DynamicObject>) {
        self.objects_mut(kind).apply(change);
    }

    /// Whether every kind was listed.
    pub(super) fn is_synced(&self) -> bool {
        Kind::ALL.iter().all(|kind| self.objects(*kind).is_synced())
    }

    pub(super) fn version(&self, kind: Kind, key: &ObjectKey) -> Option<&str> {
        let known = self.objects(kind).find(&key.namespace, &key.name)?;
        known.metadata.resource_version.as_deref()
    }

    /// A setting of KubeVirt.
    pub(super) fn setting(&self, pointer: &str) -> Option<&Value> {
        setting(self.kubevirts.iter().next()?, pointer)
    }
}

/// A setting of a KubeVirt object.
pub(super) fn setting<'a>(kubevirt: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    kubevirt.data.pointer("/spec/configuration")?.pointer(pointer)
}
