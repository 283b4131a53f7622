//! CoreDNS: the names of Services and pods, and no others.

use serde_json::{Value, json};

pub(crate) const IMAGE: &str = "localhost/coredns:1";
/// The address of its Service.
pub(crate) const DNS: &str = "10.0.0.10";
pub(crate) const NAMESPACE: &str = "kube-system";
pub(crate) const NAME: &str = "coredns";

const COREFILE: &str = "\
.:1053 {
  errors
  health :8080
  ready :8181
  kubernetes cluster.local in-addr.arpa {
    ttl 5
  }
  cache 5
}
";

/// Its manifests, as a list.
pub(crate) fn objects() -> Value {
    let metadata = json!({"name": NAME, "namespace": NAMESPACE});
    let labels = json!({"k8s-app": "kube-dns"});
    let port =
        |protocol: &str| json!({"name": protocol.to_lowercase(), "port": 53, "targetPort": 1053, "protocol": protocol});
    let rbac = "rbac.authorization.k8s.io/v1";
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME});
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": [
            {"apiGroups": [""], "resources": ["services", "namespaces", "pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ]},
        {"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": NAME}, "roleRef": role, "subjects": [
            {"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE},
        ]},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"Corefile": COREFILE}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": NAMESPACE}, "spec": {
            "clusterIP": DNS, "selector": labels, "ports": [port("UDP"), port("TCP")],
        }},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod()},
        }},
    ]})
}

fn pod() -> Value {
    json!({
        "serviceAccountName": NAME,
        "dnsPolicy": "Default",
        "nodeSelector": {"kubernetes.io/hostname": crate::NAME},
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": NAME, "image": IMAGE, "args": ["-conf", "/etc/coredns/Corefile"],
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns"}],
        }],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    })
}
