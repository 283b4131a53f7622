//! The MachineConfig for swap: what is in it, and how it goes away again.

use base64::{Engine, prelude::BASE64_STANDARD};
use sha2::{Digest, Sha256};

use super::*;

/// As the appendix of the workflow guide shows them.
const SCRIPT: &str = "IyEvdXNyL2Jpbi9lbnYgYmFzaApzZXQgLWV1byBwaXBlZmFpbAoKUEFSVExBQkVMPSJDTlZfU1dBUCIKREVWSUNFPSIvZGV2L2Rp\
     c2svYnktcGFydGxhYmVsLyR7UEFSVExBQkVMfSIKCmlmIFtbICEgLWUgIiRERVZJQ0UiIF1dOyB0aGVuCiAgZWNobyAiU3dhcCBw\
     YXJ0aXRpb24gd2l0aCBQQVJUTEFCRUw9JHtQQVJUTEFCRUx9IG5vdCBmb3VuZCIgPiYyCiAgZXhpdCAxCmZpCgppZiBzd2Fwb24g\
     LS1zaG93PU5BTUUgfCBncmVwIC1xICIkREVWSUNFIjsgdGhlbgogIGVjaG8gIlN3YXAgYWxyZWFkeSBlbmFibGVkIG9uICRERVZJ\
     Q0UiID4mMgogIGV4aXQgMQpmaQoKZWNobyAiRW5hYmxpbmcgc3dhcCBvbiAkREVWSUNFIiA+JjIKc3dhcG9uICIkREVWSUNFIgp0\
     b3VjaCAvdmFyL3RtcC9zd2FwZmlsZQ==";
const KUBELET: &str = "YXBpVmVyc2lvbjoga3ViZWxldC5jb25maWcuazhzLmlvL3YxYmV0YTEKa2luZDogS3ViZWxldENvbmZpZ3VyYXRpb24KbWVtb3J5\
     U3dhcDoKICBzd2FwQmVoYXZpb3I6IExpbWl0ZWRTd2FwCg==";

fn swap_intent(world: &World) -> Intent {
    world.draft(NAME, json!({})).intents.swap_remove(0)
}

fn config() -> Value {
    fields(&swap_intent(&installed()))["spec"]["config"].clone()
}

#[test]
fn the_item_is_the_one_of_the_guide() {
    let intent = swap_intent(&installed());
    assert_eq!(intent.message, "MachineConfig '90-worker-kubelet-swap' will be configured to enable kubelet swap");
    assert_eq!(intent.managed, ["spec.config"]);
    assert_eq!(intent.inputs, []);
    let object = fields(&intent);
    assert_eq!(object["metadata"], json!({"labels": {world::ROLE: "worker"}, "name": SWAP}));
    assert_eq!(object["apiVersion"], "machineconfiguration.openshift.io/v1");
    assert_eq!(object["kind"], "MachineConfig");
    assert_eq!(object["spec"].as_object().unwrap().keys().collect::<Vec<_>>(), ["config"]);
}

#[test]
fn script_and_kubelet_settings_are_those_of_the_guide_byte_for_byte() {
    let config = config();
    assert_eq!(config["ignition"], json!({"version": "3.2.0"}));
    let file = |path: &str, mode: u32, payload: &str| {
        let source = format!("data:text/plain;charset=utf-8;base64,{payload}");
        json!({"contents": {"source": source}, "mode": mode, "overwrite": true, "path": path})
    };
    let expected = json!([
        file("/etc/find-swap-partition", 493, SCRIPT),
        file("/etc/openshift/kubelet.conf.d/90-swap.conf", 420, KUBELET),
    ]);
    assert_eq!(config["storage"], json!({"files": expected}));

    let hashes = [
        (SCRIPT, 397, "4ac10a4f33061e4c9bfac70c723eb06623387f00dedde68148c99cbcecc6fc71"),
        (KUBELET, 109, "49006cc873a6c153c9006a81ef0edf89faf26c3129b760e42e8ae44d3a487cbc"),
    ];
    for (payload, length, expected) in hashes {
        let bytes = BASE64_STANDARD.decode(payload).unwrap();
        let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((bytes.len(), hash.as_str()), (length, expected));
    }
}

/// The settings of a systemd unit, as `(section, key, value)`.
fn settings(unit: &Value) -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in unit["contents"].as_str().unwrap().lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else if let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) {
            found.push((section.clone(), key.to_owned(), value.to_owned()));
        }
    }
    found
}

#[test]
fn both_units_are_enabled_and_run_before_the_kubelet() {
    let config = config();
    let units = config["systemd"]["units"].as_array().unwrap();
    let names: Vec<_> = units.iter().map(|unit| (unit["name"].as_str().unwrap(), unit["enabled"] == true)).collect();
    assert_eq!(names, [("swap-provision.service", true), ("cgroup-system-slice-config.service", true)]);
    for unit in units {
        let settings = settings(unit);
        let has = |section: &str, key: &str, value: &str| {
            settings.contains(&(section.to_owned(), key.to_owned(), value.to_owned()))
        };
        assert!(has("Service", "Type", "oneshot"), "{unit}");
        assert!(has("Unit", "Before", "kubelet-dependencies.target"), "{unit}");
        assert!(has("Install", "WantedBy", "kubelet-dependencies.target"), "{unit}");
    }
    let runs = |unit: &Value| settings(unit).into_iter().find(|(_, key, _)| key == "ExecStart").unwrap().2;
    assert_eq!(runs(&units[0]), "/etc/find-swap-partition");
    let restricts = runs(&units[1]);
    for part in ["systemctl set-property --runtime system.slice", "MemorySwapMax=0", "IODeviceLatencyTargetSec=/ 50ms"]
    {
        assert!(restricts.contains(part), "{restricts}");
    }
}

/// W15: nothing that the kubelet needs depends on it.
#[test]
fn a_node_without_the_partition_still_starts_its_kubelet() {
    for unit in config()["systemd"]["units"].as_array().unwrap() {
        for (_, key, value) in settings(unit) {
            let harsh = ["RequiredBy", "Requires", "Requisite", "BindsTo", "OnFailure", "UpheldBy"];
            assert!(!harsh.contains(&key.as_str()), "{key}={value}");
        }
    }
}

/// W15: the second reboot is like the first.
#[test]
fn swap_comes_back_after_every_reboot() {
    let config = config();
    let units = config["systemd"]["units"].as_array().unwrap();
    for (_, key, value) in units.iter().flat_map(settings) {
        assert!(!key.starts_with("Condition") && !key.starts_with("Assert"), "nothing may skip a boot: {key}={value}");
        assert!(!value.contains("/var/tmp/swapfile"), "the mark of an earlier boot decides nothing: {key}={value}");
    }
}

/// Ours, but for the kernel.
fn shared() -> Value {
    let mut object = ours(machine_config(SWAP, json!({"config": {"ignition": {"version": "3.2.0"}}})));
    object["spec"]["kernelType"] = "realtime".into();
    let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:kernelType": {}}}});
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    object
}

fn label_only() -> Value {
    let mut object =
        set_by("argocd", "Apply", machine_config(SWAP, json!({"config": {"ignition": {"version": "3.2.0"}}})));
    let labels = json!({"f:metadata": {"f:labels": {(format!("f:{}", world::ROLE)): {}}}});
    let entry = json!({"manager": "virt-advisor-operator", "operation": "Apply", "fieldsV1": labels});
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    object
}

/// W14, D3: with a note for what stays.
#[test]
fn turned_off_what_is_ours_goes_and_what_is_not_stays() {
    let live = || machine_config(SWAP, json!({"config": {"ignition": {"version": "3.2.0"}}}));
    let deleted = "MachineConfig '90-worker-kubelet-swap' will be deleted to disable kubelet swap";
    let taken_out =
        "Swap will be taken out of MachineConfig '90-worker-kubelet-swap', which kubectl-edit also configures";
    let note =
        |owner: &str| format!("MachineConfig '{SWAP}' belongs to {owner} and is left alone: swap stays as it is");
    let cases = [
        ("nothing there", None, None, None),
        ("ours", Some(ours(live())), Some((deleted, true)), None),
        ("shared", Some(shared()), Some((taken_out, false)), None),
        (
            "shared, and nothing in it ours alone",
            Some(set_by("kubectl-edit", "Update", ours(live()))),
            None,
            Some(note("kubectl-edit")),
        ),
        ("somebody's", Some(set_by("argocd", "Apply", live())), None, Some(note("argocd"))),
        ("ours is a label at most", Some(label_only()), None, Some(note("argocd"))),
        ("nobody's", Some(live()), None, Some(note("somebody else"))),
    ];
    for (case, object, expected, noted) in cases {
        let world = object.into_iter().fold(installed(), World::with);
        let draft = world.draft(NAME, no_swap());
        assert_eq!(draft.notes, noted.into_iter().collect::<Vec<_>>(), "{case}");
        let (swap, density) = draft.intents.split_at(draft.intents.len() - 1);
        assert_eq!(density[0].name, "configure-higher-density", "{case}");
        let found = swap.first().map(|intent| {
            assert_eq!((intent.name, &intent.managed[..]), ("enable-kubelet-swap", &["spec.config"][..]), "{case}");
            (intent.message.as_str(), intent.change == Change::Delete)
        });
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn of_a_config_with_several_owners_only_our_fields_are_taken_back() {
    let mut world = installed();
    world.apply(NAME, json!({}));
    let mut live = world.find(&MACHINE_CONFIG, None, SWAP).unwrap().clone();
    live["spec"]["kernelType"] = "realtime".into();
    let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:kernelType": {}}}});
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    world.put(live);

    let plan = world.plan(NAME, no_swap());
    assert_eq!(plan.items[0].verb, Verb::Configured);
    assert_eq!(plan.items[0].item.impact_severity, Some(Severity::High));
    assert!(
        plan.items[0].readable_diff.contains("\n-            swapon \"$DEVICE\"\n"),
        "{}",
        plan.items[0].readable_diff
    );
    world.apply(NAME, no_swap());
    let after = world.find(&MACHINE_CONFIG, None, SWAP).unwrap();
    assert_eq!(after["spec"]["kernelType"], "realtime");
    assert_eq!(after.pointer("/spec/config/storage/files"), None);
    assert!(!world.plan(NAME, no_swap()).has_changes());
}

#[test]
fn without_machine_configs_there_is_nothing_to_turn_off() {
    let draft = installed().without(&MACHINE_CONFIG).draft(NAME, no_swap());
    assert_eq!((draft.intents.len(), draft.notes.len()), (1, 0));
}
