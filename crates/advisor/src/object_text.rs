//! Objects as text for people: without server-side metadata, with masked secrets and decoded payloads.

#[cfg(test)]
mod tests;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use serde_saphyr::{DoubleQuoted, ser_options};

use crate::fields::Path;

/// The object as YAML with sorted keys; empty for an object that does not exist.
pub fn yaml(object: Option<&Value>) -> String {
    let Some(object) = object else { return String::new() };
    // Long texts are not folded: one changed word would change all following lines of a diff.
    let options = ser_options! { folded_wrap_chars: usize::MAX };
    // Serializing a JSON value cannot fail; as a fallback, JSON is valid YAML.
    let text = serde_saphyr::to_string_with_options(&Node(&sorted(object)), options)
        .unwrap_or_else(|_| format!("{object:#}\n"));
    // The serializer indents empty lines of a block. kubectl shows a text with trailing blanks, such as a diff in a status, as one
    // long escaped line.
    let bare = |line| if str::trim(line).is_empty() { "\n" } else { line };
    text.split_inclusive('\n').map(bare).collect()
}

/// A value whose texts are written as blocks, except for texts with blank lines, which a block would hide.
struct Node<'a>(&'a Value);

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => serializer.collect_map(map.iter().map(|(key, value)| (key, Node(value)))),
            Value::Array(list) => serializer.collect_seq(list.iter().map(Node)),
            Value::String(text) if text.lines().any(is_blank) => DoubleQuoted(text).serialize(serializer),
            other => other.serialize(serializer),
        }
    }
}

fn is_blank(line: &str) -> bool {
    !line.is_empty() && line.trim().is_empty()
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Value::Object(entries.into_iter().collect())
        }
        Value::Array(list) => Value::Array(list.iter().map(sorted).collect()),
        scalar => scalar.clone(),
    }
}

/// Removes the status and the fields that the API server maintains.
pub fn sanitized(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink"] {
                metadata.remove(field);
            }
        }
    }
    object
}

/// Where a Secret has values. kubectl also stores the applied object, with its values, in an annotation.
const SECRET: [(&str, Option<&str>); 3] = [
    ("/data", None),
    ("/stringData", None),
    ("/metadata/annotations", Some("kubectl.kubernetes.io/last-applied-configuration")),
];

/// Masks the values of Secrets on both sides of a comparison. Changed values stay different.
pub fn masked(before: Option<Value>, after: Option<Value>) -> (Option<Value>, Option<Value>) {
    let is_secret = |object: &Option<Value>| object.as_ref().is_some_and(|object| object["kind"] == "Secret");
    if !is_secret(&before) && !is_secret(&after) {
        return (before, after);
    }
    let side = |object: &Option<Value>, other: &Option<Value>, label: &str| {
        let mut object = object.clone()?;
        for (pointer, only) in SECRET {
            let others = other.as_ref().and_then(|other| other.pointer(pointer));
            let values = object.pointer_mut(pointer).and_then(Value::as_object_mut);
            for (key, value) in values.into_iter().flatten().filter(|(key, _)| only.is_none_or(|only| only == *key)) {
                let differs = others.and_then(|others| others.get(key)).is_some_and(|other| other != value);
                *value = if differs { format!("*** ({label})") } else { "***".to_owned() }.into();
            }
        }
        Some(object)
    };
    (side(&before, &after, "before"), side(&after, &before, "after"))
}

/// Whether the value of a field is masked: it is one of a Secret.
pub fn is_masked(kind: &str, field: &Path) -> bool {
    let within = |(pointer, only): &(&str, Option<&str>)| {
        let names: Vec<&str> = pointer.split('/').skip(1).chain(*only).collect();
        field.overlaps(&Path::member(&names))
    };
    kind == "Secret" && SECRET.iter().any(within)
}

/// Decodes the payloads of Ignition files, and writes their modes in octal.
pub fn decoded(object: &Value) -> Value {
    let mut object = object.clone();
    let files = object.pointer_mut("/spec/config/storage/files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten().filter_map(Value::as_object_mut) {
        decode_file(file);
    }
    object
}

fn decode_file(file: &mut Map<String, Value>) {
    if let Some(mode) = file.get("mode").and_then(Value::as_u64) {
        file.insert("mode".into(), format!("{mode:04o}").into());
    }
    let Some(contents) = file.get_mut("contents").and_then(Value::as_object_mut) else { return };
    if let Some(text) = contents.get("source").and_then(Value::as_str).and_then(data_url) {
        contents.remove("source");
        contents.insert("text".into(), text.into());
    }
}

/// The text in a `data:` URL, if it is text.
pub fn data_url(url: &str) -> Option<String> {
    let (head, payload) = url.strip_prefix("data:")?.split_once(',')?;
    let bytes = match head.ends_with(";base64") {
        true => BASE64_STANDARD.decode(payload).ok()?,
        false => percent_decoded(payload)?,
    };
    String::from_utf8(bytes).ok().filter(|text| !text.chars().any(|c| c.is_control() && !"\n\r\t".contains(c)))
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}
