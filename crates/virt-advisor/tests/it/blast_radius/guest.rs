//! A guest of a random cluster, and the objects behind it.

use serde_json::{Value, json};
use testkit::platform::Platform;

pub(super) const NAMESPACE: &str = "guests";

/// Who starts a guest again, and with which run strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Nobody,
    Machine(&'static str),
    /// A VirtualMachine of a VirtualMachinePool.
    Pool(&'static str),
    ReplicaSet,
}

/// What a guest is like.
#[derive(Debug, Clone, Copy)]
pub(super) struct Make {
    /// Its eviction strategy, unless it inherits that of KubeVirt.
    pub(super) strategy: Option<&'static str>,
    /// Whether it uses a device of its node and so cannot be migrated.
    pub(super) has_device: bool,
    pub(super) owner: Owner,
}

pub(super) struct Guest {
    pub(super) name: String,
    /// Its set or pool has this name.
    group: String,
    node: String,
    make: Make,
}

impl Guest {
    pub(super) fn new(number: usize, node: String, make: Make) -> Guest {
        let group = format!("g{number}");
        let name = if let Owner::Pool(_) = make.owner { format!("{group}-0") } else { group.clone() };
        Guest { name, group, node, make }
    }

    /// Creates it as it runs, and what it belongs to.
    pub(super) async fn create(&self, platform: &Platform) {
        let group = match self.make.owner {
            Owner::ReplicaSet => json!({"template": self.template()}),
            Owner::Pool(strategy) => json!({"virtualMachineTemplate": {"spec": self.machine_spec(strategy)}}),
            Owner::Machine(_) | Owner::Nobody => Value::Null,
        };
        let mut owners = json!([]);
        if !group.is_null() {
            owners = self.create_group(platform, group).await;
        }
        if let Owner::Machine(strategy) | Owner::Pool(strategy) = self.make.owner {
            let mut machine = object("kubevirt.io/v1", "VirtualMachine", &self.name);
            machine["metadata"]["ownerReferences"] = owners;
            machine["spec"] = self.machine_spec(strategy);
            owners = reference(&platform.apply("installer", &machine, "").await);
        }
        let mut instance = object("kubevirt.io/v1", "VirtualMachineInstance", &self.name);
        instance["metadata"]["ownerReferences"] = owners;
        instance["metadata"]["labels"] = json!({"kubevirt.io/nodeName": self.node, "group": self.group});
        instance["spec"] = self.spec();
        let migratable = if self.make.has_device { "False" } else { "True" };
        let conditions =
            json!([{"type": "LiveMigratable", "status": migratable, "reason": "HostDeviceNotLiveMigratable"}]);
        instance["status"] = json!({
            "phase": "Running", "nodeName": self.node, "conditions": conditions, "migrationMethod": "LiveMigration",
        });
        platform.apply("installer", &instance, "").await;
    }

    /// Returns the references of its member.
    async fn create_group(&self, platform: &Platform, mut spec: Value) -> Value {
        let (version, kind) = match self.make.owner {
            Owner::Pool(_) => ("pool.kubevirt.io/v1beta1", "VirtualMachinePool"),
            _ => ("kubevirt.io/v1", "VirtualMachineInstanceReplicaSet"),
        };
        spec["replicas"] = 1.into();
        spec["selector"] = json!({"matchLabels": {"group": self.group}});
        let mut group = object(version, kind, &self.group);
        group["spec"] = spec;
        reference(&platform.apply("installer", &group, "").await)
    }

    fn machine_spec(&self, strategy: &str) -> Value {
        json!({"runStrategy": strategy, "template": self.template()})
    }

    fn template(&self) -> Value {
        json!({"metadata": {"labels": {"group": self.group}}, "spec": self.spec()})
    }

    fn spec(&self) -> Value {
        let devices = match self.make.has_device {
            true => json!({"hostDevices": [{"name": "x", "deviceName": "y"}]}),
            false => json!({}),
        };
        let mut spec = json!({"domain": {"devices": devices, "memory": {"guest": "1Gi"}}});
        if let Some(strategy) = self.make.strategy {
            spec["evictionStrategy"] = strategy.into();
        }
        spec
    }
}

fn object(version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}})
}

fn reference(owner: &Value) -> Value {
    let Value::Object(metadata) = &owner["metadata"] else { panic!("{owner}") };
    json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"],
        "controller": true,
    }])
}
