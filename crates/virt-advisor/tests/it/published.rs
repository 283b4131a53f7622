//! What commands print for programs, compared with the JSON schema that is published: docs/cli/schema.json.

use std::process::Output;

use serde_json::{Value, json};

use crate::guide::terminal::root;

fn schema() -> Value {
    let text = std::fs::read_to_string(root().join("docs/cli/schema.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The document that a command has printed with `-o json`. It is as the schema has it, and has no field beyond that.
pub(crate) fn document(output: &Output) -> Value {
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let errors = errors(&schema(), &document);
    assert!(errors.is_empty(), "{errors:#?}\n{document:#}");
    document
}

fn errors(schema: &Value, document: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    if !validator.is_valid(document) {
        return vec!["it is not one of the documents".to_owned()]
            .into_iter()
            .chain(of_kind(schema, document))
            .collect();
    }
    of_kind(schema, document)
}

/// Compared with the one document that it claims to be, so that an error says where it is.
fn of_kind(schema: &Value, document: &Value) -> Vec<String> {
    let known = schema["oneOf"].as_array().unwrap().iter();
    let Some(claimed) = known.into_iter().find(|known| known["properties"]["kind"]["const"] == document["kind"]) else {
        return vec![format!("the schema has no kind {}", document["kind"])];
    };
    let mut claimed = claimed.clone();
    claimed["$defs"] = schema["$defs"].clone();
    close(&mut claimed);
    let validator = jsonschema::draft202012::new(&claimed).unwrap();
    validator.iter_errors(document).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

/// Programs ignore fields that they do not know, so the schema allows more of them. Here each has to be in it.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(parts) => {
            if parts.contains_key("properties") && !parts.contains_key("additionalProperties") {
                parts.insert("additionalProperties".to_owned(), json!(false));
            }
            parts.values_mut().for_each(close);
        }
        Value::Array(parts) => parts.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn a_document_that_is_not_as_published_is_told_with_the_place() {
    let schema = schema();
    let finding = json!({"check": "clock", "level": "ok", "message": "agrees"});
    let report = |findings: Value| json!({"apiVersion": "cli.advisor.kubevirt.io/v1alpha1", "kind": "DoctorReport", "client": "v1", "healthy": true, "findings": findings});
    assert_eq!(errors(&schema, &report(json!([finding]))), [""; 0]);
    for (document, place) in [
        (report(json!([{"check": "clock", "level": "fine", "message": ""}])), "/findings/0/level"),
        (report(json!([{"check": "clock", "level": "ok"}])), "/findings/0"),
        (report(json!([{"check": "clock", "level": "ok", "message": "", "advice": ""}])), "/findings/0"),
        (report(Value::Null), "/findings"),
    ] {
        let errors = errors(&schema, &document);
        assert!(errors.iter().any(|error| error.starts_with(&format!("{place}: "))), "{place}: {errors:?}");
    }
    assert_eq!(errors(&schema, &json!({"kind": "Pod"})).last().unwrap(), "the schema has no kind \"Pod\"");
}
