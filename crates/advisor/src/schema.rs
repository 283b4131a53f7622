//! Queries about the schema of a custom kind: which fields and values does this version have?

use serde_json::Value;

use crate::{Facts, Kind, ObjectRef};

/// The schema of `spec` of a custom kind in one version, from its definition.
pub fn spec<'a>(facts: &'a Facts, kind: &'static Kind, version: &str) -> Option<&'a Value> {
    let definition = facts.object(&ObjectRef::definition(kind))?;
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    versions.iter().find(|found| found["name"] == version)?.pointer("/schema/openAPIV3Schema/properties/spec")
}

/// The schema of a field, by its dotted path below `schema`.
pub fn field<'a>(schema: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(schema, |schema, name| schema.get("properties")?.get(name))
}

/// Whether a list field may contain `value`.
pub fn list_allows(schema: &Value, path: &str, value: &str) -> bool {
    let values = field(schema, path).and_then(|list| list.pointer("/items/enum")).and_then(Value::as_array);
    values.is_some_and(|values| values.iter().any(|allowed| allowed == value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Answer, Query, kind::KUBE_DESCHEDULER, test_cluster::definition};

    fn facts(definition: Value) -> Facts {
        let query = Query::Object(ObjectRef::definition(&KUBE_DESCHEDULER));
        Facts::of([(query, Answer::Object { version: "v1", object: definition })])
    }

    #[test]
    fn the_schema_is_that_of_the_version() {
        let version = |name: &str, field: &str| {
            let spec = json!({"properties": {field: {}}});
            json!({"name": name, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}})
        };
        let facts = facts(json!({"spec": {"versions": [version("v1", "a"), version("v2", "b")]}}));
        let has = |version: &str, path: &str| {
            spec(&facts, &KUBE_DESCHEDULER, version).is_some_and(|schema| field(schema, path).is_some())
        };
        assert_eq!(
            [has("v1", "a"), has("v1", "b"), has("v2", "a"), has("v2", "b"), has("v3", "a")],
            [true, false, false, true, false]
        );
    }

    #[test]
    fn without_a_definition_or_a_schema_there_is_nothing_to_ask() {
        assert_eq!(spec(&Facts::default(), &KUBE_DESCHEDULER, "v1"), None);
        for definition in
            [json!({}), json!({"spec": {"versions": []}}), json!({"spec": {"versions": [{"name": "v1"}]}})]
        {
            assert_eq!(spec(&facts(definition.clone()), &KUBE_DESCHEDULER, "v1"), None, "{definition}");
        }
    }

    #[test]
    fn fields_and_values_are_known_or_not() {
        let facts = facts(definition("kubedescheduler-4.18"));
        let schema = spec(&facts, &KUBE_DESCHEDULER, "v1").unwrap();
        for (path, known) in [
            ("evictionLimits", true),
            ("evictionLimits.total", true),
            ("evictionLimits.node", false),
            ("evictionLimits.total.deeper", false),
            ("profileCustomizations.devDeviationThresholds", true),
            ("node", false),
            ("", false),
        ] {
            assert_eq!(field(schema, path).is_some(), known, "{path}");
        }
        for (path, value, allowed) in [
            ("profiles", "DevKubeVirtRelieveAndMigrate", true),
            ("profiles", "KubeVirtRelieveAndMigrate", false),
            ("profiles", "", false),
            ("mode", "Automatic", false),
            ("absent", "LongLifecycle", false),
        ] {
            assert_eq!(list_allows(schema, path, value), allowed, "{path} {value}");
        }
    }
}
