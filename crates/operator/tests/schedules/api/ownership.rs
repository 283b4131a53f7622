//! Field ownership: what an ordinary write and a server-side apply do to an object and its `managedFields`.
//! Who wrote a status is kept, but not which of its fields.

use serde_json::{Value, json};

use super::{
    fields::{Fields, changes, dotted, find, from_tree, key, remove, set_by, tree, with_parents},
    shape::Shape,
};

/// The manager and the time of a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writer<'a> {
    pub(crate) manager: &'a str,
    pub(crate) version: &'a str,
    pub(crate) time: &'a str,
}

/// A field of another manager that an apply would set to another value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Conflict {
    pub(crate) manager: String,
    pub(crate) field: String,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    manager: String,
    operation: String,
    version: String,
    time: String,
    subresource: String,
    fields: Fields,
}

impl Entry {
    fn new(writer: Writer<'_>, operation: &str) -> Entry {
        Entry {
            manager: writer.manager.to_owned(),
            operation: operation.to_owned(),
            version: writer.version.to_owned(),
            time: writer.time.to_owned(),
            subresource: String::new(),
            fields: Fields::new(),
        }
    }

    fn is_of(&self, writer: Writer<'_>, operation: &str) -> bool {
        (self.manager.as_str(), self.operation.as_str(), self.subresource.as_str()) == (writer.manager, operation, "")
    }
}

/// The owner of everything that an object has, if it is applied for the first time and nobody is known to own anything.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

const UNMANAGED: [&str; 9] = [
    "f:name",
    "f:namespace",
    "f:uid",
    "f:creationTimestamp",
    "f:generation",
    "f:managedFields",
    "f:resourceVersion",
    "f:selfLink",
    "f:deletionTimestamp",
];

/// The fields that can be owned: neither the identity of an object nor its status.
fn is_managed(place: &[String]) -> bool {
    match place.first().map(String::as_str) {
        Some("f:apiVersion" | "f:kind" | "f:status") | None => false,
        Some("f:metadata") => place.get(1).is_some_and(|second| !UNMANAGED.contains(&second.as_str())),
        Some(_) => true,
    }
}

fn entries(object: Option<&Value>) -> Vec<Entry> {
    let entries = object.and_then(|object| object.pointer("/metadata/managedFields")).and_then(Value::as_array);
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let entry = |entry: &Value| Entry {
        manager: text(entry, "manager"),
        operation: text(entry, "operation"),
        version: text(entry, "apiVersion"),
        time: text(entry, "time"),
        subresource: text(entry, "subresource"),
        fields: from_tree(&entry["fieldsV1"]),
    };
    entries.into_iter().flatten().map(entry).collect()
}

fn store(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.fields.is_empty());
    entries.sort_by(|a, b| (&a.operation, &a.time, &a.manager).cmp(&(&b.operation, &b.time, &b.manager)));
    let written = |entry: &Entry| {
        let mut written = json!({
            "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.version, "time": entry.time,
            "fieldsType": "FieldsV1", "fieldsV1": tree(&entry.fields),
        });
        if !entry.subresource.is_empty() {
            written["subresource"] = entry.subresource.as_str().into();
        }
        written
    };
    match entries.is_empty() {
        true => drop(object["metadata"].as_object_mut().and_then(|members| members.remove("managedFields"))),
        false => object["metadata"]["managedFields"] = entries.iter().map(written).collect(),
    }
}

/// After a write of the status, its manager owns it. Nothing is noted on an object of which nobody owns anything.
pub(crate) fn own_status(object: &mut Value, writer: Writer<'_>) {
    let mut entries = entries(Some(object));
    let is_it = |entry: &Entry| entry.manager == writer.manager && entry.subresource == "status";
    if entries.is_empty() || entries.iter().any(is_it) {
        return;
    }
    let (subresource, fields) = ("status".to_owned(), from_tree(&json!({"f:status": {}})));
    entries.push(Entry { subresource, fields, ..Entry::new(writer, "Update") });
    store(object, entries);
}

/// After an ordinary write, its manager is the only owner of what it changed.
pub(crate) fn update(before: Option<&Value>, after: &mut Value, shape: &Shape, writer: Writer<'_>) {
    let nothing = json!({});
    let mut changes = changes(before.unwrap_or(&nothing), after, shape);
    changes.set.retain(|place| is_managed(place));
    changes.removed.retain(|place| is_managed(place));
    // A request may take entries out, but a request without any keeps them all.
    let mut entries = match after.pointer("/metadata/managedFields").and_then(Value::as_array) {
        Some(sent) if !sent.is_empty() => entries(Some(after)),
        _ => entries(before),
    };
    entries.retain(|entry| !entry.fields.is_empty());
    if before.is_some() && entries.is_empty() {
        return store(after, entries);
    }
    for entry in &mut entries {
        entry.fields.retain(|place| !changes.set.contains(place) && !changes.removed.contains(place));
    }
    if !changes.set.is_empty() {
        let position = entries.iter().position(|entry| entry.is_of(writer, "Update")).unwrap_or_else(|| {
            entries.push(Entry::new(writer, "Update"));
            entries.len() - 1
        });
        entries[position].time = writer.time.to_owned();
        entries[position].fields.extend(changes.set);
    }
    store(after, entries);
}

/// Server-side apply. Without force, conflicts with other managers are returned instead.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    shape: &Shape,
    writer: Writer<'_>,
    force: bool,
) -> Result<Value, Vec<Conflict>> {
    let mut entries = entries(live);
    if let Some(live) = live.filter(|_| entries.is_empty()) {
        let mut fields = set_by(live, shape);
        fields.retain(|place| is_managed(place));
        let writer = Writer { manager: BEFORE_FIRST_APPLY, ..writer };
        entries.push(Entry { fields, ..Entry::new(writer, "Update") });
    }
    let mut wanted = set_by(config, shape);
    wanted.retain(|place| is_managed(place));
    let mut merged = merge(live, config, shape);
    // Fields that the manager no longer applies and nobody else owns are removed.
    let ours = entries.iter().position(|entry| entry.is_of(writer, "Apply"));
    let last = ours.map(|position| entries.remove(position));
    if let Some(last) = &last {
        let kept = entries.iter().flat_map(|entry| &entry.fields).chain(&wanted).cloned().collect();
        let kept = with_parents(&kept);
        for place in with_parents(&last.fields).difference(&kept).filter(|place| is_managed(place)) {
            remove(&mut merged, place);
        }
    }
    let nothing = json!({});
    let changes = changes(live.unwrap_or(&nothing), &merged, shape);
    let taken = |entry: &Entry| -> Vec<Conflict> {
        let manager = entry.manager.clone();
        let fields = entry.fields.intersection(&changes.set);
        fields.map(|place| Conflict { manager: manager.clone(), field: dotted(place) }).collect()
    };
    let conflicts: Vec<Conflict> = entries.iter().flat_map(taken).collect();
    if !conflicts.is_empty() && !force {
        return Err(conflicts);
    }
    for entry in &mut entries {
        entry.fields.retain(|place| !changes.set.contains(place) && !changes.removed.contains(place));
    }
    let same = last.filter(|last| last.fields == wanted && changes.set.is_empty() && changes.removed.is_empty());
    entries.push(same.unwrap_or_else(|| Entry { fields: wanted, ..Entry::new(writer, "Apply") }));
    store(&mut merged, entries);
    Ok(merged)
}

pub(crate) fn merge(live: Option<&Value>, config: &Value, shape: &Shape) -> Value {
    match (shape, live, config) {
        (Shape::Map { .. } | Shape::Undeclared, Some(Value::Object(live)), Value::Object(config)) => {
            let mut merged = live.clone();
            for (name, value) in config {
                merged.insert(name.clone(), merge(live.get(name), value, shape.member(name).0));
            }
            Value::Object(merged)
        }
        (Shape::Keyed { keys, entry }, Some(Value::Array(live)), Value::Array(config)) => {
            let mut merged = live.clone();
            for value in config {
                let step = [key(keys, value)];
                let known = merged.iter().position(|known| find(&json!([known]), &step).is_some());
                match known {
                    Some(position) => merged[position] = merge(Some(&merged[position]), value, entry),
                    None => merged.push(value.clone()),
                }
            }
            Value::Array(merged)
        }
        (Shape::Set, Some(Value::Array(live)), Value::Array(config)) => {
            let new = config.iter().filter(|value| !live.contains(value));
            live.iter().chain(new).cloned().collect()
        }
        _ => config.clone(),
    }
}
