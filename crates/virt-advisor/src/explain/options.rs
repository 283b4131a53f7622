//! The options of a profile, as the schema of VirtPlatformConfig describes them.

use api::crd;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{JSON, JSONSchemaProps};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OptionExplanation {
    /// The path in the spec.
    pub(crate) path: String,
    /// The type, or the words to choose from.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The default that the API server fills in. The description may name another one, which depends on the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
    pub(crate) description: String,
}

/// The options below this member of `spec.options`.
pub(super) fn of_member(member: &str) -> Vec<OptionExplanation> {
    let definition = crd::virt_platform_config();
    let schema = definition.spec.versions.first().and_then(|version| version.schema.as_ref());
    let root = schema.and_then(|schema| schema.open_api_v3_schema.as_ref());
    let below = |schema: &'_ JSONSchemaProps, name: &str| schema.properties.as_ref()?.get(name).cloned();
    let member_schema = ["spec", "options", member]
        .iter()
        .try_fold(root.cloned(), |schema, name| schema.map(|schema| below(&schema, name)));
    member_schema.flatten().map(|schema| fields(&schema, &format!("spec.options.{member}"))).unwrap_or_default()
}

/// All fields, and those of fields that have some, but for the members of selectors.
fn fields(schema: &JSONSchemaProps, path: &str) -> Vec<OptionExplanation> {
    let mut found = Vec::new();
    for (name, field) in schema.properties.iter().flatten() {
        let path = format!("{path}.{name}");
        found.push(OptionExplanation {
            kind: kind(field),
            default: field.default.as_ref().map(|JSON(value)| value.clone()),
            description: field.description.clone().unwrap_or_default(),
            path: path.clone(),
        });
        if !name.ends_with("Selector") {
            found.extend(fields(field, &path));
        }
    }
    found
}

fn kind(field: &JSONSchemaProps) -> String {
    match &field.enum_ {
        Some(words) => words.iter().filter_map(|JSON(word)| word.as_str()).collect::<Vec<_>>().join(" | "),
        None => field.type_.clone().unwrap_or_else(|| "any".to_owned()),
    }
}
