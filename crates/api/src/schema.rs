//! Schema fragments that both resources share and that cannot be derived from the Rust types.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::bounds;

/// `status.conditions` with the validations of `metav1.Condition`; the schema of the Rust type has none of them, not even an upper
/// bound.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": bounds::SHORT_LIST,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "One aspect of the current state.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {
                    "description": "What the condition is about, in CamelCase.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether the condition holds: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Why the condition has this status, as one CamelCase word that programs may rely on.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "The same for people, with the details. May be empty.",
                    "type": "string",
                    "maxLength": bounds::MESSAGE,
                },
                "lastTransitionTime": {
                    "description": "When the status last changed from one value to another.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The metadata.generation that the condition was derived from. If it is lower than the current one, the condition is out of date.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

/// A whole Kubernetes object of any kind. Its fields belong to the third party, so they are neither
/// pruned nor checked; only the number of top-level keys is bounded.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 64,
        "x-kubernetes-preserve-unknown-fields": true,
    })
}
