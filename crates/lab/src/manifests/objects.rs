//! Functions that build Kubernetes objects, with the settings that are the same for all parts.

use serde::Serialize;
use serde_json::{Value, json};

use super::rights::Right;

/// The pod of a Deployment.
pub(super) struct Pod {
    pub(super) name: &'static str,
    pub(super) namespace: &'static str,
    /// The container whose log `kubectl logs` shows by default. None: the first one.
    pub(super) main: Option<&'static str>,
    /// The user ID of its processes. None: the user of its images.
    pub(super) user: Option<u32>,
    pub(super) containers: Vec<Value>,
    pub(super) volumes: Vec<Value>,
}

/// The old replica ends before the new one starts, because no part may run twice. The pod runs on a real node, because on the
/// others KWOK only pretends to run it.
pub(super) fn deployment(pod: Pod) -> Value {
    let Pod { name, namespace, main, user, containers, volumes } = pod;
    let mut security = json!({"seccompProfile": {"type": "RuntimeDefault"}});
    if let Some(user) = user {
        security["runAsNonRoot"] = true.into();
        security["runAsUser"] = user.into();
        security["runAsGroup"] = user.into();
        security["fsGroup"] = user.into();
    }
    let mut template = json!({
        "metadata": {"labels": {"app": name}},
        "spec": {
            "serviceAccountName": name,
            "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
            "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists", "effect": "NoSchedule"}],
            "securityContext": security,
            "terminationGracePeriodSeconds": 10,
            "containers": containers,
        },
    });
    if let Some(main) = main {
        template["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/default-container": main});
    }
    if !volumes.is_empty() {
        template["spec"]["volumes"] = volumes.into();
    }
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    })
}

/// The security context of a container.
pub(super) fn confined() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": true,
    })
}

pub(super) fn namespace(name: &str, labels: Value) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    if labels.is_object() {
        object["metadata"]["labels"] = labels;
    }
    object
}

pub(super) fn service_account(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}})
}

pub(super) fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data})
}

/// A volume with the files of ConfigMaps.
pub(super) fn config_volume(name: &str, config_maps: &[&str]) -> Value {
    let sources: Vec<Value> = config_maps.iter().map(|name| json!({"configMap": {"name": name}})).collect();
    json!({"name": name, "projected": {"sources": sources}})
}

/// The service forwards port `from` to port `to` of the pods with its name. With `node_port` it is reachable from outside.
pub(super) fn service(namespace: &str, name: &str, (from, to): (u16, u16), node_port: Option<u16>) -> Value {
    let mut port = json!({"name": "http", "port": from, "targetPort": to});
    let mut kind = "ClusterIP";
    if let Some(number) = node_port {
        port["nodePort"] = number.into();
        kind = "NodePort";
    }
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"type": kind, "selector": {"app": name}, "ports": [port]},
    })
}

/// The rights of a service account in the whole cluster: the role and its binding.
pub(super) fn everywhere(namespace: &str, account: &str, name: &str, rights: &[Right]) -> [Value; 2] {
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": Right::rules(rights),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
}

/// The rights of a service account in its own namespace: the role and its binding.
pub(super) fn at_home(namespace: &str, account: &str, rights: &[Right]) -> [Value; 2] {
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": account, "namespace": namespace},
            "rules": Right::rules(rights),
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": account, "namespace": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": account},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }),
    ]
}

/// A typed object with its API version and kind. If it cannot be serialized, the manifest contains the error.
pub(super) fn written(api_version: &str, kind: &str, object: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_else(|error| json!({"notWritten": error.to_string()}));
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.into();
    value
}
