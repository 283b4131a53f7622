//! Removes from a derived schema what comes from Rust and has no meaning, or another one, for Kubernetes and `kubectl explain`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// The formats that Kubernetes knows and checks; schemars has more, such as `uint16`.
const FORMATS: &[&str] = &["int32", "int64", "double", "date-time"];

pub(super) fn tidied(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for root in schemas {
        walk(root, &mut tidy);
        let status = root.properties.as_mut().and_then(|properties| properties.get_mut("status"));
        if let Some(status) = status {
            tidy_status(status);
        }
    }
    crd
}

/// A record holds values of another time. It must stay writable when rules become stricter, and gets no defaults, except for a status
/// that nobody has written yet.
pub(super) fn tidied_record(crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let mut crd = tidied(crd);
    let roots = crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for part in roots.filter_map(|root| root.properties.as_mut()).flat_map(|parts| parts.values_mut()) {
        let (rules, default) = (part.x_kubernetes_validations.take(), part.default.take());
        walk(part, &mut |schema| {
            schema.x_kubernetes_validations = None;
            schema.default = None;
        });
        (part.x_kubernetes_validations, part.default) = (rules, default);
    }
    crd
}

fn tidy(schema: &mut JSONSchemaProps) {
    // `null` means absent, as for types in Go: without `nullable` the API server drops it.
    schema.nullable = None;
    if let Some(values) = &mut schema.enum_ {
        values.retain(|JSON(value)| !value.is_null());
    }
    schema.default = schema.default.take().filter(|JSON(value)| !value.is_null());
    schema.title = None;
    schema.format = schema.format.take().filter(|format| FORMATS.contains(&format.as_str()));
    schema.description = schema.description.take().map(|text| fold(&text));
}

/// A status is a record. It must stay writable when rules become stricter, and must not get defaults that did not exist when it was
/// stored.
fn tidy_status(status: &mut JSONSchemaProps) {
    status.description = Some("What the controller found out and did. Written by the controller only.".to_owned());
    walk(status, &mut |schema| schema.x_kubernetes_validations = None);
    let applied = status.properties.as_mut().and_then(|properties| properties.get_mut("appliedOptions"));
    if let Some(applied) = applied {
        walk(applied, &mut |schema| schema.default = None);
    }
}

/// Calls `visit` for the schema and every schema below it.
fn walk(schema: &mut JSONSchemaProps, visit: &mut impl FnMut(&mut JSONSchemaProps)) {
    visit(schema);
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        walk(property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        walk(items, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        walk(values, visit);
    }
}

/// Joins the hard-wrapped lines of a doc comment into paragraphs and list entries.
fn fold(text: &str) -> String {
    let mut folded = String::new();
    for line in text.lines().map(str::trim) {
        let breaks = if line.is_empty() {
            "\n\n"
        } else if line.starts_with("- ") {
            "\n"
        } else {
            " "
        };
        if !folded.is_empty() && !folded.ends_with('\n') {
            folded.push_str(breaks);
        }
        folded.push_str(line);
    }
    folded.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_become_paragraphs_and_list_entries() {
        let cases = [
            ("One line.", "One line."),
            ("Two\nlines.", "Two lines."),
            ("First.\n\nSecond\nparagraph.", "First.\n\nSecond paragraph."),
            ("Values:\n\n- A: first\n  value.\n- B: second.", "Values:\n\n- A: first value.\n- B: second."),
            ("Trailing.\n\n", "Trailing."),
        ];
        for (text, folded) in cases {
            assert_eq!(fold(text), folded);
        }
    }
}
