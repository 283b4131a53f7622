//! A VM whose steps are performed without an API server.

use api::VirtualMachineStatus;
use jiff::Timestamp;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use crate::{
    launcher,
    vm::{CopyProgress, Input, LauncherPod, Outcome, Request, Step, Vm, VmControllerSettings, decide, pod},
};

/// The step if there is nothing to do.
pub(super) const NOTHING: Step = Step::Done(Outcome { until: None, for_migration_slot: false });

pub(super) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(super) fn vm(spec: Value, status: Value) -> Vm {
    let object = json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a", "namespace": "default", "uid": "vm-uid", "resourceVersion": "1", "generation": 1},
        "spec": spec, "status": status,
    });
    Vm::of(&serde_json::from_value::<DynamicObject>(object).unwrap())
}

pub(super) fn spec() -> Value {
    json!({"resources": {"cpu": "2", "memory": "4Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}})
}

pub(super) fn launcher_pod(name: &str, node: &str) -> LauncherPod {
    let vm = vm(spec(), json!({}));
    let pod = pod::pod(&vm, vm.spec.as_ref().unwrap(), None, "xxxxx").unwrap();
    let node = Some(node.to_owned()).filter(|node| !node.is_empty());
    let mut pod = LauncherPod { name: name.into(), uid: format!("{name}-uid"), ..LauncherPod::of(&pod) };
    (pod.is_running, pod.node, pod.created) = (node.is_some(), node, Some(at(0)));
    pod
}

pub(super) fn target(name: &str, node: &str) -> LauncherPod {
    let mut pod = launcher_pod(name, node);
    pod.annotations.insert(launcher::SOURCE.into(), "p1".into());
    pod
}

/// A VM and its pods. Requests change them as the API server would.
pub(super) struct Fixture {
    pub(super) vm: Option<Vm>,
    pub(super) pods: Vec<LauncherPod>,
    pub(super) progress: CopyProgress,
    pub(super) may_migrate: bool,
    pub(super) gone: Vec<&'static str>,
    pub(super) now: Timestamp,
}

impl Fixture {
    pub(super) fn new(status: Value, pods: Vec<LauncherPod>) -> Fixture {
        let (vm, gone) = (Some(vm(spec(), status)), Vec::new());
        Fixture { vm, pods, progress: CopyProgress::NotStarted, may_migrate: true, gone, now: at(1) }
    }

    /// A VM that runs as `p1` on `n1`, with a complete status.
    pub(super) fn settled() -> Fixture {
        let mut fixture = Fixture::new(json!({}), vec![launcher_pod("p1", "n1")]);
        fixture.play();
        fixture
    }

    pub(super) fn evicted() -> Fixture {
        let mut fixture = Fixture::settled();
        fixture.status_mut().evacuation_node_name = Some("n1".into());
        fixture.play();
        fixture
    }

    pub(super) fn status(&self) -> &VirtualMachineStatus {
        &self.vm.as_ref().unwrap().status
    }

    pub(super) fn status_mut(&mut self) -> &mut VirtualMachineStatus {
        &mut self.vm.as_mut().unwrap().status
    }

    pub(super) fn pod(&mut self, name: &str) -> &mut LauncherPod {
        self.pods.iter_mut().find(|pod| pod.name == name).unwrap()
    }

    pub(super) fn decide(&self) -> Step {
        decide(&Input {
            vm: self.vm.as_ref(),
            pods: self.pods.iter().collect(),
            progress: self.progress,
            may_migrate: self.may_migrate,
            is_gone: &|node| self.gone.contains(&node),
            now: self.now,
            settings: &VmControllerSettings::default(),
        })
    }

    /// Performs steps until the next one is a wait. Returns a short text for each.
    pub(super) fn play(&mut self) -> Vec<String> {
        let mut done = Vec::new();
        loop {
            assert!(done.len() < 20, "no end: {done:?}");
            match self.decide() {
                Step::Done(_) => return done,
                step => done.push(self.perform(step)),
            }
        }
    }

    pub(super) fn perform(&mut self, step: Step) -> String {
        match step {
            Step::Send(request) => self.send(request),
            Step::StartCopy { from, to } => {
                self.progress = CopyProgress::Copying;
                format!("copy {from} {to}")
            }
            Step::Done(_) => "wait".to_owned(),
        }
    }

    pub(super) fn send(&mut self, request: Request) -> String {
        match request {
            Request::CreatePod { source } => {
                let name = format!("new{}", self.pods.len());
                let mut pod = launcher_pod(&name, "");
                pod.created = Some(self.now);
                if let Some(source) = &source {
                    pod.annotations.insert(launcher::SOURCE.into(), source.pod.clone());
                }
                self.pods.push(pod);
                format!(
                    "create {name}{}",
                    source.map(|source| format!(" away from {}", source.node)).unwrap_or_default()
                )
            }
            Request::RemovePod { pod, .. } => {
                self.pods.retain(|known| known.name != pod);
                format!("remove {pod}")
            }
            Request::AnnotatePod { pod, annotations } => {
                for (name, value) in annotations {
                    let known = &mut self.pod(&pod).annotations;
                    match value {
                        Some(value) => known.insert(name, value),
                        None => known.remove(&name),
                    };
                }
                format!("annotate {pod}")
            }
            Request::WriteStatus(status) => {
                let words = format!("status {} {}", status.phase.unwrap(), status.pod_name.as_deref().unwrap_or("-"));
                *self.status_mut() = *status;
                words
            }
            Request::LabelVm(node) => {
                self.vm.as_mut().unwrap().label.clone_from(&node);
                format!("label {}", node.as_deref().unwrap_or("-"))
            }
        }
    }

    pub(super) fn migrated(&self) -> (String, String) {
        let condition = self.status().conditions.iter().find(|condition| condition.type_ == "Migrated").unwrap();
        (condition.status.clone(), condition.reason.clone())
    }
}
