//! Decisions about one VM.

use api::{VirtualMachineStatus, virtual_machine::Phase};
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::launcher;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn machine(spec: Value, status: Value) -> Machine {
    let object = json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a", "namespace": "default", "uid": "vm-uid", "resourceVersion": "1", "generation": 1},
        "spec": spec, "status": status,
    });
    Machine::of(&serde_json::from_value::<DynamicObject>(object).unwrap())
}

fn spec() -> Value {
    json!({"resources": {"cpu": "2", "memory": "4Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}})
}

fn launcher_pod(name: &str, node: &str) -> Launcher {
    let vm = machine(spec(), json!({}));
    let pod = super::pod::pod(&vm, vm.wanted.as_ref().unwrap(), None, "xxxxx").unwrap();
    let node = Some(node.to_owned()).filter(|node| !node.is_empty());
    let mut pod = Launcher { name: name.into(), uid: format!("{name}-uid"), ..Launcher::of(&pod) };
    (pod.is_running, pod.node, pod.created) = (node.is_some(), node, Some(at(0)));
    pod
}

fn target(name: &str, node: &str) -> Launcher {
    let mut pod = launcher_pod(name, node);
    pod.annotations.insert(launcher::SOURCE.into(), "p1".into());
    pod
}

/// A VM and its pods, on which decisions are carried out as the API server would.
struct Stage {
    vm: Option<Machine>,
    pods: Vec<Launcher>,
    progress: Progress,
    may_migrate: bool,
    gone: Vec<&'static str>,
    now: Timestamp,
}

impl Stage {
    fn new(status: Value, pods: Vec<Launcher>) -> Stage {
        let (vm, gone) = (Some(machine(spec(), status)), Vec::new());
        Stage { vm, pods, progress: Progress::NotStarted, may_migrate: true, gone, now: at(1) }
    }

    /// A VM that runs as `p1` on `n1`, with everything said about it.
    fn settled() -> Stage {
        let mut stage = Stage::new(json!({}), vec![launcher_pod("p1", "n1")]);
        stage.play();
        stage
    }

    fn marked() -> Stage {
        let mut stage = Stage::settled();
        stage.status_mut().evacuation_node_name = Some("n1".into());
        stage.play();
        stage
    }

    fn status(&self) -> &VirtualMachineStatus {
        &self.vm.as_ref().unwrap().status
    }

    fn status_mut(&mut self) -> &mut VirtualMachineStatus {
        &mut self.vm.as_mut().unwrap().status
    }

    fn pod(&mut self, name: &str) -> &mut Launcher {
        self.pods.iter_mut().find(|pod| pod.name == name).unwrap()
    }

    fn decide(&self) -> Decision {
        decide(&Scene {
            vm: self.vm.as_ref(),
            pods: self.pods.iter().collect(),
            progress: self.progress,
            may_migrate: self.may_migrate,
            is_gone: &|node| self.gone.contains(&node),
            now: self.now,
            settings: &Settings::default(),
        })
    }

    /// Does what is decided, until nothing is. Returns what was done, in short.
    fn play(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        while let Some(action) = self.decide().action {
            assert!(done.len() < 20, "no end: {done:?}");
            done.push(self.perform(action));
        }
        done
    }

    fn perform(&mut self, action: Action) -> String {
        match action {
            Action::Create { away } => {
                let name = format!("new{}", self.pods.len());
                let mut pod = launcher_pod(&name, "");
                pod.created = Some(self.now);
                if let Some((_, source)) = &away {
                    pod.annotations.insert(launcher::SOURCE.into(), source.clone());
                }
                self.pods.push(pod);
                format!("create {name}{}", away.map(|(node, _)| format!(" away from {node}")).unwrap_or_default())
            }
            Action::Remove { pod, .. } => {
                self.pods.retain(|known| known.name != pod);
                format!("remove {pod}")
            }
            Action::Annotate { pod, annotations } => {
                for (name, value) in annotations {
                    let known = &mut self.pod(&pod).annotations;
                    match value {
                        Some(value) => known.insert(name, value),
                        None => known.remove(&name),
                    };
                }
                format!("annotate {pod}")
            }
            Action::Report(status) => {
                let words = format!("report {} {}", status.phase.unwrap(), status.pod_name.as_deref().unwrap_or("-"));
                *self.status_mut() = *status;
                words
            }
            Action::Label(node) => {
                self.vm.as_mut().unwrap().label.clone_from(&node);
                format!("label {}", node.as_deref().unwrap_or("-"))
            }
            Action::Copy { from, to } => {
                self.progress = Progress::Copying;
                format!("copy {from} {to}")
            }
        }
    }

    fn migrated(&self) -> (String, String) {
        let condition = self.status().conditions.iter().find(|condition| condition.type_ == "Migrated").unwrap();
        (condition.status.clone(), condition.reason.clone())
    }
}

#[test]
fn a_new_vm_gets_a_pod_and_its_status_follows_it() {
    let mut stage = Stage::new(json!({}), vec![]);
    assert_eq!(stage.play(), ["report Pending -", "create new0", "report Scheduling new0"]);
    stage.pod("new0").node = Some("n1".into());
    assert_eq!(stage.play(), ["report Scheduled new0", "label n1"]);
    stage.pod("new0").is_running = true;
    assert_eq!(stage.play(), ["report Running new0"]);
    let status = stage.status();
    assert_eq!((status.node_name.as_deref(), status.phase), (Some("n1"), Some(Phase::Running)));
    assert_eq!((status.allocated_cpu.as_deref(), status.cpu_utilization.as_deref()), (Some("2"), Some("0.5")));
    assert!(status.created_at.is_some());
    assert_eq!(stage.decide(), Decision::default(), "and then nothing is to be done");
}

#[test]
fn the_pod_is_as_the_descheduler_and_the_exporter_expect_it() {
    let vm = machine(spec(), json!({}));
    let away = ("n1".to_owned(), "p1".to_owned());
    let pod = super::pod::pod(&vm, vm.wanted.as_ref().unwrap(), Some(&away), "abcde").unwrap();
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
fn a_migration_makes_the_target_first_hands_over_in_one_write_and_then_removes_the_source() {
    let mut stage = Stage::marked();
    assert_eq!(stage.pods.len(), 2, "a target was made");
    assert_eq!(stage.pod("p1").annotations.get(launcher::EVICTION_IN_PROGRESS).map(String::as_str), Some("true"));
    assert_eq!(stage.status().pod_name.as_deref(), Some("p1"), "the source counts");
    (stage.pod("new1").node, stage.pod("new1").is_running) = (Some("n2".into()), true);
    assert_eq!(stage.play(), ["copy n1 n2"]);
    stage.progress = Progress::Copied;
    let Some(Action::Report(status)) = stage.decide().action else { panic!("a report was expected") };
    let written = (status.pod_name.as_deref(), status.node_name.as_deref(), status.evacuation_node_name.as_deref());
    assert_eq!(written, (Some("new1"), Some("n2"), None));
    assert_eq!(stage.play(), ["report Running new1", "remove p1", "label n2"]);
    assert_eq!(stage.migrated(), ("True".into(), "Succeeded".into()));
}

/// Holds L21.
#[test]
fn a_migration_that_fails_leaves_one_running_pod_no_mark_and_a_reason() {
    type Spoil = fn(&mut Stage);
    let cases: [(&str, Spoil); 6] = [
        ("TargetUnschedulable", |stage| stage.now = at(1000)),
        ("TargetNotStarted", |stage| {
            stage.pod("new1").node = Some("n2".into());
            stage.now = at(1000);
        }),
        ("TargetLost", |stage| stage.pod("new1").is_finished = true),
        ("TargetLost", |stage| {
            stage.pods.retain(|pod| pod.name != "new1");
            stage.progress = Progress::Lost;
        }),
        ("TargetLost", |stage| {
            (stage.pod("new1").node, stage.pod("new1").is_running) = (Some("n2".into()), true);
            stage.gone.push("n2");
        }),
        ("NotConverging", |stage| {
            (stage.pod("new1").node, stage.pod("new1").is_running) = (Some("n2".into()), true);
            stage.progress = Progress::GivenUp;
        }),
    ];
    for (reason, spoil) in cases {
        let mut stage = Stage::marked();
        spoil(&mut stage);
        let done = stage.play();
        assert_eq!(stage.migrated(), ("False".into(), reason.into()), "{done:?}");
        let left: Vec<_> = stage.pods.iter().map(|pod| (&*pod.name, pod.is_running)).collect();
        assert_eq!(left, [("p1", true)], "{reason}: {done:?}");
        assert_eq!(stage.status().evacuation_node_name, None);
        assert_eq!(stage.pod("p1").annotations.get(launcher::EVICTION_IN_PROGRESS), None);
    }
}

#[test]
fn a_source_that_dies_makes_the_target_the_vm() {
    let kills: [fn(&mut Stage); 4] = [
        |stage| stage.pods.retain(|pod| pod.name != "p1"),
        |stage| stage.pod("p1").is_finished = true,
        |stage| stage.pod("p1").is_deleted = true,
        |stage| stage.gone.push("n1"),
    ];
    for kill in kills {
        let mut stage = Stage::marked();
        (stage.pod("new1").node, stage.pod("new1").is_running) = (Some("n2".into()), true);
        kill(&mut stage);
        let done = stage.play();
        assert_eq!(stage.migrated(), ("False".into(), "SourceLost".into()));
        assert_eq!(stage.status().pod_name.as_deref(), Some("new1"), "{done:?}");
        assert_eq!(stage.pods.len(), 1, "{done:?}");
        assert_eq!(stage.status().evacuation_node_name, None);
    }
}

#[test]
fn a_migration_waits_until_the_limits_leave_room() {
    let mut stage = Stage::settled();
    stage.may_migrate = false;
    stage.status_mut().evacuation_node_name = Some("n1".into());
    stage.play();
    let decision = stage.decide();
    assert!(decision.is_queued && decision.action.is_none());
    assert_eq!(stage.pods.len(), 1);
    stage.may_migrate = true;
    assert_eq!(stage.play(), ["create new1 away from n1"]);
}

#[test]
fn a_mark_for_a_node_that_the_vm_is_not_on_is_cleared() {
    let mut stage = Stage::settled();
    stage.status_mut().evacuation_node_name = Some("n7".into());
    assert_eq!(stage.play(), ["report Running p1"]);
    assert_eq!(stage.status().evacuation_node_name, None);
    assert_eq!(stage.pods.len(), 1);
}

/// Holds L27.
#[test]
fn a_controller_that_restarts_at_any_step_comes_to_the_same_end() {
    // Every state that the objects go through in a migration, met by somebody who remembers nothing.
    for steps in 0..20 {
        let mut stage = Stage::settled();
        stage.status_mut().evacuation_node_name = Some("n1".into());
        for _ in 0..steps {
            let Some(action) = stage.decide().action else { break };
            stage.perform(action);
        }
        stage.progress = Progress::NotStarted;
        for _ in 0..4 {
            stage.play();
            for pod in &mut stage.pods {
                (pod.is_running, pod.node) = (true, pod.node.take().or(Some("n2".into())));
            }
            if stage.progress == Progress::Copying {
                stage.progress = Progress::Copied;
            }
        }
        assert_eq!(stage.pods.len(), 1, "after {steps} steps");
        assert_eq!(stage.status().node_name.as_deref(), Some("n2"), "after {steps} steps");
        assert_eq!(stage.status().evacuation_node_name, None);
    }
}

#[test]
fn a_change_of_utilisation_reaches_the_pod_and_the_status() {
    let mut stage = Stage::settled();
    let status = stage.status().clone();
    let changed = json!({"resources": {"cpu": "2", "memory": "4Gi"}, "utilization": {"cpu": "0.9", "memory": "0.5"}});
    let label = stage.vm.as_ref().unwrap().label.clone();
    stage.vm = Some(Machine { status, label, ..machine(changed, json!({})) });
    assert_eq!(stage.play(), ["report Running p1", "annotate p1"]);
    assert_eq!(stage.pod("p1").annotations[launcher::CPU_UTILIZATION], "0.9");
    assert_eq!(stage.status().cpu_utilization.as_deref(), Some("0.9"));
}

#[test]
fn a_change_of_size_counts_from_the_next_pod_on() {
    let mut stage = Stage::settled();
    let (status, label) = (stage.status().clone(), stage.vm.as_ref().unwrap().label.clone());
    let larger = json!({"resources": {"cpu": "8", "memory": "4Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}});
    stage.vm = Some(Machine { status, label, ..machine(larger, json!({})) });
    assert_eq!(stage.decide(), Decision::default());
    assert_eq!(stage.status().allocated_cpu.as_deref(), Some("2"));
}

/// Holds L22 and L24.
#[test]
fn a_vm_is_stopped_and_started() {
    let mut stage = Stage::marked();
    stage.vm.as_mut().unwrap().wanted.as_mut().unwrap().running = false;
    let done = stage.play();
    assert_eq!(done, ["remove p1", "remove new1", "report Stopped -", "label -"]);
    assert_eq!(stage.status().evacuation_node_name, None);
    stage.vm.as_mut().unwrap().wanted.as_mut().unwrap().running = true;
    assert_eq!(stage.play(), ["report Pending -", "create new0", "report Scheduling new0"]);
}

/// Holds L20.
#[test]
fn pods_of_a_vm_that_is_gone_or_going_are_let_go() {
    for vm in [None, Some(Machine { is_deleted: true, ..machine(spec(), json!({})) })] {
        let mut stage = Stage::new(json!({}), vec![launcher_pod("p1", "n1"), target("p2", "n2")]);
        stage.vm = vm;
        assert_eq!(stage.play(), ["remove p1", "remove p2"]);
    }
}

#[test]
fn a_pod_that_is_being_deleted_is_let_go_and_one_that_is_let_go_is_left_alone() {
    let mut stage = Stage::settled();
    stage.pod("p1").is_deleted = true;
    assert_eq!(stage.decide().action, Some(Action::Remove { pod: "p1".into(), uid: "p1-uid".into() }));
    stage.pod("p1").is_protected = false;
    assert_eq!(stage.play(), ["report Pending -", "create new1", "report Scheduling new1", "label -"]);
}

#[test]
fn a_pod_of_an_earlier_vm_of_the_same_name_is_removed() {
    let mut stage = Stage::new(json!({}), vec![Launcher { owner: Some("older".into()), ..launcher_pod("p1", "n1") }]);
    assert_eq!(stage.play(), ["remove p1", "report Pending -", "create new0", "report Scheduling new0"]);
}

/// Holds L25.
#[test]
fn duplicates_are_removed_and_the_pod_that_the_status_names_stays() {
    let mut stage = Stage::settled();
    stage.pods.insert(0, launcher_pod("older", "n2"));
    assert_eq!(stage.play(), ["remove older"]);
}

/// Holds L24.
#[test]
fn a_finished_pod_and_one_on_a_node_that_is_gone_are_replaced() {
    let replaced = ["remove p1", "report Pending -", "create new0", "report Scheduling new0", "label -"];
    let mut finished = Stage::settled();
    finished.pod("p1").is_finished = true;
    assert_eq!(finished.play(), replaced);
    let mut lost = Stage::settled();
    lost.gone.push("n1");
    assert_eq!(lost.play(), replaced);
    assert_eq!(lost.status().node_name, None, "what is no longer true is no longer said");
}

#[test]
fn a_spec_that_cannot_be_read_fails_the_vm_and_leaves_its_pod() {
    let mut stage = Stage::settled();
    let status = stage.status().clone();
    stage.vm = Some(Machine { status, ..machine(json!({"resources": {"cpu": "2", "memory": "lots"}}), json!({})) });
    stage.status_mut().evacuation_node_name = Some("n1".into());
    assert_eq!(stage.play(), ["report Failed p1"]);
    assert_eq!(stage.status().evacuation_node_name, None);
    assert_eq!(stage.pods.len(), 1);
}

/// Holds L23.
#[test]
fn conditions_are_bounded_and_keep_the_time_of_their_last_change() {
    let old = json!({"type": "PhaseRunning", "status": "True", "reason": "TransitionedToRunning", "message": "",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    let mut stage = Stage::new(json!({"conditions": [old]}), vec![launcher_pod("p1", "n1")]);
    stage.play();
    for second in 1..50 {
        stage.now = at(second);
        stage.pod("p1").is_running = second % 2 == 0;
        stage.play();
        assert!(stage.status().conditions.len() <= 3, "{:?}", stage.status().conditions);
    }
    let ready = stage.status().conditions[0].clone();
    assert_eq!((ready.type_.as_str(), ready.status.as_str(), ready.last_transition_time.0), ("Ready", "False", at(49)));
    stage.now = at(100);
    assert_eq!(stage.decide(), Decision::default(), "the time alone changes nothing");
}

#[test]
fn the_cause_that_came_with_the_mark_stays_until_the_migration_ends_and_a_mark_by_hand_gets_one() {
    let cause = |stage: &Stage| {
        let found = stage.status().conditions.iter().find(|condition| condition.type_ == launcher::EVICTION_REQUESTED);
        found.map(|condition| (condition.reason.clone(), condition.message.clone()))
    };
    let by_webhook = json!({"type": "EvictionRequested", "status": "True", "reason": "Descheduler", "message": "over",
        "lastTransitionTime": "2025-01-01T00:00:00Z"});
    let mut stage = Stage::settled();
    stage.status_mut().evacuation_node_name = Some("n1".into());
    stage.status_mut().conditions.push(serde_json::from_value(by_webhook).unwrap());
    stage.play();
    assert_eq!(stage.pods.len(), 2, "it moves");
    assert_eq!(cause(&stage), Some(("Descheduler".into(), "over".into())));
    stage.now = at(1000);
    stage.play();
    assert_eq!((stage.migrated().1.as_str(), cause(&stage)), ("TargetUnschedulable", None));

    let by_hand = Stage::marked();
    assert_eq!(cause(&by_hand), Some(("EvictionRequested".into(), "the VM is to leave n1".into())));
}

#[test]
fn a_status_that_makes_no_sense_is_written_anew() {
    let mut stage = Stage::new(json!({"phase": "Wild", "podName": 5}), vec![launcher_pod("p1", "n1")]);
    assert!(stage.vm.as_ref().unwrap().unreadable.is_some());
    let Some(Action::Report(status)) = stage.decide().action else { panic!("a report was expected") };
    assert_eq!((status.phase, status.pod_name.as_deref()), (Some(Phase::Running), Some("p1")));
    stage.vm.as_mut().unwrap().unreadable = None;
    assert_eq!(stage.play(), ["report Running p1", "label n1"]);
}

#[test]
fn a_mark_on_a_vm_whose_pod_has_not_been_named_yet_counts_for_that_pod() {
    let mut stage = Stage::new(json!({"evacuationNodeName": "n1"}), vec![launcher_pod("p1", "n1")]);
    assert_eq!(stage.play(), ["annotate p1", "report Running p1", "label n1", "create new1 away from n1"]);
}

#[test]
fn a_vm_says_how_fast_it_writes_and_what_is_wrong_with_its_name() {
    let vm = |name: &str, rate: &str| {
        let object = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": name, "annotations": {launcher::DIRTY_RATE: rate}}, "spec": spec(),
        });
        Machine::of(&serde_json::from_value::<DynamicObject>(object).unwrap()).wanted
    };
    assert_eq!(vm("a", "50").unwrap().dirty_rate, Some(sim::units::Rate(50_000_000)));
    for rate in ["", "fast", "-1", "NaN", "inf"] {
        assert!(vm("a", rate).unwrap_err().contains("vm-dirty-rate-mbps"), "{rate}");
    }
    assert!(vm(&"a".repeat(64), "50").unwrap_err().contains("63 characters"));
    assert_eq!(machine(spec(), json!({})).wanted.unwrap().dirty_rate, None);
}

#[test]
fn a_time_scale_leaves_the_scheduler_its_time() {
    let timeout = |time_scale| Settings { time_scale, ..Settings::default() }.start_timeout().as_secs_f64();
    assert_eq!([timeout(1.0), timeout(2.0), timeout(1000.0)], [30.0, 15.0, 5.0]);
}
