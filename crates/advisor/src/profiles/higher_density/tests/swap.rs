//! The MachineConfig for swap: what is in it, and how it goes away again.

use base64::{Engine, prelude::BASE64_STANDARD};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use super::*;

/// As the appendix of the workflow guide shows it.
const KUBELET: &str = "YXBpVmVyc2lvbjoga3ViZWxldC5jb25maWcuazhzLmlvL3YxYmV0YTEKa2luZDogS3ViZWxldENvbmZpZ3VyYXRpb24KbWVtb3J5\
     U3dhcDoKICBzd2FwQmVoYXZpb3I6IExpbWl0ZWRTd2FwCg==";

fn swap_intent(cluster: &TestCluster) -> Intent {
    cluster.draft(NAME, json!({})).intents.swap_remove(0)
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
    assert_eq!(object["metadata"], json!({"labels": {test_cluster::ROLE: "worker"}, "name": SWAP}));
    assert_eq!(object["apiVersion"], "machineconfiguration.openshift.io/v1");
    assert_eq!(object["kind"], "MachineConfig");
    assert_eq!(object["spec"].as_object().unwrap().keys().collect::<Vec<_>>(), ["config"]);
}

#[test]
fn the_kubelet_settings_are_those_of_the_guide_byte_for_byte() {
    let config = config();
    assert_eq!(config["ignition"], json!({"version": "3.2.0"}));
    let file = |path: &str, mode: u32, payload: &str| {
        let source = format!("data:text/plain;charset=utf-8;base64,{payload}");
        json!({"contents": {"source": source}, "mode": mode, "overwrite": true, "path": path})
    };
    let script = BASE64_STANDARD.encode(include_str!("../payload/find-swap-partition"));
    let expected = json!([
        file("/etc/find-swap-partition", 493, &script),
        file("/etc/openshift/kubelet.conf.d/90-swap.conf", 420, KUBELET),
    ]);
    assert_eq!(config["storage"], json!({"files": expected}));
    let bytes = BASE64_STANDARD.decode(KUBELET).unwrap();
    let hash = HEXLOWER.encode(&Sha256::digest(&bytes));
    assert_eq!((bytes.len(), hash.as_str()), (109, "49006cc873a6c153c9006a81ef0edf89faf26c3129b760e42e8ae44d3a487cbc"));
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

/// W15 (swap script): nothing that the kubelet needs depends on it.
#[test]
fn a_node_without_the_partition_still_starts_its_kubelet() {
    for unit in config()["systemd"]["units"].as_array().unwrap() {
        for (_, key, value) in settings(unit) {
            let harsh = ["RequiredBy", "Requires", "Requisite", "BindsTo", "OnFailure", "UpheldBy"];
            assert!(!harsh.contains(&key.as_str()), "{key}={value}");
        }
    }
}

/// W15 (swap script): the second reboot is like the first.
#[test]
fn swap_comes_back_after_every_reboot() {
    let config = config();
    let units = config["systemd"]["units"].as_array().unwrap();
    for (_, key, value) in units.iter().flat_map(settings) {
        // What is written together with the unit is there at every boot.
        let is_there = key == "ConditionPathExists" && value == "/etc/find-swap-partition";
        let skips = key.starts_with("Condition") || key.starts_with("Assert");
        assert!(!skips || is_there, "nothing may skip a boot: {key}={value}");
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
    let labels = json!({"f:metadata": {"f:labels": {(format!("f:{}", test_cluster::ROLE)): {}}}});
    let entry = json!({"manager": "virt-advisor-operator", "operation": "Apply", "fieldsV1": labels});
    object["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    object
}

/// W14 (leftover MachineConfig), D3 (swap removal): with a note for what stays.
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
        let cluster = object.into_iter().fold(installed(), TestCluster::with);
        let draft = cluster.draft(NAME, no_swap());
        assert_eq!(draft.notes, noted.into_iter().collect::<Vec<_>>(), "{case}");
        let (swap, density) = draft.intents.split_at(draft.intents.len() - 1);
        assert_eq!(density[0].name, "configure-higher-density", "{case}");
        let found = swap.first().map(|intent| {
            assert_eq!(
                (intent.name.as_ref(), intent.managed.concat().as_str()),
                ("enable-kubelet-swap", "spec.config"),
                "{case}"
            );
            (intent.message.as_str(), intent.change == Change::Delete)
        });
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn of_a_config_with_several_owners_only_our_fields_are_taken_back() {
    let mut cluster = installed();
    cluster.apply(NAME, json!({}));
    let mut live = cluster.find(&MACHINE_CONFIG, None, SWAP).unwrap().clone();
    live["spec"]["kernelType"] = "realtime".into();
    let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:kernelType": {}}}});
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(entry);
    cluster.put(live);

    let plan = cluster.plan(NAME, no_swap());
    assert_eq!(plan.items[0].verb, Verb::Configured);
    assert_eq!(plan.items[0].item.impact_severity, Some(Severity::High));
    assert!(
        plan.items[0].readable_diff.contains("\n-            swapon \"$DEVICE\"\n"),
        "{}",
        plan.items[0].readable_diff
    );
    cluster.apply(NAME, no_swap());
    let after = cluster.find(&MACHINE_CONFIG, None, SWAP).unwrap();
    assert_eq!(after["spec"]["kernelType"], "realtime");
    assert_eq!(after.pointer("/spec/config/storage/files"), None);
    assert!(!cluster.plan(NAME, no_swap()).has_changes());
}

#[test]
fn without_machine_configs_there_is_nothing_to_turn_off() {
    let draft = installed().without(&MACHINE_CONFIG).draft(NAME, no_swap());
    assert_eq!((draft.intents.len(), draft.notes.len()), (1, 0));
}

// --- which nodes survive it ---

fn refusal(cluster: &TestCluster, options: Value) -> Option<String> {
    let planner = planner(NAME, options);
    let facts = cluster.facts(planner.as_ref());
    missing(&planner.requirements(&facts), &facts)
}

/// Real operators, first in rank: swap stops the kubelet on OpenShift 4.20 and older.
#[test]
fn swap_is_planned_only_where_every_kubelet_it_reaches_accepts_it() {
    let old = || machine_config("rendered-worker", test_cluster::rendered_kubelet(false));
    assert_eq!(refusal(&installed(), json!({})), None, "4.21");
    let told = refusal(&installed().with(old()), json!({})).unwrap();
    for part in ["MachineConfigPool 'worker'", "failSwapOn", "Upgrade to OpenShift 4.21", "enableSwap: false"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(!told.contains("is there already"), "{told}");
    assert_eq!(refusal(&installed().with(old()), no_swap()), None, "without swap nothing is asked of a kubelet");

    let gpu = test_cluster::pool("gpu", &["worker", "gpu"], 1);
    let mixed = installed().with(gpu).with(machine_config("rendered-gpu", test_cluster::rendered_kubelet(false)));
    assert!(refusal(&mixed, json!({})).unwrap().contains("MachineConfigPool 'gpu'"), "one pool is enough");

    let applied = installed().with(old()).with(ours(machine_config(SWAP, json!({"config": {}}))));
    let told = refusal(&applied, json!({})).unwrap();
    assert!(told.contains("is there already") && told.contains("Take it out at once"), "{told}");
}

#[test]
fn where_nobody_can_tell_the_plan_names_the_risk() {
    let unknown = || installed().with(machine_config("rendered-worker", json!({})));
    let risks = |cluster: &TestCluster| cluster.draft(NAME, json!({})).risks;
    assert_eq!(risks(&installed()), []);
    assert_eq!(refusal(&unknown(), json!({})), None);
    assert_eq!(risks(&unknown())[0].name, "SwapSupportUnknown");
    let version = |version: &str| json!({"kind": "ClusterVersion", "metadata": {"name": "version"}, "status": {"history": [{"state": "Completed", "version": version}]}});
    assert_eq!(risks(&unknown().with(version("4.21.3"))), [], "the version tells");
    assert!(refusal(&unknown().with(version("4.20.3")), json!({})).unwrap().contains("OpenShift 4.20.3"));
    let digest = |cluster: &TestCluster| cluster.plan(NAME, json!({})).digest;
    assert_ne!(digest(&installed()), digest(&unknown()), "whoever approved it has not read of the risk");
}

// --- what it does on a node ---

/// A node made of files: a link to a partition, the kernel's list of swaps, and the two programs that change it.
struct Node(std::path::PathBuf);

impl Node {
    fn new(name: &str) -> Node {
        let root = std::env::temp_dir().join(format!("virt-advisor-swap-{name}-{}", std::process::id()));
        let node = Node(root);
        std::fs::create_dir_all(node.path("bin")).unwrap();
        node.write("swaps", "Filename\tType\tSize\n/dev/zram0 partition 1\n");
        let list = node.path("swaps").display().to_string();
        // Like the real ones: turning on what is on, or off what is off, is an error.
        let device = "device=$(readlink -f \"$1\")";
        node.program(
            "swapon",
            &format!("{device}; grep -q \"^$device \" {list} && exit 255; echo \"$device partition 1\" >> {list}"),
        );
        node.program(
            "swapoff",
            &format!("{device}; grep -q \"^$device \" {list} || exit 255; grep -v \"^$device \" {list} > {list}.new; mv {list}.new {list}"),
        );
        node
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn program(&self, name: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/usr/bin/env bash\n{body}\n")).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn with_partition(self) -> Node {
        self.write("sda4", "");
        std::os::unix::fs::symlink(self.path("sda4"), self.path("CNV_SWAP")).unwrap();
        self
    }

    /// Runs a command of the payload with this node's files in the place of the real ones. Whether it succeeded.
    fn run(&self, command: &str) -> bool {
        let here = |text: &str| text.replace("/dev/disk/by-partlabel", &self.0.display().to_string());
        let command = here(command).replace("/proc/swaps", &self.path("swaps").display().to_string());
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        let status = std::process::Command::new("bash").arg("-c").arg(command).env("PATH", path).status().unwrap();
        status.success()
    }

    fn has_swap(&self) -> bool {
        std::fs::read_to_string(self.path("swaps")).unwrap().contains("sda4")
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What systemd runs to start and to stop the unit.
fn start_and_stop() -> (&'static str, String) {
    let config = config();
    let unit = &config["systemd"]["units"][0];
    let stop = settings(unit).into_iter().find(|(_, key, _)| key == "ExecStop").unwrap().2;
    (include_str!("../payload/find-swap-partition"), stop.replace("$$", "$"))
}

/// Real operators, sixth in rank: a unit that cannot run twice fails a rollout that restarts it.
#[test]
fn the_unit_starts_and_stops_any_number_of_times_and_stopping_undoes_starting() {
    let (start, stop) = start_and_stop();
    let node = Node::new("with").with_partition();
    let before = std::fs::read_to_string(node.path("swaps")).unwrap();
    for round in 0..2 {
        for again in 0..2 {
            assert!(node.run(start) && node.has_swap(), "start {again} of round {round}");
        }
        for again in 0..2 {
            assert!(node.run(&stop) && !node.has_swap(), "stop {again} of round {round}");
        }
        assert_eq!(std::fs::read_to_string(node.path("swaps")).unwrap(), before, "and nothing else was touched");
    }
}

#[test]
fn a_node_without_the_partition_takes_the_unit_without_an_error() {
    let (start, stop) = start_and_stop();
    let node = Node::new("without");
    for command in [start, &stop, start, &stop] {
        assert!(node.run(command) && !node.has_swap());
    }
}

#[test]
fn stopping_does_not_need_the_script_which_is_removed_before_the_unit() {
    let config = config();
    let settings = settings(&config["systemd"]["units"][0]);
    let value = |wanted: &str| settings.iter().find(|(_, key, _)| key == wanted).unwrap().2.clone();
    assert!(!value("ExecStop").contains("find-swap-partition"));
    assert_eq!(value("ConditionPathExists"), value("ExecStart"), "started again without it, there is nothing to do");
}
