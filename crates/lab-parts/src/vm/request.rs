//! Sends the request of a step, which may take a few calls.

use std::hash::{BuildHasher, Hasher, RandomState};

use api::VirtualMachine;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::{ApiResource, DynamicObject},
};
use kube_io::{Class, ObjectKey};
use serde_json::{Value, json};

use super::{LauncherPod, Request, Vm, pod};
use crate::launcher;

const FIELD_MANAGER: &str = "vm-controller";

/// What the API server has stored.
#[derive(Debug)]
pub(super) enum Response {
    Vm(Box<Vm>),
    Pod(Box<LauncherPod>),
    PodRemoved { pod: String, uid: String },
}

#[derive(Debug)]
pub(super) enum SendError {
    /// The object is not the version that the step was decided on.
    Conflict,
    Failed(String),
}

impl From<String> for SendError {
    fn from(problem: String) -> SendError {
        SendError::Failed(problem)
    }
}

pub(super) async fn send(
    client: Client,
    vm: Option<Vm>,
    key: ObjectKey,
    request: Request,
) -> Result<Response, SendError> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &key.namespace);
    let vms: Api<DynamicObject> =
        Api::namespaced_with(client, &key.namespace, &ApiResource::erase::<VirtualMachine>(&()));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let failed = |doing: String| {
        move |error: kube::Error| match Class::of(&error) {
            Class::Conflict => SendError::Conflict,
            _ => SendError::Failed(format!("{doing}: {error}")),
        }
    };
    let missing = || "the VM is gone".to_owned();
    match request {
        Request::CreatePod { source } => {
            let vm = vm.ok_or_else(missing)?;
            let pod = pod::pod(&vm, vm.spec.as_ref().map_err(Clone::clone)?, source.as_ref(), &suffix());
            let pod = pod.map_err(|error| format!("making a pod: {error}"))?;
            let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
            let made = pods.create(&params, &pod).await.map_err(failed(format!("creating pod {}", pod.name_any())))?;
            Ok(Response::Pod(Box::new(LauncherPod::of(&made))))
        }
        Request::RemovePod { pod, uid } => {
            // The finalizer first: the webhook protects a pod that has it.
            match pods.get_opt(&pod).await.map_err(failed(format!("reading pod {pod}")))? {
                Some(found) if found.uid().as_deref() == Some(&*uid) => {
                    let kept: Vec<_> = found.finalizers().iter().filter(|name| *name != launcher::FINALIZER).collect();
                    if kept.len() < found.finalizers().len() {
                        let version = found.resource_version();
                        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": version}});
                        let answer = pods.patch(&pod, &params, &Patch::Merge(patch)).await;
                        ignore_missing(answer).map_err(failed(format!("letting pod {pod} go")))?;
                    }
                    let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                    let delete = DeleteParams::default().grace_period(0).preconditions(preconditions);
                    ignore_missing(pods.delete(&pod, &delete).await).map_err(failed(format!("deleting pod {pod}")))?;
                }
                _ => {}
            }
            Ok(Response::PodRemoved { pod, uid })
        }
        Request::AnnotatePod { pod, annotations } => {
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
            let answer = pods.patch(&pod, &params, &patch).await.map_err(failed(format!("annotating pod {pod}")))?;
            Ok(Response::Pod(Box::new(LauncherPod::of(&answer))))
        }
        Request::WriteStatus(status) => {
            let vm = vm.ok_or_else(missing)?;
            let encode = |status| serde_json::to_value(status).map_err(|error| format!("writing the status: {error}"));
            let before = vm.unreadable_status.clone().map_or_else(|| encode(&vm.status), Ok)?;
            let patch = versioned(&vm, json!({"status": difference(&before, &encode(&status)?)}));
            let answer = vms.patch_status(&key.name, &params, &Patch::Merge(patch)).await;
            Ok(Response::Vm(Box::new(Vm::of(&answer.map_err(failed("writing the status".into()))?))))
        }
        Request::LabelVm(node) => {
            let patch = json!({"metadata": {"labels": {launcher::NODE_NAME: node}}});
            let answer = vms.patch(&key.name, &params, &Patch::Merge(patch)).await;
            Ok(Response::Vm(Box::new(Vm::of(&answer.map_err(failed("labeling the VM".into()))?))))
        }
    }
}

fn ignore_missing<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Err(error) if Class::of(&error).is_absent() => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// Adds the version that the step was decided on: the API server rejects the patch if the VM has changed since.
fn versioned(vm: &Vm, mut patch: Value) -> Value {
    patch["metadata"] = json!({"resourceVersion": vm.version, "uid": vm.uid});
    patch
}

/// The merge patch that turns one object into another, one level deep.
fn difference(from: &Value, to: &Value) -> Value {
    let (from, to) = (from.as_object().cloned().unwrap_or_default(), to.as_object().cloned().unwrap_or_default());
    let removed = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(*value));
    removed.chain(changed.map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// Five random characters that make the name of a pod unique.
fn suffix() -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut number = RandomState::new().build_hasher().finish();
    let mut letter = || {
        let letter = LETTERS[(number % 36) as usize];
        number /= 36;
        char::from(letter)
    };
    (0..5).map(|_| letter()).collect()
}
