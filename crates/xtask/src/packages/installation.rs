//! The one description of an installation: every object of it, whole, in the order in which it is applied.
//!
//! Installers, chart and bundle are made from it, and tests compare what `config/default` renders to with it.

use advisor::{
    access::{self, CLIENT_CA_READER, NAMESPACE},
    admission::NAME_PREFIX,
    monitoring::{self, AlertSettings},
};
use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::workload::{self, LABEL};

/// What differs between installations.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) image: String,
    pub(crate) namespace: String,
}

impl Settings {
    /// In the namespace of OpenShift Virtualization.
    pub(crate) fn with_image(image: &str) -> Self {
        Settings { image: image.to_owned(), namespace: NAMESPACE.to_owned() }
    }
}

/// Definitions, rights and the operator. The namespace is not one of them: it may be somebody else's.
pub(crate) fn objects(settings: &Settings) -> anyhow::Result<Vec<Value>> {
    Ok([definitions()?, rights(settings)?, running(settings)].concat())
}

pub(crate) fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// The kinds of the advisor, without that of the lab.
pub(crate) fn definitions() -> anyhow::Result<Vec<Value>> {
    let files = api::crd::files();
    let ours = |path: &&str| path.starts_with("config/crd/advisor.");
    documents(files.iter().filter(|(path, _)| ours(path)).map(|(_, text)| text.as_str()))
}

/// The service account, what it may do, and roles for people.
pub(crate) fn rights(settings: &Settings) -> anyhow::Result<Vec<Value>> {
    let files = access::files();
    let objects = documents(files.iter().map(|(_, text)| text.as_str()))?;
    Ok(objects.into_iter().map(labeled).map(|object| placed(prefixed(object), settings)).collect())
}

/// What runs, and what belongs to it.
pub(crate) fn running(settings: &Settings) -> Vec<Value> {
    workload::objects(&settings.image).into_iter().map(|object| placed(prefixed(object), settings)).collect()
}

/// Alerts, the monitor, and the role of Prometheus, as `config/monitoring` has them.
pub(crate) fn monitoring(alerts: &AlertSettings, settings: &Settings) -> anyhow::Result<Vec<Value>> {
    let files = monitoring::files(alerts);
    let is_object = |path: &str| path.starts_with("config/monitoring/") && path.ends_with(".yaml");
    let manifests = files.iter().filter(|(path, _)| is_object(path) && !path.contains("kustomization"));
    let objects = documents(manifests.map(|(_, text)| text.as_str()))?;
    Ok(objects.into_iter().map(|object| placed(object, settings)).collect())
}

pub(super) fn documents<'a>(texts: impl Iterator<Item = &'a str>) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    for text in texts {
        let parsed: Vec<Value> = serde_saphyr::from_multiple(text).context("reading a generated file")?;
        objects.extend(parsed);
    }
    Ok(objects)
}

/// As the kustomization of `config/rbac` does it.
fn labeled(mut object: Value) -> Value {
    object["metadata"]["labels"][LABEL.0] = LABEL.1.into();
    object
}

/// As the kustomization of `config/default` does it: names, and what refers to them.
fn prefixed(mut object: Value) -> Value {
    let prefix = |name: &mut Value| {
        if let Some(short) = name.as_str().filter(|name| *name != CLIENT_CA_READER.1) {
            *name = format!("{NAME_PREFIX}{short}").into();
        }
    };
    for pointer in [
        "/metadata/name",
        "/roleRef/name",
        "/subjects/0/name",
        "/spec/template/spec/serviceAccountName",
        "/spec/template/spec/priorityClassName",
    ] {
        object.pointer_mut(pointer).map(prefix);
    }
    object
}

/// In the namespace of the settings instead of the usual one. Texts that name it follow.
pub(super) fn placed(object: Value, settings: &Settings) -> Value {
    match object {
        Value::String(text) => text.replace(NAMESPACE, &settings.namespace).into(),
        Value::Array(list) => list.into_iter().map(|value| placed(value, settings)).collect(),
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, placed(value, settings))).collect(),
        other => other,
    }
}

/// The object of a kind, if there is exactly one.
pub(crate) fn the_only<'a>(objects: &'a [Value], kind: &str) -> anyhow::Result<&'a Value> {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    match (found.next(), found.next()) {
        (Some(object), None) => Ok(object),
        _ => Err(anyhow!("an installation has not exactly one {kind}")),
    }
}
