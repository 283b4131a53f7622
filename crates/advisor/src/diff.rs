//! Unified diffs between an object as it is and as it would be.

#[cfg(test)]
mod tests;

use serde_json::Value;
use similar::TextDiff;

use crate::object_text;

const CONTEXT: usize = 3;

/// The diff for the status: the objects as they are stored, with secrets masked.
pub fn diff(kind: &str, name: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    unified(kind, name, before, after, |object| object)
}

/// The diff for people: also decodes the payloads of Ignition files.
pub fn readable(kind: &str, name: &str, before: Option<&Value>, after: Option<&Value>) -> String {
    unified(kind, name, before, after, |object| object_text::decoded(&object))
}

/// The diff of an object that is as it should be.
pub fn none(kind: &str, name: &str) -> String {
    format!("--- {name} ({kind})\n+++ {name} ({kind})\n(no changes)\n")
}

/// Whether the two differ in anything that a diff would show.
pub fn differ(before: Option<&Value>, after: Option<&Value>) -> bool {
    before.map(object_text::sanitized) != after.map(object_text::sanitized)
}

fn unified(
    kind: &str,
    name: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    view: impl Fn(Value) -> Value,
) -> String {
    let header = |object: Option<&Value>| match object {
        Some(_) => format!("{name} ({kind})"),
        None => "/dev/null".to_owned(),
    };
    let (from, to) = (header(before), header(after));
    if !differ(before, after) {
        return format!("--- {from}\n+++ {to}\n(no changes)\n");
    }
    let (before, after) = object_text::masked(before.map(object_text::sanitized), after.map(object_text::sanitized));
    let yaml =
        |object: &Option<Value>, view: &dyn Fn(Value) -> Value| object_text::yaml(object.clone().map(view).as_ref());
    let (mut old, mut new) = (yaml(&before, &view), yaml(&after, &view));
    if old == new {
        // The view hides the difference, for example the same text in another encoding.
        (old, new) = (yaml(&before, &|object| object), yaml(&after, &|object| object));
    }
    let diff = TextDiff::from_lines(&old, &new).unified_diff().context_radius(CONTEXT).header(&from, &to).to_string();
    // An empty context line has no trailing space: kubectl would show the whole text escaped.
    diff.split_inclusive('\n').map(|line| if line == " \n" { "\n" } else { line }).collect()
}
