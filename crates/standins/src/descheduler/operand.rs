//! The objects that the real operator creates: the policy in a ConfigMap, and the Deployment of the descheduler.
//! Here the Deployment only describes it: the descheduler is a child process of the stand-in, and there is no pod.

use std::future::Future;

use devcluster::tools::Program;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use kube_io::{RequestError, answer_within};
use serde_json::{Value, json};

use super::{Policy, names, observed::Object};
use crate::{DEADLINE, STAND_IN_LABEL};

/// Writes the objects when they change.
pub(super) struct Operand {
    config_maps: Api<ConfigMap>,
    deployments: Api<Deployment>,
    written: Written,
    /// The generation of the Deployment, if it exists.
    generation: Option<i64>,
    status: Value,
}

#[derive(Debug, PartialEq)]
enum Written {
    Unknown,
    /// This ConfigMap and this Deployment.
    Objects([Value; 2]),
    ScaledDown,
}

impl Operand {
    pub(super) fn new(client: &Client) -> Operand {
        Operand {
            config_maps: Api::namespaced(client.clone(), names::NAMESPACE),
            deployments: Api::namespaced(client.clone(), names::NAMESPACE),
            written: Written::Unknown,
            generation: None,
            status: Value::Null,
        }
    }

    /// Writes the policy of an object.
    pub(super) async fn apply(&mut self, object: &Object, policy: &Policy) -> Result<(), RequestError> {
        let wanted = Written::Objects([config_map(object, policy), deployment(object, policy)]);
        if self.written == wanted {
            return Ok(());
        }
        let params = PatchParams::apply(names::FIELD_MANAGER).force();
        let patch = Patch::Apply(config_map(object, policy));
        unless_absent("applying the policy", self.config_maps.patch(names::OBJECT, &params, &patch)).await?;
        let patch = Patch::Apply(deployment(object, policy));
        let applied =
            unless_absent("applying the Deployment", self.deployments.patch(names::OPERAND, &params, &patch)).await?;
        self.generation = applied.and_then(|deployment| deployment.metadata.generation);
        self.written = wanted;
        Ok(())
    }

    /// Scales the Deployment to 0. Its annotation keeps the generation that it ran for.
    pub(super) async fn scale_down(&mut self) -> Result<(), RequestError> {
        if self.written == Written::ScaledDown {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"spec": {"replicas": 0}}));
        let scaled = unless_absent("scaling down", self.deployments.patch(names::OPERAND, &params(), &patch)).await?;
        self.generation = scaled.and_then(|deployment| deployment.metadata.generation);
        self.written = Written::ScaledDown;
        Ok(())
    }

    /// The garbage collector deletes the objects together with their KubeDescheduler.
    pub(super) fn forget(&mut self) {
        (self.written, self.generation, self.status) = (Written::Unknown, None, Value::Null);
    }

    /// Writes the status of the Deployment.
    pub(super) async fn write_status(&mut self, is_ready: bool) -> Result<(), RequestError> {
        let Some(generation) = self.generation else { return Ok(()) };
        let status = status(generation, self.written != Written::ScaledDown, is_ready);
        if self.status == status {
            return Ok(());
        }
        let patch = Patch::Merge(json!({"status": status}));
        unless_absent("writing the status", self.deployments.patch_status(names::OPERAND, &params(), &patch)).await?;
        self.status = status;
        Ok(())
    }
}

fn params() -> PatchParams {
    PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// None if the object does not exist.
async fn unless_absent<T>(
    doing: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<Option<T>, RequestError> {
    match answer_within(DEADLINE, doing.to_owned(), request).await {
        Ok(written) => Ok(Some(written)),
        Err(error) if error.class.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

fn metadata(name: &str, object: &Object) -> Value {
    json!({
        "name": name,
        "namespace": names::NAMESPACE,
        "labels": {STAND_IN_LABEL: "true"},
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

/// It is paused, so that no pods are created. If some were, no node would match them.
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
                    "nodeSelector": {STAND_IN_LABEL: "true"},
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
    use std::time::Duration;

    use super::*;
    use crate::descheduler::Mode;

    #[test]
    fn the_deployment_has_the_generation_and_the_flags_and_is_paused() {
        let object = Object { uid: "u".into(), generation: 7, ..Object::default() };
        let policy = Policy::from_text("kind: DeschedulerPolicy\n".into(), Duration::from_secs(60), Mode::Predictive);
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
        assert_eq!(counts(false, true), [0, 0, 0, 0], "it is being stopped");
    }
}
