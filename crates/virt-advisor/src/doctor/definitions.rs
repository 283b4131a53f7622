//! Whether our definitions are installed, and whether they are those of this version.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use kube_io::{Class, RequestError};
use serde_json::Value;

use super::finding::{Finding, Level};

const CHECK: &str = "definitions";
const INSTALL: &str = "install them: make install, or kubectl apply --server-side -k config/crd";

/// What is known about one definition.
pub(super) struct Seen {
    /// As this version would install it.
    pub(super) expected: CustomResourceDefinition,
    pub(super) live: Result<Value, RequestError>,
    /// Whether its resource is in the discovery, which everybody may read. None if that could not be read.
    pub(super) served: Option<bool>,
}

/// `operators` are the versions of the operator that the statuses name.
pub(super) fn definitions(seen: &[Seen], operators: &[String]) -> Finding {
    let mut others = Vec::new();
    let mut unread = None;
    for definition in seen {
        let name = definition.expected.metadata.name.as_deref().unwrap_or_default();
        match &definition.live {
            Ok(live) if live.pointer("/metadata/deletionTimestamp").is_some() => {
                let remedy = "wait until it is gone, and install it again: make install";
                return Finding::problem(CHECK, format!("{name} is being deleted, and its objects with it"), remedy);
            }
            Ok(live) if !is_established(live) => {
                let remedy = format!("read why: kubectl describe crd {name}");
                return Finding::problem(CHECK, format!("{name} is installed and not served"), remedy);
            }
            Ok(live) if !is_same(&definition.expected, live) => others.push(name),
            Ok(_) => {}
            Err(error) if error.class == Class::NotFound => {
                return Finding::problem(CHECK, format!("{name} is not installed"), INSTALL);
            }
            Err(_) if definition.served == Some(false) => {
                return Finding::problem(CHECK, format!("{name} is not served"), INSTALL);
            }
            Err(error) => unread = Some((definition.served, error)),
        }
    }
    if let Some((served, error)) = unread {
        let what = if served == Some(true) { "served; their schemas may not be compared" } else { "cannot be read" };
        let level = if served == Some(true) { Level::Ok } else { Level::Unknown };
        return Finding { level, ..Finding::unknown(CHECK, what, error) };
    }
    let client = crate::VERSION;
    let is_ours = operators.iter().all(|version| version == client) && !operators.is_empty();
    match (others.is_empty(), is_ours) {
        (true, _) => Finding::ok(CHECK, format!("installed, as version {client} has them")),
        (false, true) => Finding::problem(
            CHECK,
            format!("{} of another version than the operator ({client}): fields may get lost", listed(&others)),
            INSTALL,
        ),
        (false, false) => Finding::warning(
            CHECK,
            format!("{} not as version {client} has them", listed(&others)),
            "use the program of the operator's version, or bring operator and definitions to this one: make deploy",
        ),
    }
}

fn listed(names: &[&str]) -> String {
    format!("{} {}", names.join(" and "), if names.len() == 1 { "is" } else { "are" })
}

fn is_established(live: &Value) -> bool {
    let mut conditions = live["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Compares what objects may contain. Columns and descriptions change nothing that is stored.
fn is_same(expected: &CustomResourceDefinition, live: &Value) -> bool {
    let Ok(live) = serde_json::from_value::<CustomResourceDefinition>(live.clone()) else { return false };
    let schemas = |definition: &CustomResourceDefinition| {
        let schema = |version: &CustomResourceDefinitionVersion| {
            let mut schema = serde_json::to_value(&version.schema).unwrap_or_default();
            without_descriptions(&mut schema);
            (version.name.clone(), schema)
        };
        definition.spec.versions.iter().map(schema).collect::<Vec<_>>()
    };
    schemas(expected) == schemas(&live)
}

fn without_descriptions(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            // A property may have this name, too, and then it is an object.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(without_descriptions);
        }
        Value::Array(list) => list.iter_mut().for_each(without_descriptions),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live() -> Value {
        let mut live = serde_json::to_value(api::crd::virt_platform_config()).unwrap();
        live["status"] = json!({"conditions": [{"type": "Established", "status": "True"}]});
        live
    }

    fn error(class: Class) -> Result<Value, RequestError> {
        Err(RequestError::other("reading".into(), "no".into(), class))
    }

    fn found(live: Result<Value, RequestError>, served: Option<bool>, operators: &[&str]) -> Finding {
        let seen = Seen { expected: api::crd::virt_platform_config(), live, served };
        let operators: Vec<String> = operators.iter().map(|&version| version.to_owned()).collect();
        definitions(&[seen], &operators)
    }

    #[test]
    fn definitions_are_there_and_of_the_version_of_the_operator() {
        let client = crate::VERSION;
        let changed = |pointer: &str, value: Value| {
            let mut changed = live();
            *changed.pointer_mut(pointer).unwrap() = value;
            Ok(changed)
        };
        let schema = "/spec/versions/0/schema/openAPIV3Schema";
        let older = || changed(&format!("{schema}/properties/spec/properties"), json!({}));
        let mut going = live();
        going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        for (case, finding, level) in [
            ("the same", found(Ok(live()), Some(true), &[client]), Level::Ok),
            (
                "another description",
                found(changed(&format!("{schema}/description"), json!("x")), None, &[client]),
                Level::Ok,
            ),
            ("another schema", found(older(), None, &[client]), Level::Problem),
            (
                "another schema, and the operator is of another version, too",
                found(older(), None, &["9.9.9"]),
                Level::Warning,
            ),
            ("another schema, and nobody knows the operator", found(older(), None, &[]), Level::Warning),
            ("not there", found(error(Class::NotFound), Some(false), &[]), Level::Problem),
            ("may not be read, is served", found(error(Class::Forbidden), Some(true), &[]), Level::Ok),
            ("may not be read, is not served", found(error(Class::Forbidden), Some(false), &[]), Level::Problem),
            ("nothing is known", found(error(Class::Forbidden), None, &[]), Level::Unknown),
            (
                "refused by the API server",
                found(changed("/status/conditions", json!([])), None, &[client]),
                Level::Problem,
            ),
            ("on its way out", found(Ok(going), None, &[client]), Level::Problem),
        ] {
            assert_eq!(finding.level, level, "{case}: {finding:?}");
        }
    }
}
