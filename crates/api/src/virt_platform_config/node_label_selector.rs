//! A label selector with the JSON shape of `metav1.LabelSelector`, but bounded and checked when it is
//! written: HyperConverged would accept a selector that can never match and then silently do nothing.
//! Labels are checked by patterns: the library `format` of CEL is unknown to the oldest Kubernetes that is supported.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::string_enum::string_enum;

/// Which nodes are meant. Everything listed must hold; an empty selector selects all nodes.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct NodeLabelSelector {
    /// Labels that a node must have with exactly these values, for example `ksm-enabled: "true"`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "match_labels")]
    pub match_labels: BTreeMap<String, String>,

    /// Conditions on the labels of a node. All must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<SelectorRequirement>,
}

string_enum! {
    /// How the label of a node is compared.
    pub enum SelectorOperator {
        /// The label has one of the values.
        In = "In",
        /// The label is absent or has another value.
        NotIn = "NotIn",
        /// The label is present.
        Exists = "Exists",
        /// The label is absent.
        DoesNotExist = "DoesNotExist",
    }
}

/// One condition on one label.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = Rule::new("!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)")
    .message("operator In or NotIn needs at least one value, such as values: [\"true\"]")
    .reason(Reason::FieldValueRequired)
    .field_path(".values"))]
#[x_kube(validation = Rule::new("!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0")
    .message("operator Exists or DoesNotExist takes no values")
    .reason(Reason::FieldValueForbidden)
    .field_path(".values"))]
pub struct SelectorRequirement {
    /// The key of the label, for example kubernetes.io/arch.
    #[schemars(length(max = 317))]
    #[x_kube(validation = (
        "self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && self.indexOf('/') <= 253",
        "must be a label key such as ksm-enabled or kubernetes.io/arch"
    ))]
    pub key: String,

    /// How the label is compared.
    ///
    /// - In: its value is one of values.
    /// - NotIn: the node does not have it, or its value is none of values.
    /// - Exists: the node has it, with any value.
    /// - DoesNotExist: the node does not have it.
    pub operator: SelectorOperator,

    /// The values to compare with: at least one for In and NotIn, none for Exists and DoesNotExist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    #[x_kube(validation = (
        "self.all(v, v.matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",
        "must be label values such as worker or zone-1: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
    ))]
    pub values: Vec<String>,
}

/// schemars cannot bound the values of a map, and CEL is the only way to check its keys.
fn match_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 32,
        "additionalProperties": { "type": "string", "maxLength": 63 },
        "x-kubernetes-validations": [
            {
                "rule": "self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253)",
                "message": "keys must be label keys such as ksm-enabled or kubernetes.io/arch",
            },
            {
                "rule": "self.all(k, self[k].matches('^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$'))",
                "message": "values must be label values such as worker or zone-1: letters, digits, '-', '_' and '.', beginning and ending with a letter or digit",
            },
        ],
    })
}

impl From<NodeLabelSelector> for LabelSelector {
    fn from(selector: NodeLabelSelector) -> Self {
        // Absent rather than empty, as Go's `omitempty` writes it, so that a diff shows nothing.
        Self {
            match_labels: Some(selector.match_labels).filter(|labels| !labels.is_empty()),
            match_expressions: Some(selector.match_expressions)
                .filter(|requirements| !requirements.is_empty())
                .map(|requirements| requirements.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<SelectorRequirement> for LabelSelectorRequirement {
    fn from(requirement: SelectorRequirement) -> Self {
        Self {
            key: requirement.key,
            operator: requirement.operator.as_str().to_owned(),
            values: Some(requirement.values).filter(|values| !values.is_empty()),
        }
    }
}
