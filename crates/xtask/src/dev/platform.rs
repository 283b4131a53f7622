//! Stand-ins for the kinds of others on a cluster that does not have them, and a platform at rest.
//!
//! A definition that does not carry our label is the real one. It is left alone, and so are the objects of its kind.

use std::{collections::BTreeSet, fs};

use anyhow::Context;
use serde_json::Value;

use super::Pools;
use crate::{kubectl::Kubectl, root};

const DEFINITIONS: &str = "config/crd/third-party";
const OBJECTS: &str = "config/samples/third-party";
const STATUS: &str = "config/samples/third-party/status.yaml";
const LABEL: &str = "advisor.kubevirt.io/stand-in";

/// Group and kind.
type Kind = (String, String);

pub(super) fn install(kubectl: &Kubectl) -> anyhow::Result<Pools> {
    println!("\n== Stand-ins for the kinds of others (label {LABEL})");
    let real = install_definitions(kubectl)?;
    println!("\n== A platform at rest");
    install_objects(kubectl, &real)?;
    let is_real = real.iter().any(|(_, kind)| kind == "MachineConfigPool");
    Ok(if is_real { Pools::OfOthers } else { Pools::Ours })
}

/// Returns the kinds that have real definitions.
fn install_definitions(kubectl: &Kubectl) -> anyhow::Result<BTreeSet<Kind>> {
    let definitions = kubectl.kustomize(DEFINITIONS)?;
    let found = existing(kubectl, &definitions)?;
    let (real, stand_ins): (Vec<_>, Vec<_>) =
        definitions.into_iter().partition(|definition| is_real(definition, &found));
    for definition in &real {
        println!("{} is not a stand-in of ours: left alone, with all objects of its kind", name(definition));
    }
    if !stand_ins.is_empty() {
        kubectl.run_on(&["apply", "--server-side", "--force-conflicts"], &stand_ins)?;
        let mut wait = vec!["wait", "--for=condition=Established", "--timeout=60s", "crd"];
        wait.extend(stand_ins.iter().map(name));
        kubectl.run(&wait)?;
    }
    let kind = |definition: &Value| {
        let text = |path: &str| definition.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        (text("/spec/group"), text("/spec/names/kind"))
    };
    Ok(real.iter().map(kind).collect())
}

/// Whether there is a definition of this name without our label.
fn is_real(definition: &Value, found: &[Value]) -> bool {
    found.iter().any(|found| name(found) == name(definition) && found["metadata"]["labels"][LABEL] != "true")
}

/// Creates the objects that are missing. Those that exist may have been changed by a person and stay as they are.
fn install_objects(kubectl: &Kubectl, real: &BTreeSet<Kind>) -> anyhow::Result<()> {
    let is_ours = |object: &Value| !real.contains(&kind(object));
    let wanted: Vec<Value> = kubectl.kustomize(OBJECTS)?.into_iter().filter(is_ours).collect();
    let found = existing(kubectl, &wanted)?;
    let missing: Vec<Value> = wanted.into_iter().filter(|wanted| find(&found, wanted).is_none()).collect();
    match missing.is_empty() {
        true => println!("it is there already"),
        false => kubectl.run_on(&["apply", "--server-side"], &missing)?,
    }
    let text = fs::read_to_string(root().join(STATUS)).context(STATUS)?;
    let statuses: Vec<Value> = serde_saphyr::from_multiple(&text).context(STATUS)?;
    let statuses: Vec<Value> = statuses.into_iter().filter(is_ours).collect();
    let found = existing(kubectl, &statuses)?;
    let has_none = |status: &Value| find(&found, status).is_some_and(|object| object.get("status").is_none());
    let statuses: Vec<Value> = statuses.into_iter().filter(has_none).collect();
    match statuses.is_empty() {
        true => Ok(()),
        // Whoever looks after pools may have reported meanwhile, and reports again what is different.
        false => kubectl.run_on(&["apply", "--server-side", "--force-conflicts", "--subresource=status"], &statuses),
    }
}

/// Those of the objects that exist, as they are in the cluster.
fn existing(kubectl: &Kubectl, objects: &[Value]) -> anyhow::Result<Vec<Value>> {
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let text = kubectl.read_on(&["get", "--ignore-not-found", "-o", "json"], objects)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut found: Value = serde_json::from_str(&text)?;
    // One object comes alone, several in a list.
    Ok(match found["items"].take() {
        Value::Array(items) => items,
        _ => vec![serde_json::from_str(&text)?],
    })
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn kind(object: &Value) -> Kind {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    (group.to_owned(), object["kind"].as_str().unwrap_or_default().to_owned())
}

/// The object of that kind, namespace and name, in whatever version it is.
fn find<'a>(objects: &'a [Value], wanted: &Value) -> Option<&'a Value> {
    let namespace = |object: &Value| object["metadata"]["namespace"].as_str().map(str::to_owned);
    let place = |object: &Value| (kind(object), namespace(object), name(object).to_owned());
    objects.iter().find(|object| place(object) == place(wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_without_our_label_is_the_real_one() {
        let definition = |labels: Value| json!({"metadata": {"name": "things.example.com", "labels": labels}});
        let ours = definition(json!({LABEL: "true"}));
        assert!(!is_real(&ours, &[]));
        assert!(!is_real(&ours, &[definition(json!({LABEL: "true"}))]));
        assert!(is_real(&ours, &[definition(json!({}))]) && is_real(&ours, &[definition(Value::Null)]));
        assert!(is_real(&ours, &[definition(json!({LABEL: "false"}))]));
        assert!(!is_real(&ours, &[json!({"metadata": {"name": "others.example.com"}})]));
    }

    #[test]
    fn objects_are_the_same_in_whatever_version_they_are_served() {
        let object = |version: &str, namespace: Option<&str>| json!({"apiVersion": version, "kind": "A", "metadata": {"name": "a", "namespace": namespace}});
        let there = [object("g/v1", Some("n"))];
        assert_eq!(find(&there, &object("g/v1beta1", Some("n"))), there.first());
        assert_eq!(find(&there, &object("g/v1", Some("other"))), None);
        assert_eq!(find(&there, &object("v1", Some("n"))), None);
    }
}
