//! What the real operator leaves in the cluster for others to see: the policy in a ConfigMap, and the descheduler's
//! Deployment. Here the Deployment only tells: the descheduler is a process of the stand-in's, and no pod is made.

use std::time::Duration;

use devcluster::tools::Program;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::{error::Elapsed, timeout};

use super::{Policy, names, sight::Object};

const DEADLINE: Duration = Duration::from_secs(10);

/// Writes what is to be seen, and only when that changes.
pub(super) struct Operand {
    config_maps: Api<ConfigMap>,
    deployments: Api<Deployment>,
    shown: Shown,
    /// The generation of the Deployment, where there is one.
    generation: Option<i64>,
    status: Value,
}

#[derive(Debug, PartialEq)]
enum Shown {
    Unknown,
    /// This ConfigMap and this Deployment.
    Applied([Value; 2]),
    ScaledDown,
}

impl Operand {
    pub(super) fn new(client: &Client) -> Operand {
        Operand {
            config_maps: Api::namespaced(client.clone(), names::NAMESPACE),
            deployments: Api::namespaced(client.clone(), names::NAMESPACE),
            shown: Shown::Unknown,
            generation: None,
            status: Value::Null,
        }
    }

    /// Shows the policy that was made of an object.
    pub(super) async fn apply(&mut self, object: &Object, policy: &Policy) -> Result<(), String> {
        let wanted = Shown::Applied([config_map(object, policy), deployment(object, policy)]);
        if self.shown == wanted {
            return Ok(());
        }
        let params = PatchParams::apply(names::FIELD_MANAGER).force();
        let patch = Patch::Apply(config_map(object, policy));
        answer(timeout(DEADLINE, self.config_maps.patch(names::OBJECT, &params, &patch)).await)?;
        let patch = Patch::Apply(deployment(object, policy));
        let applied = answer(timeout(DEADLINE, self.deployments.patch(names::OPERAND, &params, &patch)).await)?;
        self.generation = applied.and_then(|deployment| deployment.metadata.generation);
        self.shown = wanted;
        Ok(())
    }

    /// Shows that the descheduler was stopped. For which generation it ran is still to be seen.
    pub(super) async fn scale_down(&mut self) -> Result<(), String> {
        if self.shown == Shown::ScaledDown {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"spec": {"replicas": 0}}));
        let scaled = answer(timeout(DEADLINE, self.deployments.patch(names::OPERAND, &ours(), &patch)).await)?;
        self.generation = scaled.and_then(|deployment| deployment.metadata.generation);
        self.shown = Shown::ScaledDown;
        Ok(())
    }

    /// The garbage collector takes all of it away with the object that it belongs to.
    pub(super) fn forget(&mut self) {
        (self.shown, self.generation, self.status) = (Shown::Unknown, None, Value::Null);
    }

    /// Tells in the status of the Deployment how the process is.
    pub(super) async fn tell(&mut self, is_ready: bool) -> Result<(), String> {
        let Some(generation) = self.generation else { return Ok(()) };
        let status = status(generation, self.shown != Shown::ScaledDown, is_ready);
        if self.status == status {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": status}));
        answer(timeout(DEADLINE, self.deployments.patch_status(names::OPERAND, &ours(), &patch)).await)?;
        self.status = status;
        Ok(())
    }
}

fn ours() -> PatchParams {
    PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// None if what was to be written is not there.
fn answer<T>(answer: Result<Result<T, kube::Error>, Elapsed>) -> Result<Option<T>, String> {
    match answer {
        Ok(Ok(written)) => Ok(Some(written)),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
        Ok(Err(problem)) => Err(problem.to_string()),
        Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
    }
}

fn metadata(name: &str, object: &Object) -> Value {
    json!({
        "name": name,
        "namespace": names::NAMESPACE,
        "labels": {names::STAND_IN_LABEL: "true"},
        "ownerReferences": [{
            "apiVersion": "operator.openshift.io/v1",
            "kind": "KubeDescheduler",
            "name": names::OBJECT,
            "uid": object.uid,
        }],
    })
}

fn config_map(object: &Object, policy: &Policy) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(names::OBJECT, object),
        "data": {names::POLICY_KEY: policy.text},
    })
}

/// It is paused, so that nobody makes pods of it. If somebody did, there would be no node for them.
fn deployment(object: &Object, policy: &Policy) -> Value {
    let labels = json!({"app": names::OPERAND});
    let args = [format!("--policy-config-file=/policy-dir/{}", names::POLICY_KEY), "--logging-format=text".to_owned()];
    let args: Vec<String> = args.into_iter().chain(policy.flags()).collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(names::OPERAND, object),
        "spec": {
            "paused": true,
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {names::GENERATION: object.generation.to_string()},
                },
                "spec": {
                    "nodeSelector": {names::STAND_IN_LABEL: "true"},
                    "containers": [{
                        "name": "openshift-descheduler",
                        "image": format!("registry.k8s.io/descheduler/descheduler:{}", Program::Descheduler.version()),
                        "args": args,
                        "volumeMounts": [{"name": "policy-volume", "mountPath": "/policy-dir"}],
                    }],
                    "volumes": [{"name": "policy-volume", "configMap": {"name": names::OBJECT}}],
                },
            },
        },
    })
}

fn status(generation: i64, is_wanted: bool, is_ready: bool) -> Value {
    let (wanted, ready) = (i32::from(is_wanted), i32::from(is_wanted && is_ready));
    json!({
        "observedGeneration": generation,
        "replicas": wanted,
        "updatedReplicas": wanted,
        "readyReplicas": ready,
        "availableReplicas": ready,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descheduler::Mode;

    #[test]
    fn the_deployment_tells_the_generation_and_the_flags_and_nothing_runs_it() {
        let object = Object { uid: "u".into(), generation: 7, ..Object::default() };
        let policy = Policy::as_it_is("kind: DeschedulerPolicy\n".into(), Duration::from_secs(60), Mode::Predictive);
        let written = deployment(&object, &policy);
        let typed: Deployment = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), written, "every field is one of a Deployment");
        let template = &written["spec"]["template"];
        assert_eq!(template["metadata"]["annotations"]["kubedeschedulers.operator.openshift.io/cluster"], "7");
        assert_eq!((&written["spec"]["paused"], &written["spec"]["replicas"]), (&json!(true), &json!(1)));
        assert_eq!(written["metadata"]["labels"]["advisor.kubevirt.io/stand-in"], "true");
        assert_eq!(written["metadata"]["ownerReferences"][0]["uid"], "u");
        let args = template["spec"]["containers"][0]["args"].as_array().unwrap();
        for flag in ["--policy-config-file=/policy-dir/policy.yaml", "--descheduling-interval=60s", "--dry-run=true"] {
            assert!(args.contains(&json!(flag)), "{flag} in {args:?}");
        }
        let written = config_map(&object, &policy);
        assert_eq!(written["data"]["policy.yaml"], "kind: DeschedulerPolicy\n");
        assert_eq!(
            (&written["metadata"]["name"], &written["metadata"]["ownerReferences"][0]["name"]),
            (&json!("cluster"), &json!("cluster"))
        );
    }

    #[test]
    fn the_status_of_the_deployment_is_that_of_the_process() {
        let counts = |is_wanted, is_ready| {
            let status = status(3, is_wanted, is_ready);
            assert_eq!(status["observedGeneration"], 3);
            ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"]
                .map(|name| status[name].as_i64().unwrap())
        };
        assert_eq!(counts(true, true), [1, 1, 1, 1]);
        assert_eq!(counts(true, false), [1, 1, 0, 0]);
        assert_eq!(counts(false, true), [0, 0, 0, 0], "it is about to end");
    }
}
