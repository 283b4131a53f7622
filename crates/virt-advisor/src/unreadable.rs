//! Objects that this version cannot read, for example because a newer operator has written a word into them that it does not know. Such
//! an object is told, and hides no other one.

use std::fmt;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use terminal::table::visible;

use crate::{VERSION, prose::section};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Unreadable {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Which part of the object is not understood.
    pub(crate) why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unreadable { kind, name, why } = self;
        write!(f, "{kind} {name} cannot be read by this version ({VERSION}): {why}")
    }
}

impl std::error::Error for Unreadable {}

pub(crate) fn parse<T: DeserializeOwned>(object: Value) -> Result<T, Unreadable> {
    let word = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (kind, name) = (word("/kind"), word("/metadata/name"));
    serde_json::from_value(object).map_err(|error| Unreadable { kind, name, why: error.to_string() })
}

/// The objects of a list, and those of them that cannot be read.
pub(crate) fn parse_all<T: DeserializeOwned>(objects: Vec<Value>) -> (Vec<T>, Vec<Unreadable>) {
    let (mut read, mut unreadable) = (Vec::new(), Vec::new());
    for object in objects {
        match parse(object) {
            Ok(object) => read.push(object),
            Err(error) => unreadable.push(error),
        }
    }
    (read, unreadable)
}

/// One line per object, at the end of a screen.
pub(crate) fn told(unreadable: &[Unreadable], width: usize) -> String {
    section("Not shown", unreadable.iter().map(ToString::to_string), width)
}

/// For commands whose result has no place for them.
pub(crate) fn warn(unreadable: &[Unreadable]) {
    for object in unreadable {
        anstream::eprintln!("warning: {}", visible(&object.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use api::VirtPlatformConfig;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_with_an_unknown_word_hides_no_other_one() {
        let object = |profile: &str, phase: &str| {
            json!({
                "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig", "metadata": {"name": profile},
                "spec": {"profile": profile, "action": "Apply"}, "status": {"phase": phase},
            })
        };
        let objects = vec![object("example-profile", "Completed"), object("virt-higher-density", "Dreaming")];
        let (read, unreadable) = parse_all::<VirtPlatformConfig>(objects);
        assert_eq!(read.len(), 1);
        let text = told(&unreadable, 200);
        let expected = format!(
            "VirtPlatformConfig virt-higher-density cannot be read by this version ({VERSION}): unknown variant"
        );
        assert!(text.contains(&expected) && text.contains("Dreaming"), "{text}");
        assert_eq!(told(&[], 200), "");
    }
}
