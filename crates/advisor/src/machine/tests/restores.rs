//! The way back of MachineConfigs that stay: the nodes have to give up what is taken out.

use api::virt_platform_config::{Approval, ItemState, Restore};

use super::*;
use crate::test_cluster::{machine_config, set_by};

const SWAP: &str = "90-worker-kubelet-swap";

/// A plan of the profile was applied and recorded, and the nodes run this config.
fn applied(profile: &str, config: &str, existing: Option<Value>) -> Fixture {
    let mut fixture = Fixture::new(profile, Action::Apply);
    if let Some(existing) = existing {
        fixture.cluster.put(existing);
    }
    let plan = fixture.make_plan().unwrap();
    fixture.cluster.apply_recorded(&plan, 1);
    fixture.roll_out(&[config]);
    fixture
}

/// Asks for the original state, reads the plan and approves it.
fn restore(fixture: &mut Fixture) {
    fixture.edit(|spec| spec.restore = Some(Restore { record: "original".into() })).settle();
    assert_eq!(fixture.phase(), Phase::ReviewRequired);
    let digest = fixture.status.plan_digest.clone();
    fixture.edit(|spec| spec.approval = Some(Approval { plan_digest: digest, ..Approval::default() })).settle();
}

fn item<'a>(fixture: &'a Fixture, config: &str) -> &'a Item {
    fixture.status.items.iter().find(|item| item.target_ref.name == config).unwrap()
}

/// An administrator had a config with an empty list of files and without units. The restore takes the units out of it.
#[test]
fn a_config_that_loses_fields_is_in_effect_when_the_nodes_have_lost_them() {
    let config = json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": []}}});
    let existing = set_by("admin", "Apply", machine_config(SWAP, config));
    let mut fixture = applied(DENSITY, SWAP, Some(existing.clone()));
    restore(&mut fixture);
    let live = fixture.cluster.find(&MACHINE_CONFIG, None, SWAP).unwrap();
    assert_eq!(live["spec"], existing["spec"], "it is as it was");
    let waiting = item(&fixture, SWAP);
    assert!(!waiting.removes.is_empty(), "fields are taken out: {waiting:?}");
    assert_eq!((fixture.phase(), waiting.state), (Phase::InProgress, ItemState::InProgress), "the nodes run swap");

    fixture.roll_out(&[SWAP]).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "{:?}", item(&fixture, SWAP));
}

/// The operator created the config, and somebody added to it. What is left of it has no role, so no pool takes it any more.
#[test]
fn a_config_that_loses_its_role_is_in_effect_when_its_pools_have_dropped_it() {
    let mut fixture = applied(LOAD_AWARE, PSI, None);
    let mut live = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap().clone();
    live["spec"]["extensions"] = json!(["usbguard"]);
    let managers = live["metadata"]["managedFields"].as_array_mut().unwrap();
    managers.push(json!({
        "manager": "kubectl-edit", "operation": "Update", "apiVersion": "machineconfiguration.openshift.io/v1",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:extensions": {}}},
    }));
    fixture.cluster.put(live);
    fixture.roll_out(&[PSI]);
    restore(&mut fixture);
    let left = fixture.cluster.find(&MACHINE_CONFIG, None, PSI).unwrap();
    assert_eq!(left["spec"], json!({"extensions": ["usbguard"]}), "what somebody added stays");
    assert!(left.pointer("/metadata/labels").is_none(), "{left}");
    assert_eq!(fixture.phase(), Phase::InProgress);
    let [pool] = &item(&fixture, PSI).rollout[..] else { panic!("{:?}", item(&fixture, PSI)) };
    assert_eq!((pool.pool.as_str(), pool.state.as_str()), ("worker", "Pending"), "the nodes still run it");

    fixture.roll_out(&[]).settle();
    assert_eq!(fixture.phase(), Phase::Completed, "{:?}", item(&fixture, PSI));
}
