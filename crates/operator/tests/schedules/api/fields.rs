//! Sets of fields as in `managedFields`, and the fields of an object by its schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::shape::Shape;

/// The path of a field, in the notation of `fieldsV1`: `f:spec`, `k:{"type":"Ready"}`, `v:"a"`.
pub(crate) type Place = Vec<String>;

pub(crate) type Fields = BTreeSet<Place>;

/// The fields that a value sets.
pub(crate) fn set_by(value: &Value, shape: &Shape) -> Fields {
    let mut found = Fields::new();
    walk(value, shape, &Place::new(), &mut found);
    found
}

fn walk(value: &Value, shape: &Shape, place: &Place, found: &mut Fields) {
    match (shape, value) {
        (Shape::Map { .. } | Shape::Undeclared, Value::Object(members)) => {
            for (name, below) in members {
                let (shape, declared) = shape.member(name);
                let inner = deeper(place, format!("f:{name}"));
                walk(below, shape, &inner, found);
                let is_empty = below.is_null() || below.as_object().is_some_and(Map::is_empty);
                if is_empty || !declared {
                    found.insert(inner);
                }
            }
        }
        (Shape::Keyed { keys, entry }, Value::Array(entries)) => {
            for below in entries {
                let inner = deeper(place, key(keys, below));
                walk(below, entry, &inner, found);
                found.insert(inner);
            }
        }
        (Shape::Set, Value::Array(values)) => {
            found.extend(values.iter().map(|value| deeper(place, format!("v:{value}"))))
        }
        _ if place.is_empty() => {}
        _ => {
            found.insert(place.clone());
        }
    }
}

fn deeper(place: &Place, step: String) -> Place {
    place.iter().cloned().chain([step]).collect()
}

/// The key of a list entry.
pub(crate) fn key(keys: &[String], entry: &Value) -> String {
    let parts: Map<String, Value> = keys.iter().map(|name| (name.clone(), entry[name.as_str()].clone())).collect();
    format!("k:{}", Value::Object(parts))
}

/// The changed fields between two values.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// Set to another value, or newly set.
    pub(crate) set: Fields,
    pub(crate) removed: Fields,
}

pub(crate) fn changes(before: &Value, after: &Value, shape: &Shape) -> Changes {
    let mut changes = Changes::default();
    compare(Some(before), Some(after), shape, &Place::new(), &mut changes);
    changes
}

fn compare(before: Option<&Value>, after: Option<&Value>, shape: &Shape, place: &Place, changes: &mut Changes) {
    if before == after {
        return;
    }
    let is_empty = |value: Option<&Value>| value.is_none_or(|value| value.as_object().is_none_or(Map::is_empty));
    let is_map = |value: Option<&Value>| value.is_none_or(Value::is_object);
    let merges = matches!(shape, Shape::Map { .. } | Shape::Undeclared) && is_map(before) && is_map(after);
    if merges && !(is_empty(before) && is_empty(after)) {
        if before.is_none() {
            changes.set.insert(place.clone());
        }
        if after.is_none() {
            changes.removed.insert(place.clone());
        }
        let members = |value: Option<&Value>| -> Vec<String> {
            value.and_then(Value::as_object).into_iter().flat_map(Map::keys).cloned().collect()
        };
        for name in members(before).into_iter().chain(members(after)).collect::<BTreeSet<String>>() {
            let [before, after] = [before, after].map(|value| value.and_then(|value| value.get(&name)));
            compare(before, after, shape.member(&name).0, &deeper(place, format!("f:{name}")), changes);
        }
        return;
    }
    if let Shape::Keyed { .. } | Shape::Set = shape {
        let fields = |value: Option<&Value>| value.map(|value| under(value, shape, place)).unwrap_or_default();
        let (old, new) = (fields(before), fields(after));
        let value = |root: Option<&Value>, at: &Place| root.and_then(|root| find(root, &at[place.len()..])).cloned();
        changes.removed.extend(old.difference(&new).cloned());
        changes.set.extend(new.into_iter().filter(|at| !old.contains(at) || value(before, at) != value(after, at)));
        return;
    }
    match after {
        Some(_) => changes.set.insert(place.clone()),
        None => changes.removed.insert(place.clone()),
    };
}

fn under(value: &Value, shape: &Shape, place: &Place) -> Fields {
    let mut found = Fields::new();
    walk(value, shape, place, &mut found);
    found
}

/// The value at a path.
pub(crate) fn find<'a>(root: &'a Value, place: &[String]) -> Option<&'a Value> {
    place.iter().try_fold(root, |value, step| match step.split_once(':')? {
        ("f", name) => value.get(name),
        ("k", key) => value.as_array()?.iter().find(|entry| has_key(entry, key)),
        (_, wanted) => value.as_array()?.iter().find(|entry| is_text(entry, wanted)),
    })
}

fn has_key(entry: &Value, key: &str) -> bool {
    let key: Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
    key.iter().all(|(name, value)| entry.get(name) == Some(value))
}

/// Whether a value has this notation.
fn is_text(value: &Value, text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|wanted| wanted == *value)
}

/// Removes the field at a path.
pub(crate) fn remove(root: &mut Value, place: &[String]) {
    let Some((last, parents)) = place.split_last() else { return };
    let parent = parents.iter().try_fold(root, |value, step| match step.split_once(':')? {
        ("f", name) => value.get_mut(name),
        ("k", key) => value.as_array_mut()?.iter_mut().find(|entry| has_key(entry, key)),
        _ => None,
    });
    match (parent, last.split_once(':')) {
        (Some(Value::Object(members)), Some(("f", name))) => {
            members.remove(name);
        }
        (Some(Value::Array(entries)), Some(("k", key))) => entries.retain(|entry| !has_key(entry, key)),
        (Some(Value::Array(entries)), Some(("v", value))) => entries.retain(|entry| !is_text(entry, value)),
        _ => {}
    }
}

/// All fields and their parents.
pub(crate) fn with_parents(fields: &Fields) -> Fields {
    fields.iter().flat_map(|place| (1..=place.len()).map(|length| place[..length].to_vec())).collect()
}

/// The tree of `fieldsV1`.
pub(crate) fn tree(fields: &Fields) -> Value {
    let mut root = json!({});
    for place in fields {
        place.iter().fold(&mut root, |tree, step| &mut tree[step]);
    }
    fn finish(tree: &mut Value, fields: &Fields, place: &Place) {
        if tree.is_null() {
            *tree = json!({});
        }
        let Some(members) = tree.as_object_mut() else { return };
        let is_member = fields.contains(place);
        for (step, below) in members.iter_mut() {
            finish(below, fields, &deeper(place, step.clone()));
        }
        if is_member && !members.is_empty() {
            members.insert(".".into(), json!({}));
        }
    }
    finish(&mut root, fields, &Place::new());
    root
}

pub(crate) fn from_tree(tree: &Value) -> Fields {
    fn collect(tree: &Value, place: &Place, found: &mut Fields) {
        let members = tree.as_object();
        if members.is_none_or(Map::is_empty) {
            found.insert(place.clone());
        }
        for (step, below) in members.into_iter().flatten() {
            match step.as_str() {
                "." => {
                    found.insert(place.clone());
                }
                _ => collect(below, &deeper(place, step.clone()), found),
            }
        }
    }
    let mut found = Fields::new();
    collect(tree, &Place::new(), &mut found);
    found.remove(&Place::new());
    found
}

/// `.spec.profiles`, as conflicts name fields.
pub(crate) fn dotted(place: &Place) -> String {
    let part = |step: &String| match step.split_once(':') {
        Some(("f", name)) => format!(".{name}"),
        Some((_, rest)) => format!("[{rest}]"),
        None => String::new(),
    };
    place.iter().map(part).collect()
}
