//! What definitions of custom kinds say of their objects.

use serde_json::Value;

use super::server_side_apply;
use crate::schema;

/// An object with the defaults of the first version in its definition, as the API server stores it.
pub fn stored(definition: &Value, object: Value) -> Value {
    server_side_apply::defaulted(object, definition.pointer("/spec/versions/0/schema/openAPIV3Schema").unwrap())
}

/// The fields of `spec` that the schema of a custom kind does not have.
pub fn unknown_fields(spec: &Value, schema: &Value) -> Vec<String> {
    let open = |path: &str| {
        let parents = path.match_indices('.').map(|(end, _)| &path[..end]).chain([path]);
        parents.into_iter().any(|path| {
            schema::field(schema, path).is_some_and(|field| {
                field["x-kubernetes-preserve-unknown-fields"] == true || field.get("additionalProperties").is_some()
            })
        })
    };
    leaves(spec, "").into_iter().filter(|path| schema::field(schema, path).is_none() && !open(path)).collect()
}

/// The dotted paths of all leaves of a value.
fn leaves(value: &Value, path: &str) -> Vec<String> {
    let below = |(name, value): (&String, &Value)| match path {
        "" => leaves(value, name),
        path => leaves(value, &format!("{path}.{name}")),
    };
    match value.as_object().filter(|map| !map.is_empty()) {
        Some(map) => map.iter().flat_map(below).collect(),
        None => vec![path.to_owned()],
    }
}

/// The schema of `spec` in a definition.
pub fn spec_schema<'a>(definition: &'a Value, version: &str) -> &'a Value {
    let versions = definition["spec"]["versions"].as_array().unwrap();
    let found = versions.iter().find(|found| found["name"] == version).unwrap();
    found.pointer("/schema/openAPIV3Schema/properties/spec").unwrap()
}
