//! The request, or the few requests, that an action means.

use std::hash::{BuildHasher, Hasher, RandomState};

use api::VirtualMachine;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use super::{Action, Launcher, Machine, pod, world::Key};
use crate::launcher;

const FIELD_MANAGER: &str = "vm-controller";

/// What a request was answered with.
#[derive(Debug)]
pub(super) enum Answer {
    Vm(Box<Machine>),
    Pod(Box<Launcher>),
    Removed { pod: String, uid: String },
}

/// Why nothing came of a request.
#[derive(Debug)]
pub(super) enum Refusal {
    /// It was decided on old news.
    Outdated,
    Failed(String),
}

impl From<String> for Refusal {
    fn from(problem: String) -> Refusal {
        Refusal::Failed(problem)
    }
}

pub(super) async fn perform(client: Client, vm: Option<Machine>, key: Key, action: Action) -> Result<Answer, Refusal> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), &key.0);
    let vms: Api<DynamicObject> = Api::namespaced_with(client, &key.0, &ApiResource::erase::<VirtualMachine>(&()));
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let words = |doing: String| {
        move |error: kube::Error| match error {
            kube::Error::Api(status) if status.code == 409 => Refusal::Outdated,
            error => Refusal::Failed(format!("{doing}: {error}")),
        }
    };
    let missing = || "the VM is gone".to_owned();
    match action {
        Action::Create { away } => {
            let vm = vm.ok_or_else(missing)?;
            let pod = pod::pod(&vm, vm.wanted.as_ref().map_err(Clone::clone)?, away.as_ref(), &suffix());
            let pod = pod.map_err(|error| format!("making a pod: {error}"))?;
            let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
            let made = pods.create(&params, &pod).await.map_err(words(format!("creating pod {}", pod.name_any())))?;
            Ok(Answer::Pod(Box::new(Launcher::of(&made))))
        }
        Action::Remove { pod, uid } => {
            // The finalizer first: a pod that has it is protected, and this one shall not be.
            match pods.get_opt(&pod).await.map_err(words(format!("reading pod {pod}")))? {
                Some(found) if found.uid().as_deref() == Some(&*uid) => {
                    let kept: Vec<_> = found.finalizers().iter().filter(|name| *name != launcher::FINALIZER).collect();
                    if kept.len() < found.finalizers().len() {
                        let version = found.resource_version();
                        let patch = json!({"metadata": {"finalizers": kept, "resourceVersion": version}});
                        let answer = pods.patch(&pod, &params, &Patch::Merge(patch)).await;
                        ignore_missing(answer).map_err(words(format!("letting pod {pod} go")))?;
                    }
                    let preconditions = Preconditions { uid: Some(uid.clone()), resource_version: None };
                    let delete = DeleteParams::default().grace_period(0).preconditions(preconditions);
                    ignore_missing(pods.delete(&pod, &delete).await).map_err(words(format!("deleting pod {pod}")))?;
                }
                _ => {}
            }
            Ok(Answer::Removed { pod, uid })
        }
        Action::Annotate { pod, annotations } => {
            let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
            let answer = pods.patch(&pod, &params, &patch).await.map_err(words(format!("annotating pod {pod}")))?;
            Ok(Answer::Pod(Box::new(Launcher::of(&answer))))
        }
        Action::Report(status) => {
            let vm = vm.ok_or_else(missing)?;
            let encode = |status| serde_json::to_value(status).map_err(|error| format!("writing the status: {error}"));
            let before = vm.unreadable.clone().map_or_else(|| encode(&vm.status), Ok)?;
            let patch = versioned(&vm, json!({"status": difference(&before, &encode(&status)?)}));
            let answer = vms.patch_status(&key.1, &params, &Patch::Merge(patch)).await;
            Ok(Answer::Vm(Box::new(Machine::of(&answer.map_err(words("writing the status".into()))?))))
        }
        Action::Label(node) => {
            let patch = json!({"metadata": {"labels": {launcher::NODE_NAME: node}}});
            let answer = vms.patch(&key.1, &params, &Patch::Merge(patch)).await;
            Ok(Answer::Vm(Box::new(Machine::of(&answer.map_err(words("labelling the VM".into()))?))))
        }
        Action::Copy { .. } => Err(Refusal::Failed("copying is no request".into())),
    }
}

fn ignore_missing<T>(answer: kube::Result<T>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// With the version that it was decided on: who writes on old news is refused.
fn versioned(vm: &Machine, mut patch: Value) -> Value {
    patch["metadata"] = json!({"resourceVersion": vm.version.to_string(), "uid": vm.uid});
    patch
}

/// The merge patch that turns one object into another, one level deep.
fn difference(from: &Value, to: &Value) -> Value {
    let (from, to) = (from.as_object().cloned().unwrap_or_default(), to.as_object().cloned().unwrap_or_default());
    let gone = from.keys().filter(|name| !to.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter(|(name, value)| from.get(*name) != Some(*value));
    gone.chain(changed.map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// Five characters that no other pod has.
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
