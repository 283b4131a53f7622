//! Server-side apply in memory, only for objects whose fields are reached through maps.

use std::collections::BTreeSet;

use api::virt_platform_config::TakeOver;
use serde_json::{Map, Value, json};

type Path = Vec<String>;

/// Applies fields by force. Returns the new object, and whose fields were taken over.
pub fn apply(live: Option<&Value>, fields: &Value, schema: Option<&Value>, manager: &str) -> (Value, Vec<TakeOver>) {
    let mut object = live.cloned().unwrap_or_else(|| json!({}));
    for part in ["apiVersion", "kind"] {
        object[part] = fields[part].clone();
    }
    for part in ["name", "namespace"] {
        if let Some(value) = fields["metadata"].get(part) {
            object["metadata"][part] = value.clone();
        }
    }
    let new = leaves(&tree(fields, schema));
    let mut managers = entries(&object);
    let old = position(&managers, manager).map(|at| managers.remove(at).1).unwrap_or_default();

    let mut takes_over = Vec::new();
    for (entry, owned) in &mut managers {
        let taken: Vec<Path> = owned
            .iter()
            .filter(|theirs| {
                new.iter().any(|ours| overlap(ours, theirs)) && get(&object, theirs) != get(fields, theirs)
            })
            .cloned()
            .collect();
        owned.retain(|path| !taken.contains(path));
        if !taken.is_empty() {
            let manager = entry["manager"].as_str().unwrap_or_default().to_owned();
            takes_over.push(TakeOver { manager, fields: taken.iter().map(|path| path.join(".")).collect() });
        }
    }
    for path in old.difference(&new).filter(|path| !managers.iter().any(|(_, owned)| owned.contains(*path))) {
        remove(&mut object, path);
    }
    for path in &new {
        *slot(&mut object, path) = get(fields, path).cloned().unwrap_or_default();
    }
    managers.push((json!({"manager": manager, "operation": "Apply"}), new));
    write(&mut object, managers);
    if let Some(schema) = schema {
        object = defaulted(object, schema);
    }
    (object, takes_over)
}

/// Fills in the defaults of a schema, as the API server does when an object is written or read.
pub fn defaulted(mut value: Value, schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object);
    if let Some(map) = value.as_object_mut() {
        for (name, below) in properties.into_iter().flatten() {
            if let (None, Some(default)) = (map.get(name), below.get("default")) {
                map.insert(name.clone(), default.clone());
            }
            if let Some(value) = map.get_mut(name) {
                *value = defaulted(value.take(), below);
            }
        }
    }
    value
}

/// Adds an entry for a manager that has set all fields of an object.
pub fn record(object: &mut Value, manager: &str, operation: &str) {
    let mut managers = entries(object);
    let owned = leaves(&tree(object, None));
    managers.push((json!({"manager": manager, "operation": operation}), owned));
    write(object, managers);
}

/// Removes a field and everything below it from all owners.
pub fn disown(object: &mut Value, pointer: &str) {
    let path: Path = pointer.split('/').skip(1).map(str::to_owned).collect();
    let mut managers = entries(object);
    for (_, owned) in &mut managers {
        owned.retain(|leaf| !leaf.starts_with(&path));
    }
    write(object, managers);
}

fn position(managers: &[(Value, BTreeSet<Path>)], manager: &str) -> Option<usize> {
    let ours = |entry: &Value| entry["manager"] == manager && entry["operation"] == "Apply";
    managers.iter().position(|(entry, _)| ours(entry))
}

fn entries(object: &Value) -> Vec<(Value, BTreeSet<Path>)> {
    let entries = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let split = |entry: &Value| {
        let owned = leaves(&entry["fieldsV1"]);
        let mut head = entry.clone();
        head.as_object_mut().unwrap().remove("fieldsV1");
        (head, owned)
    };
    entries.into_iter().flatten().map(split).collect()
}

fn write(object: &mut Value, managers: Vec<(Value, BTreeSet<Path>)>) {
    let entry = |(mut head, owned): (Value, BTreeSet<Path>)| {
        let mut fields = json!({});
        for path in owned {
            let path: Path = path.iter().map(|name| format!("f:{name}")).collect();
            *slot(&mut fields, &path) = json!({});
        }
        head["fieldsV1"] = fields;
        head
    };
    let kept = managers.into_iter().filter(|(_, owned)| !owned.is_empty());
    object["metadata"]["managedFields"] = kept.map(entry).collect();
}

/// The fields of an object as `fieldsV1`, without its identity and the server's fields.
fn tree(object: &Value, schema: Option<&Value>) -> Value {
    let mut fields = object.clone();
    if let Some(map) = fields.as_object_mut() {
        map.retain(|name, _| !["apiVersion", "kind", "status"].contains(&name.as_str()));
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| ["labels", "annotations"].contains(&name.as_str()));
        }
        map.retain(|name, value| name != "metadata" || *value != json!({}));
    }
    nested(&fields, schema)
}

fn nested(value: &Value, schema: Option<&Value>) -> Value {
    let atomic = schema.is_some_and(|schema| schema["x-kubernetes-map-type"] == "atomic");
    let map = value.as_object().filter(|_| !atomic);
    let below = |name: &String| schema.and_then(|schema| schema.get("properties")?.get(name));
    let fields = map.into_iter().flatten().map(|(name, value)| (format!("f:{name}"), nested(value, below(name))));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn leaves(tree: &Value) -> BTreeSet<Path> {
    let mut found = BTreeSet::new();
    let mut open = vec![(Path::new(), tree)];
    while let Some((path, tree)) = open.pop() {
        let fields =
            tree.as_object().into_iter().flatten().filter_map(|(key, below)| Some((key.strip_prefix("f:")?, below)));
        let below: Vec<_> =
            fields.map(|(name, below)| ([path.as_slice(), &[name.to_owned()]].concat(), below)).collect();
        if below.is_empty() && !path.is_empty() {
            found.insert(path);
        }
        open.extend(below);
    }
    found
}

fn overlap(a: &[String], b: &[String]) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

fn get<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn slot<'a>(object: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(object, |value, name| &mut value[name.as_str()])
}

fn remove(object: &mut Value, path: &[String]) {
    let Some((name, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, name| value.get_mut(name));
    if let Some(map) = parent.and_then(Value::as_object_mut) {
        map.remove(name);
    }
}
