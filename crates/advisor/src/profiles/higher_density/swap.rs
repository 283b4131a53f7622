//! Swap for worker nodes: a MachineConfig with the script that turns swap on, the kubelet's settings, and two units.

use api::virt_platform_config::Risk;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::profile::ABOUT;
use crate::{
    Access, Change, Draft, Facts, Intent, ObjectRef, Query, Requirement,
    autopilot::Asset,
    field_manager,
    intent::{Weight, risk},
    kind,
    kubelet::{self, DROP_INS, SwapSupport, swap_support},
    machine_config::{self, of_workers, worker_labels},
    ownership::{Ownership, names, ownership, owns_alone},
    pools::{self, no_machine_reached},
};

const NAME: &str = "90-worker-kubelet-swap";
const MANAGED: &str = "spec.config";
const WHY: &str = "swap lets nodes hold more virtual machines than fit into memory at once";
const WHY_NOT: &str = "the options turn swap off";

const ADVICE: &str = "Upgrade to OpenShift 4.21 or newer, or allow swap by a KubeletConfig (failSwapOn: false and \
                      memorySwap.swapBehavior: LimitedSwap) and let the pool roll it out; or set enableSwap: false";

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
        Access::ReadAny(&kind::MACHINE_CONFIG),
        Access::Get(kubelet::cluster_version()),
    ]
}

pub(super) fn wants(enabled: bool, facts: &Facts) -> Vec<Query> {
    let mut queries = vec![Query::Object(target())];
    // Pools are also needed to follow a removal.
    if enabled || facts.version(&kind::MACHINE_CONFIG).is_some() {
        queries.push(pools::all());
    }
    if enabled {
        let reached = pools::reached(facts, &worker_labels());
        queries.extend(kubelet::wants(&reached, facts));
        queries.extend(Asset::swap().wants(facts, &reached));
    }
    if enabled || facts.object(&target()).is_some() {
        queries.push(Query::Object(machine_config::policy()));
    }
    queries
}

/// Pools whose nodes would be lost, or reboot without benefit.
pub(super) fn requirements(facts: &Facts) -> Vec<Requirement> {
    let is_there = facts.object(&target()).is_some();
    let unmet = |pool: &pools::Pool<'_>| {
        let SwapSupport::Refused(why) = swap_support(*pool, facts) else { return None };
        let now = match is_there {
            false => String::new(),
            true => format!(
                " MachineConfig '{NAME}' is there already: a node with a partition labeled CNV_SWAP may not come back from its \
                 next reboot. Take it out at once: set enableSwap: false and apply that plan."
            ),
        };
        Some(Requirement::Unmet(format!(
            "A kubelet that accepts swap, in MachineConfigPool '{}': {why}.{now} {ADVICE}",
            pool.name()
        )))
    };
    pools::reached(facts, &worker_labels()).iter().filter_map(unmet).collect()
}

/// Pools for which it is not known.
fn risks(facts: &Facts) -> Vec<Risk> {
    let reached = pools::reached(facts, &worker_labels());
    let unknown = reached.iter().filter_map(|pool| {
        let SwapSupport::Unknown(why) = swap_support(*pool, facts) else { return None };
        let pool = pool.name();
        Some(risk(
            "SwapSupportUnknown",
            format!("MachineConfigPool '{pool}': {why}. A kubelet that does not accept swap does not start, and its node is lost. {ADVICE}"),
        ))
    });
    unknown.chain(no_machine_reached(NAME, facts, &reached)).collect()
}

pub(super) fn plan(enabled: bool, facts: &Facts) -> Draft {
    let intent = |change, message| Intent {
        name: "enable-kubelet-swap".into(),
        target: target(),
        version: facts.version(&kind::MACHINE_CONFIG).unwrap_or("v1"),
        change,
        managed: vec![MANAGED.into()],
        message,
        why: if enabled { WHY } else { WHY_NOT },
        inputs: Vec::new(),
        weight: Weight::Nodes,
        restores: None,
    };
    if enabled {
        let message = format!("MachineConfig '{NAME}' will be configured to enable kubelet swap");
        let change = Change::Apply { fields: of_workers(NAME, Some(json!({"config": config()}))), remove: Vec::new() };
        return Draft { intents: vec![intent(change, message)], risks: risks(facts), ..Draft::default() };
    }
    let Some(live) = facts.object(&target()) else { return Draft::default() };
    let us = field_manager::of_profile(&ABOUT, Some(live), &[MANAGED]);
    match ownership(live, &us) {
        Ownership::Ours => {
            let message = format!("MachineConfig '{NAME}' will be deleted to disable kubelet swap");
            Draft { intents: vec![intent(Change::Delete, message)], ..Draft::default() }
        }
        Ownership::Shared { with } if owns_alone(live, &us, MANAGED) => {
            // An apply without these fields removes them, unless somebody else has set them too.
            let change = Change::Apply { fields: of_workers(NAME, None), remove: Vec::new() };
            let others = with.join(", ");
            let message = format!("Swap will be taken out of MachineConfig '{NAME}', which {others} also configures");
            Draft { intents: vec![intent(change, message)], ..Draft::default() }
        }
        Ownership::Shared { with: owners } | Ownership::Foreign { of: owners } => {
            let owners = names(&owners);
            Draft::note(format!("MachineConfig '{NAME}' belongs to {owners} and is left alone: swap stays as it is"))
        }
    }
}

/// The Ignition config.
fn config() -> Value {
    json!({
        "ignition": {"version": "3.2.0"},
        "storage": {"files": [
            file("/etc/find-swap-partition", 0o755, SCRIPT),
            file(&format!("{DROP_INS}/90-swap.conf"), 0o644, KUBELET),
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
