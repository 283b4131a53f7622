//! `spec.waitTimeout`: a duration that the API server validates and that is parsed when it is needed.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::value::{DURATION_PATTERN, DURATION_RULE, InvalidValue, parse_duration};

/// A duration as the user wrote it. An unreadable one (from before the schema checked it) is an error
/// of this object when it is used, not of the list it arrives in.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WaitTimeout(String);

impl WaitTimeout {
    /// The duration, which is always positive.
    pub fn duration(&self) -> Result<Duration, InvalidValue> {
        parse_duration(&self.0).ok_or_else(|| InvalidValue::Duration(self.0.clone()))
    }
}

impl From<&str> for WaitTimeout {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for WaitTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for WaitTimeout {
    fn schema_name() -> Cow<'static, str> {
        "WaitTimeout".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 64,
            "x-kubernetes-validations": [{
                "rule": format!("self.matches(r'{DURATION_PATTERN}') && duration(self) > duration('0s')"),
                "message": DURATION_RULE,
            }],
        })
    }
}
