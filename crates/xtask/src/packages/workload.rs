//! What runs the operator: its Deployment, and what belongs to it. Names get their prefix later, as those of `config/rbac` do.

use advisor::access::{NAMESPACE, SERVICE_ACCOUNT};
use serde_json::{Value, json};

/// The label that everything of an installation has, except for the definitions. `docs/install.md` deletes by it.
pub(crate) const LABEL: (&str, &str) = ("app.kubernetes.io/name", "virt-advisor-operator");

/// The Secret with the certificate of the metrics. OpenShift or cert-manager makes it.
pub(crate) const CERTIFICATE: &str = "virt-advisor-operator-metrics-tls";

/// By this annotation of the Service, OpenShift makes the Secret.
pub(crate) const SERVING_CERTIFICATE: &str = "service.beta.openshift.io/serving-cert-secret-name";

const CERTIFICATE_FOLDER: &str = "/etc/virt-advisor/metrics-tls";
const PROBES: u16 = 8081;
const METRICS: u16 = 8443;

/// Where API servers listen: most clusters, kubeadm and OpenShift, minikube, MicroK8s. A network policy is about the port of the
/// server itself and not about that of its Service.
pub(crate) const API_SERVER_PORTS: [u16; 4] = [443, 6443, 8443, 16443];

/// DNS, and DNS on the nodes of OpenShift.
const DNS_PORTS: [u16; 2] = [53, 5353];

/// The short name of the PriorityClass.
const PRIORITY: &str = "priority";

pub(crate) fn resources() -> Value {
    // `make bench-operator`: 12 MiB at rest, 14 MiB after 50 lives of a plan.
    json!({"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}})
}

/// All of it, in the order in which it is applied.
pub(super) fn objects(image: &str) -> Vec<Value> {
    vec![priority_class(), metrics_service(), disruption_budget(), network_policy(), deployment(image)]
}

pub(super) fn selector() -> Value {
    json!({LABEL.0: LABEL.1, "control-plane": "controller-manager"})
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "namespace": NAMESPACE, "labels": selector()})
}

/// Scheduled before others and evicted after them, but a guest never has to make room: the cluster works without the operator.
pub(super) fn priority_class() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": PRIORITY, "labels": {LABEL.0: LABEL.1}},
        "value": 1_000_000,
        "preemptionPolicy": "Never",
        "description": "virt-advisor is scheduled before other pods and evicted after them. It never preempts one.",
    })
}

pub(super) fn metrics_service() -> Value {
    let mut metadata = metadata("metrics");
    metadata["annotations"] = json!({SERVING_CERTIFICATE: CERTIFICATE});
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "ports": [{"name": "metrics", "port": METRICS, "protocol": "TCP", "targetPort": "metrics"}],
            "selector": selector(),
        },
    })
}

/// A drain waits until the other replica runs, but never for a replica that cannot run: our own plans drain nodes.
pub(super) fn disruption_budget() -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata("controller-manager"),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector()},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    })
}

pub(super) fn network_policy() -> Value {
    let ports = |protocol: &str, ports: &[u16]| -> Vec<Value> {
        ports.iter().map(|port| json!({"port": port, "protocol": protocol})).collect()
    };
    let dns = [ports("UDP", &DNS_PORTS), ports("TCP", &DNS_PORTS)].concat();
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata("controller-manager"),
        "spec": {
            "podSelector": {"matchLabels": selector()},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": ports("TCP", &[PROBES, METRICS])}],
            "egress": [
                {"ports": ports("TCP", &API_SERVER_PORTS)},
                {"ports": dns},
            ],
        },
    })
}

pub(super) fn deployment(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata("controller-manager"),
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {
                    "annotations": {
                        "kubectl.kubernetes.io/default-container": "manager",
                        "openshift.io/required-scc": "restricted-v2",
                    },
                    "labels": selector(),
                },
                "spec": pod(image),
            },
        },
    })
}

fn pod(image: &str) -> Value {
    let spread = |topology: &str| {
        json!({
            "labelSelector": {"matchLabels": selector()},
            "maxSkew": 1,
            "topologyKey": topology,
            "whenUnsatisfiable": "ScheduleAnyway",
        })
    };
    let constraints = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map(spread);
    json!({
        "containers": [container(image)],
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "priorityClassName": PRIORITY,
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "serviceAccountName": SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": 10,
        "topologySpreadConstraints": constraints,
        // Without the Secret, the operator signs a certificate of its own.
        "volumes": [{"name": "metrics-tls", "secret": {"optional": true, "secretName": CERTIFICATE}}],
    })
}

fn container(image: &str) -> Value {
    let probe = |path: &str, delay: u16, period: u16| {
        let request = json!({"path": path, "port": "probes"});
        json!({"httpGet": request, "initialDelaySeconds": delay, "periodSeconds": period})
    };
    json!({
        "name": "manager",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/virt-advisor"],
        "args": [
            "operator",
            "--leader-elect",
            format!("--health-probe-bind-address=:{PROBES}"),
            format!("--metrics-bind-address=:{METRICS}"),
            format!("--metrics-cert-dir={CERTIFICATE_FOLDER}"),
        ],
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 5, 10),
        "ports": [{"containerPort": PROBES, "name": "probes"}, {"containerPort": METRICS, "name": "metrics"}],
        "resources": resources(),
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "volumeMounts": [{"mountPath": CERTIFICATE_FOLDER, "name": "metrics-tls", "readOnly": true}],
    })
}
