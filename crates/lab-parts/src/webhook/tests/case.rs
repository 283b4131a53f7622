//! A case for the decision: an admission request, and what is known about it.

use balance::CoolDown;
use k8s_openapi::api::core::v1::Pod;
use kube::core::DynamicObject;
use serde_json::{Value, json};
use serving::admission::{self, InvalidReview};

use crate::{
    vm::Vm,
    webhook::{AdmissionRequest, AllowReason, Input, Outcome, Step, decide},
};

/// The descheduler counts denials whose message contains this.
pub(super) const COUNTED: &str = "Eviction triggered evacuation";
pub(super) const TRIGGERED: &str = r#"Eviction triggered evacuation of VMI "ns/a""#;
pub(super) const IN_PROGRESS: &str = r#"Evacuation in progress: Eviction triggered evacuation of VMI "ns/a""#;

pub(super) fn eviction() -> Value {
    json!({
        "uid": "1", "operation": "CREATE", "namespace": "ns", "name": "virt-launcher-a-1",
        "kind": {"group": "policy", "version": "v1", "kind": "Eviction"},
        "resource": {"group": "", "version": "v1", "resource": "pods"}, "subResource": "eviction",
        "userInfo": {"username": "jane"}, "dryRun": false,
        "object": {"metadata": {"name": "virt-launcher-a-1", "namespace": "ns"}},
    })
}

pub(super) fn deletion() -> Value {
    json!({
        "uid": "2", "operation": "DELETE", "namespace": "ns", "name": "virt-launcher-a-1",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "userInfo": {"username": "jane"}, "object": null, "oldObject": pod(),
    })
}

pub(super) fn pod() -> Value {
    json!({
        "metadata": {
            "name": "virt-launcher-a-1", "namespace": "ns", "uid": "p1",
            "labels": {"app": "virt-launcher", "kubevirt.io/domain": "a"},
            "finalizers": ["kubevirt.io/migration-protection"],
            "ownerReferences": [{"apiVersion": "x", "kind": "VirtualMachine", "name": "a", "uid": "v1"}],
        },
        "spec": {"nodeName": "n1", "containers": []},
        "status": {"phase": "Running"},
    })
}

pub(super) fn vm() -> Value {
    json!({
        "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
        "metadata": {"name": "a", "namespace": "ns", "uid": "v1", "resourceVersion": "7"},
        "spec": {"resources": {"cpu": "1", "memory": "1Gi"}},
        "status": {"phase": "Running", "podName": "virt-launcher-a-1", "nodeName": "n1"},
    })
}

pub(super) struct Case {
    pub(super) request: Value,
    pub(super) pod: Result<Option<Value>, &'static str>,
    pub(super) vm: Result<Option<Value>, &'static str>,
    pub(super) is_namespace_ending: Result<bool, &'static str>,
    pub(super) source: Option<&'static str>,
    pub(super) cool_down: Option<CoolDown>,
}

impl Case {
    pub(super) fn new(request: Value) -> Case {
        Case {
            request,
            pod: Ok(Some(pod())),
            vm: Ok(Some(vm())),
            is_namespace_ending: Ok(false),
            source: None,
            cool_down: None,
        }
    }

    pub(super) fn step(self) -> Step {
        let request = parse(self.request).unwrap();
        let pod = self.pod.map(|pod| pod.map(|pod| serde_json::from_value::<Pod>(pod).unwrap()));
        let vm = self.vm.map(|vm| vm.map(|vm| Vm::of(&serde_json::from_value::<DynamicObject>(vm).unwrap())));
        decide(&Input {
            request: &request,
            pod: pod.as_ref().map(Option::as_ref).map_err(|problem| *problem),
            vm: vm.as_ref().map(Option::as_ref).map_err(|problem| *problem),
            is_namespace_ending: self.is_namespace_ending,
            source: self.source,
            exempt_users: &["collector".to_owned()],
            cool_down: self.cool_down,
            now: "2026-01-02T03:04:05.678Z".parse().unwrap(),
        })
    }
}

pub(super) fn parse(request: Value) -> Result<AdmissionRequest, InvalidReview> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
    admission::parse(review.to_string().as_bytes()).map(|(_, request)| request)
}

/// The steps for an eviction and for a deletion.
pub(super) fn both(change: impl Fn(&mut Case)) -> [Step; 2] {
    [eviction(), deletion()].map(|request| {
        let mut case = Case::new(request);
        change(&mut case);
        case.step()
    })
}

pub(super) fn both_allowed(reason: AllowReason, change: impl Fn(&mut Case)) {
    assert_eq!(both(change), [allowed(reason), allowed(reason)]);
}

pub(super) fn both_denied(message: &str, change: impl Fn(&mut Case)) {
    for step in both(change) {
        let Step::Done(Outcome::Denied(denial)) = step else { panic!("{step:?}") };
        assert_eq!(denial.message(), message);
    }
}

pub(super) fn edit(value: &mut Result<Option<Value>, &str>, path: &str, new: Value) {
    let value = value.as_mut().unwrap().as_mut().unwrap();
    let (parent, field) = path.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[field] = new;
}

pub(super) fn allowed(reason: AllowReason) -> Step {
    Step::Done(Outcome::Allowed(reason))
}
