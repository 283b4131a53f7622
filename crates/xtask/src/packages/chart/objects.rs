//! The objects of the chart: those of the description, with marks where values go.

use advisor::{
    admission::{self, PolicyMode, installed_operator},
    monitoring::AlertSettings,
};
use anyhow::Context;
use serde_json::{Value, json};

use super::template::{NAMESPACE, block, entries, optional, quoted, value, whole};
use crate::packages::{
    certificates,
    installation::{self, Settings, placed, the_only},
    workload::LABEL,
};

/// Lines of templates that are more than a value.
pub(super) const BLOCKS: [(&str, &str); 6] = [
    ("image", "image: {{ include \"virt-advisor-operator.image\" . | quote }}"),
    (
        "priority",
        "{{- with include \"virt-advisor-operator.priorityClassName\" . }}\npriorityClassName: {{ . }}\n{{- end }}",
    ),
    (
        "serving",
        "{{- if not .Values.certManager.enabled }}\nannotations:\n  \
         service.beta.openshift.io/serving-cert-secret-name: virt-advisor-operator-metrics-tls\n{{- end }}",
    ),
    ("ports", "{{- range .Values.networkPolicy.apiServerPorts }}\n- port: {{ . }}\n  protocol: TCP\n{{- end }}"),
    (
        "issuer",
        "issuerRef:\n  {{- with .Values.certManager.issuerRef }}\n  {{- toYaml . | nindent 4 }}\n  {{- else }}\n  kind: Issuer\n  \
         name: virt-advisor-operator-metrics\n  {{- end }}",
    ),
    (
        "tls",
        "tlsConfig:\n  {{- if .Values.certManager.enabled }}\n  ca:\n    secret:\n      key: ca.crt\n      \
         name: virt-advisor-operator-metrics-tls\n  serverName: virt-advisor-operator-metrics.{{ .Release.Namespace }}.svc\n  \
         {{- else }}\n  insecureSkipVerify: true\n  {{- end }}",
    ),
];

/// What the templates hold, by the conditions under which it is there.
pub(super) struct Parts {
    pub(super) rights: Vec<Value>,
    /// What example-profile needs in the namespace in which its object always is.
    pub(super) of_example: Vec<Value>,
    pub(super) priority_class: Value,
    pub(super) service: Value,
    pub(super) disruption_budget: Value,
    pub(super) network_policy: Value,
    pub(super) deployment: Value,
    pub(super) admission: Vec<Value>,
    pub(super) issuer: Value,
    pub(super) certificate: Value,
    /// Without the monitor.
    pub(super) monitoring: Vec<Value>,
    pub(super) monitor: Value,
    pub(super) monitor_by_token: Vec<Value>,
}

pub(super) fn parts(alerts: &AlertSettings) -> anyhow::Result<Parts> {
    let settings = Settings { image: String::new(), namespace: NAMESPACE.to_owned() };
    let is_of_example = |object: &Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        object["metadata"]["namespace"] == NAMESPACE && name.starts_with("virt-advisor-operator-manager-role")
    };
    let (of_example, rights) = installation::rights(&settings)?.into_iter().partition(is_of_example);
    let running = installation::running(&settings);
    let one = |kind: &str| the_only(&running, kind).cloned();
    let [issuer, certificate] = certificates::objects().map(|object| placed(object, &settings));
    let monitoring = installation::monitoring(alerts, &settings)?;
    let monitor = the_only(&monitoring, "ServiceMonitor")?.clone();
    Ok(Parts {
        rights,
        of_example,
        priority_class: one("PriorityClass")?,
        service: with(one("Service")?, "/metadata", "annotations", block("serving"))?,
        disruption_budget: one("PodDisruptionBudget")?,
        network_policy: with(one("NetworkPolicy")?, "/spec/egress/0", "ports", json!([block("ports")]))?,
        deployment: deployment(one("Deployment")?)?,
        admission: admission(&settings),
        issuer,
        certificate: with(certificate, "/spec", "issuerRef", block("issuer"))?,
        monitoring: monitoring.iter().filter(|object| object["kind"] != "ServiceMonitor").map(of_prometheus).collect(),
        monitor_by_token: by_token(&monitor)?,
        monitor,
    })
}

/// Definitions stay when the release is removed.
pub(super) fn kept(definitions: Vec<Value>) -> Vec<Value> {
    let keep = |mut object: Value| {
        object["metadata"]["annotations"]["helm.sh/resource-policy"] = "keep".into();
        object
    };
    definitions.into_iter().map(keep).collect()
}

/// The object with another value in a field of what a pointer leads to.
fn with(mut object: Value, at: &str, field: &str, value: Value) -> anyhow::Result<Value> {
    object.pointer_mut(at).with_context(|| format!("an installation has no {at}"))?[field] = value;
    Ok(object)
}

fn deployment(object: Value) -> anyhow::Result<Value> {
    let (pod, container) = ("/spec/template/spec", "/spec/template/spec/containers/0");
    let mut object = with(object, "/spec", "replicas", value("replicas"))?;
    for (at, field, mark) in [
        (container, "image", block("image")),
        (container, "imagePullPolicy", value("image.pullPolicy")),
        (container, "resources", whole("resources")),
        (pod, "affinity", optional("affinity")),
        (pod, "imagePullSecrets", optional("image.pullSecrets")),
        (pod, "nodeSelector", optional("nodeSelector")),
        (pod, "priorityClassName", block("priority")),
        (pod, "tolerations", optional("tolerations")),
    ] {
        object = with(object, at, field, mark)?;
    }
    let args = object.pointer_mut(&format!("{container}/args")).and_then(Value::as_array_mut);
    args.context("the operator has no arguments")?.push(entries("extraArgs"));
    Ok(object)
}

fn admission(settings: &Settings) -> Vec<Value> {
    let bound = |mut binding: Value| {
        binding["spec"]["validationActions"] = json!([value("admissionPolicy.action")]);
        binding
    };
    let bindings = admission::bindings(PolicyMode::Enforce).into_iter().map(bound);
    let policies = admission::policies(&installed_operator()).map(|policy| placed(policy, settings));
    policies.into_iter().chain(bindings).collect()
}

/// For the Prometheus of the values.
fn of_prometheus(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(subject) = object.pointer_mut("/subjects/0") {
        *subject = prometheus();
    }
    object
}

fn prometheus() -> Value {
    json!({
        "kind": "ServiceAccount",
        "name": quoted("monitoring.prometheus.serviceAccount"),
        "namespace": quoted("monitoring.prometheus.namespace"),
    })
}

/// A monitor for a Prometheus that sends its token, and the right to read the metrics with it.
fn by_token(monitor: &Value) -> anyhow::Result<Vec<Value>> {
    let endpoint = "/spec/endpoints/0";
    let file = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    let monitor = with(monitor.clone(), endpoint, "bearerTokenFile", file.into())?;
    let monitor = with(monitor, endpoint, "tlsConfig", block("tls"))?;
    let rbac = "rbac.authorization.k8s.io";
    let reader = json!({
        "apiVersion": format!("{rbac}/v1"),
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "virt-advisor-operator-prometheus", "labels": {LABEL.0: LABEL.1}},
        "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "virt-advisor-operator-metrics-reader"},
        "subjects": [prometheus()],
    });
    Ok(vec![monitor, reader])
}
