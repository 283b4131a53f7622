//! Differences between the answers of the real API server and of the model.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    api::{Answer, Request, Target},
    recorder::Exchange,
};

/// Where two answers differ.
pub(super) fn differences(request: &Request, exchange: &Exchange, answer: &Answer) -> Vec<String> {
    let real = &exchange.answer;
    if exchange.code != answer.code {
        return vec![format!("{} {} and {} {}", exchange.code, real["message"], answer.code, answer.body["message"])];
    }
    let Some(target) = Target::of(&request.path) else { return Vec::new() };
    if exchange.code >= 400 {
        return match (refusal(real), refusal(&answer.body)) {
            (real, ours) if real == ours => Vec::new(),
            (real, ours) => vec![format!("{real} and {ours}")],
        };
    }
    // The answers of the real server about these have more fields than the operator reads.
    if ["customresourcedefinitions", "namespaces", "events", "leases"].contains(&target.resource.plural.as_str()) {
        return Vec::new();
    }
    let schema =
        target.resource.definition.as_ref().map(|crd| &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]);
    let mut complaints = Vec::new();
    match (real["items"].as_array(), answer.body["items"].as_array()) {
        (Some(real), Some(ours)) if real.len() == ours.len() => {
            for (real, ours) in real.iter().zip(ours) {
                same_object(real, ours, schema, &mut complaints);
            }
        }
        (Some(real), Some(ours)) => complaints.push(format!("{} and {} items", real.len(), ours.len())),
        _ if request.method == Method::DELETE => {}
        _ => same_object(real, &answer.body, schema, &mut complaints),
    }
    complaints
}

/// The part of a refusal that the operator reads.
fn refusal(body: &Value) -> Value {
    if body.is_string() || body["code"].is_null() {
        return "nothing here".into();
    }
    let details = &body["details"];
    let causes = details["causes"].as_array().into_iter().flatten();
    let conflicts = causes.filter(|cause| cause["reason"] == "FieldManagerConflict").map(|cause| {
        let manager = cause["message"].as_str().and_then(|message| message.split('"').nth(1)).unwrap_or_default();
        format!("{} of {manager}", cause["field"].as_str().unwrap_or_default())
    });
    let conflicts: BTreeSet<String> = conflicts.collect();
    let is_conflict = !conflicts.is_empty() || body["code"] == 422;
    let about = if is_conflict { json!({}) } else { json!({"kind": details["kind"], "name": details["name"]}) };
    json!({"reason": body["reason"], "about": about, "conflicts": conflicts})
}

fn same_object(real: &Value, ours: &Value, schema: Option<&Value>, complaints: &mut Vec<String>) {
    let stripped = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            for name in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(name);
            }
        }
        object
    };
    compare(&stripped(real), &stripped(ours), schema, "", complaints);
    let (real, ours) = (owners(real), owners(ours));
    if real.keys().ne(ours.keys()) {
        let names = |owners: &BTreeMap<(String, String), Value>| format!("{:?}", owners.keys().collect::<Vec<_>>());
        complaints.push(format!("owners {} and {}", names(&real), names(&ours)));
        return;
    }
    for ((manager, operation), fields) in &real {
        let ours = &ours[&(manager.clone(), operation.clone())];
        // An object that is created without apply has its creator as the owner of the defaults, too.
        let same = if operation == "Apply" { fields == ours } else { contains(fields, ours) };
        if !same {
            complaints.push(format!("{manager} ({operation}) owns {fields} and {ours}"));
        }
    }
}

/// The managed fields of all managers, without the status.
fn owners(object: &Value) -> BTreeMap<(String, String), Value> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let of_object =
        entries.into_iter().flatten().filter(|entry| entry["subresource"].as_str().is_none_or(str::is_empty));
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    of_object.map(|entry| ((text(entry, "manager"), text(entry, "operation")), entry["fieldsV1"].clone())).collect()
}

fn contains(real: &Value, ours: &Value) -> bool {
    match (real.as_object(), ours.as_object()) {
        (Some(real), Some(ours)) => {
            ours.iter().all(|(name, below)| real.get(name).is_some_and(|real| contains(real, below)))
        }
        _ => real == ours,
    }
}

/// Where two values differ, except for defaults.
fn compare(real: &Value, ours: &Value, schema: Option<&Value>, path: &str, complaints: &mut Vec<String>) {
    if let (Value::Object(real), Value::Object(ours)) = (real, ours) {
        let names: BTreeSet<&String> = real.keys().chain(ours.keys()).collect();
        for name in names {
            let below = schema.and_then(|schema| schema["properties"].get(name));
            let is_default = below.is_some_and(|schema| schema.get("default").is_some());
            match (real.get(name), ours.get(name)) {
                (Some(_), None) if is_default => {}
                (real, ours) => {
                    let nothing = Value::Object(Map::new());
                    let (real, ours) = (real.unwrap_or(&Value::Null), ours.unwrap_or(&Value::Null));
                    let ours = if real.is_object() && ours.is_null() { &nothing } else { ours };
                    compare(real, ours, below, &format!("{path}.{name}"), complaints);
                }
            }
        }
        return;
    }
    if real != ours {
        let short = |value: &Value| value.to_string().chars().take(200).collect::<String>();
        complaints.push(format!("{path}: {} and {}", short(real), short(ours)));
    }
}
