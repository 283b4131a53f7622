//! A VM from its creation to its deletion.

use api::virtual_machine::Phase;
use kube::core::DynamicObject;
use serde_json::json;

use super::fixture::{Fixture, NOTHING, at, launcher_pod, spec, target, vm};
use crate::{
    launcher,
    vm::{LauncherPod, MigrationSource, Request, Step, Vm, VmControllerSettings, pod},
};

#[test]
fn a_new_vm_gets_a_pod_and_its_status_follows_it() {
    let mut fixture = Fixture::new(json!({}), vec![]);
    assert_eq!(fixture.play(), ["status Pending -", "create new0", "status Scheduling new0"]);
    fixture.pod("new0").node = Some("n1".into());
    assert_eq!(fixture.play(), ["status Scheduled new0", "label n1"]);
    fixture.pod("new0").is_running = true;
    assert_eq!(fixture.play(), ["status Running new0"]);
    let status = fixture.status();
    assert_eq!((status.node_name.as_deref(), status.phase), (Some("n1"), Some(Phase::Running)));
    assert_eq!((status.allocated_cpu.as_deref(), status.cpu_utilization.as_deref()), (Some("2"), Some("0.5")));
    assert!(status.created_at.is_some());
    assert_eq!(fixture.decide(), NOTHING, "and then nothing is to be done");
}

#[test]
fn the_pod_is_as_the_descheduler_and_the_exporter_expect_it() {
    let vm = vm(spec(), json!({}));
    let source = MigrationSource { node: "n1".to_owned(), pod: "p1".to_owned() };
    let pod = pod::pod(&vm, vm.spec.as_ref().unwrap(), Some(&source), "abcde").unwrap();
    let pod = serde_json::to_value(pod).unwrap();
    assert_eq!(pod["metadata"]["name"], "virt-launcher-a-abcde");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({"kubevirt.io/domain": "a", "vm.kubevirt.io/name": "a", "app": "virt-launcher"})
    );
    assert_eq!(pod["metadata"]["finalizers"], json!(["kubevirt.io/migration-protection"]));
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "vm-uid");
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(annotations["descheduler.alpha.kubernetes.io/request-evict-only"], "true");
    assert_eq!(annotations["simulation.node-classifier.io/vm-memory-bytes"], "4294967296");
    assert_eq!(annotations["simulation.node-classifier.io/vm-cpu-cores"], "2");
    let requests = &pod["spec"]["containers"][0]["resources"];
    assert_eq!(*requests, json!({"requests": {"cpu": "200m", "memory": "4096Mi"}}));
    let affinity = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let expression = &affinity["nodeSelectorTerms"][0]["matchExpressions"][0];
    assert_eq!(*expression, json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["n1"]}));
}

#[test]
fn a_change_of_utilization_reaches_the_pod_and_the_status() {
    let mut fixture = Fixture::settled();
    let status = fixture.status().clone();
    let changed = json!({"resources": {"cpu": "2", "memory": "4Gi"}, "utilization": {"cpu": "0.9", "memory": "0.5"}});
    let label = fixture.vm.as_ref().unwrap().label.clone();
    fixture.vm = Some(Vm { status, label, ..vm(changed, json!({})) });
    assert_eq!(fixture.play(), ["status Running p1", "annotate p1"]);
    assert_eq!(fixture.pod("p1").annotations[launcher::CPU_UTILIZATION], "0.9");
    assert_eq!(fixture.status().cpu_utilization.as_deref(), Some("0.9"));
}

#[test]
fn a_change_of_size_counts_from_the_next_pod_on() {
    let mut fixture = Fixture::settled();
    let (status, label) = (fixture.status().clone(), fixture.vm.as_ref().unwrap().label.clone());
    let larger = json!({"resources": {"cpu": "8", "memory": "4Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}});
    fixture.vm = Some(Vm { status, label, ..vm(larger, json!({})) });
    assert_eq!(fixture.decide(), NOTHING);
    assert_eq!(fixture.status().allocated_cpu.as_deref(), Some("2"));
}

/// Holds L22 (ignored spec.running) and L24 (stale node and label).
#[test]
fn a_vm_is_stopped_and_started() {
    let mut fixture = Fixture::evicted();
    fixture.vm.as_mut().unwrap().spec.as_mut().unwrap().running = false;
    let done = fixture.play();
    assert_eq!(done, ["remove p1", "remove new1", "status Stopped -", "label -"]);
    assert_eq!(fixture.status().evacuation_node_name, None);
    fixture.vm.as_mut().unwrap().spec.as_mut().unwrap().running = true;
    assert_eq!(fixture.play(), ["status Pending -", "create new0", "status Scheduling new0"]);
}

/// Holds L20 (undeletable pod).
#[test]
fn pods_of_a_vm_that_is_gone_or_being_deleted_are_removed() {
    for vm in [None, Some(Vm { is_deleted: true, ..vm(spec(), json!({})) })] {
        let mut fixture = Fixture::new(json!({}), vec![launcher_pod("p1", "n1"), target("p2", "n2")]);
        fixture.vm = vm;
        assert_eq!(fixture.play(), ["remove p1", "remove p2"]);
    }
}

#[test]
fn a_pod_that_is_being_deleted_loses_its_finalizer_and_one_without_it_is_left_alone() {
    let mut fixture = Fixture::settled();
    fixture.pod("p1").is_deleted = true;
    let remove = Request::RemovePod { pod: "p1".into(), uid: "p1-uid".into() };
    assert_eq!(fixture.decide(), Step::Send(remove));
    fixture.pod("p1").is_protected = false;
    assert_eq!(fixture.play(), ["status Pending -", "create new1", "status Scheduling new1", "label -"]);
}

#[test]
fn a_pod_of_an_earlier_vm_of_the_same_name_is_removed() {
    let mut fixture =
        Fixture::new(json!({}), vec![LauncherPod { owner: Some("older".into()), ..launcher_pod("p1", "n1") }]);
    assert_eq!(fixture.play(), ["remove p1", "status Pending -", "create new0", "status Scheduling new0"]);
}

/// Holds L25 (second pod stays).
#[test]
fn duplicates_are_removed_and_the_pod_that_the_status_names_stays() {
    let mut fixture = Fixture::settled();
    fixture.pods.insert(0, launcher_pod("older", "n2"));
    assert_eq!(fixture.play(), ["remove older"]);
}

/// Holds L24 (stale node and label).
#[test]
fn a_finished_pod_and_one_on_a_node_that_is_gone_are_replaced() {
    let replaced = ["remove p1", "status Pending -", "create new0", "status Scheduling new0", "label -"];
    let mut finished = Fixture::settled();
    finished.pod("p1").is_finished = true;
    assert_eq!(finished.play(), replaced);
    let mut lost = Fixture::settled();
    lost.gone.push("n1");
    assert_eq!(lost.play(), replaced);
    assert_eq!(lost.status().node_name, None, "the old node is no longer in the status");
}

#[test]
fn a_spec_that_cannot_be_read_fails_the_vm_and_leaves_its_pod() {
    let mut fixture = Fixture::settled();
    let status = fixture.status().clone();
    fixture.vm = Some(Vm { status, ..vm(json!({"resources": {"cpu": "2", "memory": "lots"}}), json!({})) });
    fixture.status_mut().evacuation_node_name = Some("n1".into());
    assert_eq!(fixture.play(), ["status Failed p1"]);
    assert_eq!(fixture.status().evacuation_node_name, None);
    assert_eq!(fixture.pods.len(), 1);
}

/// Holds L23 (growing conditions).
#[test]
fn conditions_are_bounded_and_keep_the_time_of_their_last_change() {
    let old = json!({"type": "PhaseRunning", "status": "True", "reason": "TransitionedToRunning", "message": "",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    let mut fixture = Fixture::new(json!({"conditions": [old]}), vec![launcher_pod("p1", "n1")]);
    fixture.play();
    for second in 1..50 {
        fixture.now = at(second);
        fixture.pod("p1").is_running = second % 2 == 0;
        fixture.play();
        assert!(fixture.status().conditions.len() <= 3, "{:?}", fixture.status().conditions);
    }
    let ready = fixture.status().conditions[0].clone();
    assert_eq!((ready.type_.as_str(), ready.status.as_str(), ready.last_transition_time.0), ("Ready", "False", at(49)));
    fixture.now = at(100);
    assert_eq!(fixture.decide(), NOTHING, "the time alone changes nothing");
}

#[test]
fn a_status_that_cannot_be_read_is_replaced() {
    let mut fixture = Fixture::new(json!({"phase": "Wild", "podName": 5}), vec![launcher_pod("p1", "n1")]);
    assert!(fixture.vm.as_ref().unwrap().unreadable_status.is_some());
    let Step::Send(Request::WriteStatus(status)) = fixture.decide() else { panic!("a status was expected") };
    assert_eq!((status.phase, status.pod_name.as_deref()), (Some(Phase::Running), Some("p1")));
    fixture.vm.as_mut().unwrap().unreadable_status = None;
    assert_eq!(fixture.play(), ["status Running p1", "label n1"]);
}

#[test]
fn a_vm_says_how_fast_it_writes_and_what_is_wrong_with_its_name() {
    let read = |name: &str, rate: &str| {
        let object = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": name, "annotations": {launcher::DIRTY_RATE: rate}}, "spec": spec(),
        });
        Vm::of(&serde_json::from_value::<DynamicObject>(object).unwrap()).spec
    };
    assert_eq!(read("a", "50").unwrap().dirty_rate, Some(sim::units::Rate(50_000_000)));
    for rate in ["", "fast", "-1", "NaN", "inf"] {
        assert!(read("a", rate).unwrap_err().contains("vm-dirty-rate-mbps"), "{rate}");
    }
    assert!(read(&"a".repeat(64), "50").unwrap_err().contains("63 characters"));
    assert_eq!(vm(spec(), json!({})).spec.unwrap().dirty_rate, None);
}

#[test]
fn a_time_scale_leaves_the_scheduler_its_time() {
    let timeout = |time_scale| {
        VmControllerSettings { time_scale, ..VmControllerSettings::default() }.start_timeout().as_secs_f64()
    };
    assert_eq!([timeout(1.0), timeout(2.0), timeout(1000.0)], [30.0, 15.0, 5.0]);
}
