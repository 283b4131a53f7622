//! The files in `config/monitoring`: rules, the monitor that has the operator scraped, and what Prometheus needs for it.

use serde_json::{Value, json};

use super::{AlertSettings, alerts, alerts_page, dashboard};
use crate::{
    access::{MARK, NAMESPACE},
    object_text,
};

const KUSTOMIZATION: &str = "\
# Alerts of the operator, and the monitor by which Prometheus finds its metrics. Not part of config/default: it needs the kinds of
# the Prometheus operator, which OpenShift has. How to use it: docs/monitoring.md.
resources:
- rules.yaml
- service_monitor.yaml
- prometheus_role.yaml
";

const RULES: &str = "\
# The alerts, each with a runbook in docs/runbooks. RUNBOOK_URL_TEMPLATE=https://example.com/%s make generate leads to others.

";

const MONITOR: &str = "\
# Prometheus shows its client certificate, which the operator verifies without asking the API server: metrics can be read while
# the API server is away. The files are those that the platform Prometheus of OpenShift has in every pod.

";

const ROLE: &str = "\
# The platform Prometheus of OpenShift may look for targets in this namespace.

";

/// The Service that serves the metrics. Its certificate is issued for this name.
pub const SERVICE: &str = "virt-advisor-operator-metrics";

/// The generated files: path from the root of the repository, and content.
pub fn files(settings: &AlertSettings) -> Vec<(&'static str, String)> {
    let documents = |head: &str, objects: &[Value]| {
        let documents: Vec<String> = objects.iter().map(|object| object_text::yaml(Some(object))).collect();
        format!("{MARK}{head}{}", documents.join("---\n"))
    };
    vec![
        ("config/monitoring/kustomization.yaml", format!("{MARK}{KUSTOMIZATION}")),
        ("config/monitoring/rules.yaml", documents(RULES, &[prometheus_rule(settings)])),
        ("config/monitoring/service_monitor.yaml", documents(MONITOR, &[service_monitor()])),
        ("config/monitoring/prometheus_role.yaml", documents(ROLE, &prometheus_role())),
        ("config/monitoring/grafana-dashboard.json", dashboard::grafana()),
        ("config/monitoring/perses-dashboard.json", dashboard::perses()),
        ("docs/alerts.md", alerts_page::text()),
    ]
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "virt-advisor-operator"}})
}

/// The alerts as an object of the Prometheus operator.
pub fn prometheus_rule(settings: &AlertSettings) -> Value {
    let mut metadata = metadata("virt-advisor-operator-rules");
    // By these KubeVirt's own Prometheus objects are selected, where Prometheus does not take whole namespaces.
    metadata["labels"]["prometheus.kubevirt.io"] = "true".into();
    metadata["labels"]["k8s-app"] = "kubevirt".into();
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata,
        "spec": {"groups": alerts::groups(settings)},
    })
}

pub(super) fn service_monitor() -> Value {
    let mut metadata = metadata("virt-advisor-operator-metrics");
    metadata["labels"]["prometheus.kubevirt.io"] = "true".into();
    metadata["labels"]["k8s-app"] = "kubevirt".into();
    let certificates = "/etc/prometheus/secrets/metrics-client-certs";
    json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata,
        "spec": {
            "namespaceSelector": {"matchNames": [NAMESPACE]},
            "selector": {"matchLabels": {
                "app.kubernetes.io/name": "virt-advisor-operator",
                "control-plane": "controller-manager",
            }},
            "endpoints": [{
                "port": "metrics",
                "path": "/metrics",
                "scheme": "https",
                "interval": "30s",
                "bearerTokenFile": "",
                "tlsConfig": {
                    "caFile": "/etc/prometheus/configmaps/serving-certs-ca-bundle/service-ca.crt",
                    "certFile": format!("{certificates}/tls.crt"),
                    "keyFile": format!("{certificates}/tls.key"),
                    "serverName": format!("{SERVICE}.{NAMESPACE}.svc"),
                },
            }],
        },
    })
}

fn prometheus_role() -> [Value; 2] {
    let rbac = "rbac.authorization.k8s.io";
    let name = "virt-advisor-operator-prometheus";
    [
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "Role",
            "metadata": metadata(name),
            "rules": [{
                "apiGroups": [""],
                "resources": ["services", "endpoints", "pods"],
                "verbs": ["get", "list", "watch"],
            }],
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"),
            "kind": "RoleBinding",
            "metadata": metadata(name),
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}],
        }),
    ]
}
