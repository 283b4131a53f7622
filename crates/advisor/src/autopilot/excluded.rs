//! The list of objects on HyperConverged that the autopilot neither creates nor changes. Only this list helps before an object exists.

use serde::{Deserialize, Serialize};

use super::{annotate, annotation};
use crate::{Facts, ObjectRef, hyper_converged};

const EXCLUDED: &str = "platform.kubevirt.io/disabled-resources";

/// An entry of the list. `*` and `?` stand for any characters and for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) kind: String,
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) namespace: Option<String>,
}

impl Entry {
    fn of(object: &ObjectRef) -> Self {
        let namespace = object.namespace.map(str::to_owned);
        Entry { kind: object.kind.kind.to_owned(), name: object.name.clone(), namespace }
    }

    pub(super) fn matches(&self, object: &ObjectRef) -> bool {
        let namespace = self.namespace.as_deref().unwrap_or("*");
        is_like(&self.kind, object.kind.kind)
            && is_like(&self.name, &object.name)
            && is_like(namespace, object.namespace.unwrap_or_default())
    }
}

/// YAML, or in older versions `Kind/name, Kind/name`. What is neither excludes nothing.
pub(super) fn parse(text: &str) -> Vec<Entry> {
    if let Ok(entries) = serde_saphyr::from_str(text) {
        return entries;
    }
    let pair = |entry: &str| {
        let (kind, name) = entry.trim().split_once('/')?;
        Some(Entry { kind: kind.to_owned(), name: name.to_owned(), namespace: None })
    };
    text.split(',').filter_map(pair).collect()
}

fn entries(facts: &Facts) -> Vec<Entry> {
    let hyper_converged = facts.object(&hyper_converged::reference(facts));
    hyper_converged.and_then(|object| annotation(object, EXCLUDED)).map(parse).unwrap_or_default()
}

pub(super) fn excludes(facts: &Facts, object: &ObjectRef) -> bool {
    entries(facts).iter().any(|entry| entry.matches(object))
}

/// The command that adds objects to the list.
pub(super) fn exclude(facts: &Facts, objects: &[&ObjectRef]) -> String {
    let new = objects.iter().map(|object| Entry::of(object));
    let all: Vec<Entry> = entries(facts).into_iter().chain(new).collect();
    // A quote would end the argument of the shell.
    let list = serde_json::to_string(&all).unwrap_or_default().replace('\'', "\\u0027");
    let place = hyper_converged::reference(facts);
    annotate(place.kind.kind, place.namespace, &place.name, &format!("{EXCLUDED}='{list}'"))
}

fn is_like(pattern: &str, text: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return text.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    let mut characters = text.chars();
    match first {
        '*' => is_like(rest, text) || characters.next().is_some_and(|_| is_like(pattern, characters.as_str())),
        '?' => characters.next().is_some_and(|_| is_like(rest, characters.as_str())),
        first => characters.next() == Some(first) && is_like(rest, characters.as_str()),
    }
}
