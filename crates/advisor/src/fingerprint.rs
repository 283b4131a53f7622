//! Fingerprints tell whether managed fields have changed, and whether a plan is the one that was reviewed.
//!
//! A fingerprint covers the values of the managed leaves, and whether the object exists. Other fields do not change it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::fields::Path;

/// SHA-256 over the values that `leaves` have in `object`, as lowercase hex.
pub fn fingerprint(object: Option<&Value>, leaves: &[Path]) -> String {
    let value = |path: &Path| Some((path.to_string(), path.find(object?)?));
    let values: BTreeMap<String, &Value> = leaves.iter().filter_map(value).collect();
    sha256(&json!({"exists": object.is_some(), "leaves": values}))
}

/// SHA-256 over a value, independent of the order of keys.
pub fn sha256(value: &Value) -> String {
    let mut canonical = String::new();
    write(value, &mut canonical);
    HEXLOWER.encode(&Sha256::digest(canonical))
}

/// JSON with sorted keys, whatever map serde_json was built with.
fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let sorted: BTreeMap<_, _> = map.iter().collect();
            text.push('{');
            for (key, value) in sorted {
                *text += &Value::from(key.as_str()).to_string();
                text.push(':');
                write(value, text);
                text.push(',');
            }
            text.push('}');
        }
        Value::Array(list) => {
            text.push('[');
            for value in list {
                write(value, text);
                text.push(',');
            }
            text.push(']');
        }
        scalar => *text += &scalar.to_string(),
    }
}
