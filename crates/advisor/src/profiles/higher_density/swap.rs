//! Swap for worker nodes: a MachineConfig with the script that turns it on, the kubelet's settings, and two units.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::{
    Access, Change, Draft, Facts, Intent, ObjectRef, Query,
    intent::Weight,
    kind, machine_config,
    ownership::{Ownership, names, ownership, owns_alone},
    pools,
};

const NAME: &str = "90-worker-kubelet-swap";
const MANAGED: &str = "spec.config";
const WHY: &str = "swap lets nodes hold more virtual machines than fit into memory at once";
const WHY_NOT: &str = "the options turn swap off";

const SCRIPT: &str = include_str!("payload/find-swap-partition");
const KUBELET: &str = include_str!("payload/90-swap.conf");
const PROVISION_UNIT: &str = include_str!("payload/swap-provision.service");
const SLICE_UNIT: &str = include_str!("payload/cgroup-system-slice-config.service");

fn target() -> ObjectRef {
    ObjectRef::cluster(&kind::MACHINE_CONFIG, NAME)
}

pub(super) fn access() -> Vec<Access> {
    vec![
        Access::Create(target()),
        Access::Delete(target()),
        Access::List(&kind::MACHINE_CONFIG_POOL),
        Access::Read(machine_config::policy()),
    ]
}

pub(super) fn wants(enabled: bool, facts: &Facts) -> Vec<Query> {
    let mut queries = vec![Query::Object(target())];
    // Also to follow a removal, when there is nothing left but the pools to tell how far it is.
    if enabled || facts.version(&kind::MACHINE_CONFIG).is_some() {
        queries.push(pools::all());
    }
    if enabled || facts.object(&target()).is_some() {
        queries.push(Query::Object(machine_config::policy()));
    }
    queries
}

pub(super) fn plan(enabled: bool, facts: &Facts) -> Draft {
    let intent = |change, message| Intent {
        name: "enable-kubelet-swap",
        target: target(),
        version: facts.version(&kind::MACHINE_CONFIG).unwrap_or("v1"),
        change,
        managed: vec![MANAGED],
        message,
        why: if enabled { WHY } else { WHY_NOT },
        inputs: Vec::new(),
        weight: Weight::Nodes,
    };
    if enabled {
        let message = format!("MachineConfig '{NAME}' will be configured to enable kubelet swap");
        let change = Change::Apply { fields: object(Some(config())), remove: Vec::new() };
        return Draft { intents: vec![intent(change, message)], notes: Vec::new() };
    }
    let Some(live) = facts.object(&target()) else { return Draft::default() };
    match ownership(live) {
        Ownership::Ours => {
            let message = format!("MachineConfig '{NAME}' will be deleted to disable kubelet swap");
            Draft { intents: vec![intent(Change::Delete, message)], notes: Vec::new() }
        }
        Ownership::Shared { with } if owns_alone(live, MANAGED) => {
            // An apply that leaves our fields out removes those that nobody else has set too.
            let change = Change::Apply { fields: object(None), remove: Vec::new() };
            let others = with.join(", ");
            let message = format!("Swap will be taken out of MachineConfig '{NAME}', which {others} also configures");
            Draft { intents: vec![intent(change, message)], notes: Vec::new() }
        }
        Ownership::Shared { with: owners } | Ownership::Foreign { of: owners } => {
            let owners = names(&owners);
            Draft::note(format!("MachineConfig '{NAME}' belongs to {owners} and is left alone: swap stays as it is"))
        }
    }
}

fn object(config: Option<Value>) -> Value {
    let mut object = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}, "name": NAME},
    });
    if let Some(config) = config {
        object["spec"] = json!({"config": config});
    }
    object
}

/// The Ignition config.
fn config() -> Value {
    json!({
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [
            file("/etc/find-swap-partition", 0o755, SCRIPT),
            file("/etc/openshift/kubelet.conf.d/90-swap.conf", 0o644, KUBELET),
        ]},
        "systemd": {"units": [
            {"contents": PROVISION_UNIT, "enabled": true, "name": "swap-provision.service"},
            {"contents": SLICE_UNIT, "enabled": true, "name": "cgroup-system-slice-config.service"},
        ]},
    })
}

fn file(path: &str, mode: u32, text: &str) -> Value {
    let source = format!("data:text/plain;charset=utf-8;base64,{}", BASE64_STANDARD.encode(text));
    json!({"contents": {"source": source}, "mode": mode, "overwrite": true, "path": path})
}
