//! What can be set in the chart: one table, from which its values, their JSON schema and its README are made.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::{
    image::reference::ImageReference,
    packages::{
        MARK, VERSION,
        workload::{API_SERVER_PORTS, resources},
    },
};

/// One value.
pub(super) struct Setting {
    /// For example `image.tag`.
    path: &'static str,
    about: &'static str,
    default: Value,
    /// The JSON schema, without the description.
    schema: Value,
}

fn setting(path: &'static str, about: &'static str, default: Value, schema: Value) -> Setting {
    Setting { path, about, default, schema }
}

/// All values, for an image of the operator. The tag of this version is left out.
pub(super) fn settings(image: &ImageReference) -> Vec<Setting> {
    let tag = image.tag.as_deref().filter(|tag| *tag != VERSION).unwrap_or_default();
    let digest = image.digest.as_deref().unwrap_or_default();
    let text = || json!({"type": "string"});
    let switch = || json!({"type": "boolean"});
    let object = || json!({"type": "object"});
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let ports = json!({"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 1, "maximum": 65535}});
    vec![
        setting(
            "image.repository",
            "The image of the operator.",
            json!(image.name),
            json!({"type": "string", "minLength": 1}),
        ),
        setting("image.tag", "Its tag. Empty: the version of the chart.", json!(tag), text()),
        setting(
            "image.digest",
            "Its digest, which counts more than the tag.",
            json!(digest),
            json!({"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}),
        ),
        setting(
            "image.pullPolicy",
            "When a node pulls it.",
            json!("IfNotPresent"),
            json!({"enum": ["Always", "IfNotPresent", "Never"]}),
        ),
        setting("image.pullSecrets", "Secrets with which it is pulled, as in a pod.", json!([]), list()),
        setting(
            "replicas",
            "One works, the others wait for its lease.",
            json!(2),
            json!({"type": "integer", "minimum": 0}),
        ),
        setting("resources", "Measured: 12 MiB at rest, 14 MiB after 50 plans.", resources(), object()),
        setting(
            "extraArgs",
            "Further options of `virt-advisor operator`, for example --log-level=debug.",
            json!([]),
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        setting(
            "nodeSelector",
            "Labels of the nodes on which it runs.",
            json!({"kubernetes.io/os": "linux"}),
            object(),
        ),
        setting("tolerations", "Taints that it tolerates, as in a pod.", json!([]), list()),
        setting(
            "affinity",
            "As in a pod. Replicas are on different nodes and in different zones where that is possible.",
            json!({}),
            object(),
        ),
        setting(
            "priorityClass.create",
            "A class by which it is scheduled early and evicted late, and preempts nothing.",
            json!(true),
            switch(),
        ),
        setting("priorityClass.name", "A class that exists, where none is created.", json!(""), text()),
        setting(
            "crds.install",
            "Install and upgrade the definitions. They and all configurations stay when the release is removed.",
            json!(true),
            switch(),
        ),
        setting("podDisruptionBudget.enabled", "Drains take one replica at a time.", json!(true), switch()),
        setting(
            "networkPolicy.enabled",
            "Only probes and metrics in, only API server and DNS out.",
            json!(true),
            switch(),
        ),
        setting(
            "networkPolicy.apiServerPorts",
            "The ports of API servers themselves, not of their Service.",
            json!(API_SERVER_PORTS),
            ports,
        ),
        setting(
            "admissionPolicy.enabled",
            "The API server refuses plans that nobody approved by their digest.",
            json!(false),
            switch(),
        ),
        setting(
            "admissionPolicy.action",
            "Deny refuses, Audit only writes to the audit log.",
            json!("Deny"),
            json!({"enum": ["Deny", "Audit"]}),
        ),
        setting(
            "monitoring.enabled",
            "Alerts and a ServiceMonitor. Needs the kinds of the Prometheus operator.",
            json!(false),
            switch(),
        ),
        setting(
            "monitoring.authentication",
            "How Prometheus shows who it is: ClientCertificate on OpenShift, Token elsewhere.",
            json!("ClientCertificate"),
            json!({"enum": ["ClientCertificate", "Token"]}),
        ),
        setting(
            "monitoring.prometheus.serviceAccount",
            "The service account of Prometheus.",
            json!("prometheus-k8s"),
            json!({"type": "string", "minLength": 1}),
        ),
        setting(
            "monitoring.prometheus.namespace",
            "Its namespace.",
            json!("openshift-monitoring"),
            json!({"type": "string", "minLength": 1}),
        ),
        setting(
            "certManager.enabled",
            "Have the certificate of the metrics from cert-manager.",
            json!(false),
            switch(),
        ),
        setting("certManager.issuerRef", "Who signs it. Empty: an issuer that signs by itself.", json!({}), object()),
    ]
}

/// The `values.yaml` of the chart.
pub(super) fn yaml(settings: &[Setting]) -> String {
    let mut text = MARK.to_owned();
    let mut parents: Vec<&str> = Vec::new();
    for setting in settings {
        let mut names: Vec<&str> = setting.path.split('.').collect();
        let name = names.pop().unwrap_or_default();
        let shared = names.iter().zip(&parents).take_while(|(a, b)| a == b).count();
        for (depth, parent) in names.iter().enumerate().skip(shared) {
            let _ = writeln!(text, "{}{parent}:", "  ".repeat(depth));
        }
        let indent = "  ".repeat(names.len());
        let _ = writeln!(text, "{indent}# {}", setting.about);
        // JSON is YAML.
        let _ = writeln!(text, "{indent}{name}: {}", setting.default);
        parents = names;
    }
    text
}

/// The `values.schema.json` of the chart. Other names than these are refused.
pub(super) fn schema(settings: &[Setting]) -> String {
    let mut root = group();
    for setting in settings {
        let mut names: Vec<&str> = setting.path.split('.').collect();
        let name = names.pop().unwrap_or_default();
        let mut place = &mut root;
        for parent in names {
            let properties = &mut place["properties"];
            if properties[parent].is_null() {
                properties[parent] = group();
            }
            place = &mut properties[parent];
        }
        let mut schema = setting.schema.clone();
        schema["description"] = setting.about.into();
        schema["default"] = setting.default.clone();
        place["properties"][name] = schema;
    }
    // What a parent chart shares with all of its charts.
    root["properties"]["global"] = json!({"type": "object"});
    root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    root["title"] = "Values of the chart virt-advisor-operator".into();
    format!("{root:#}\n")
}

fn group() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": Map::new()})
}

/// The rows of a table in Markdown.
pub(super) fn table(settings: &[Setting]) -> String {
    settings.iter().map(|it| format!("| `{}` | `{}` | {} |\n", it.path, it.default, it.about)).collect()
}
