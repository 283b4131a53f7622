//! Compares an object of the cluster with one that a guide prints, leaf by leaf. What differs on purpose is listed; anything
//! else that differs is a failure, and so is a listed difference that is no longer there.

use serde_json::Value;

/// One place at which the two objects differ.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Found {
    /// Dotted, with elements of lists by their name: `status.items[enable-psi-metrics].diff`.
    pub(crate) path: String,
    pub(crate) theirs: Option<Value>,
    pub(crate) ours: Option<Value>,
}

/// A difference that is meant.
#[derive(Debug, Clone)]
pub(crate) struct Difference {
    /// As in [`Found::path`]; `[*]` is any element.
    pub(crate) path: String,
    pub(crate) what: What,
    pub(crate) because: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// The guide has nothing there.
    Adds(Shape),
    /// We have nothing there.
    Lacks,
    /// Another value.
    Differs { theirs: Value, ours: Value },
    /// The guide has an illustration there, which is told from the real thing by eye.
    Illustrated,
    /// A part of a text, which occurs once, reads differently. Several of these may concern one text.
    Reads { theirs: &'static str, ours: String },
}

/// What is known of a value that the guide does not show.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    Exactly(Value),
    /// These pools, each with the times of its state and of its last progress.
    Rollout(Value),
    /// SHA-256 in hexadecimal digits.
    Digest,
    Time,
    /// The generation of the object.
    Generation,
    /// A condition with this status and reason, about the generation of the object.
    Condition(&'static str, &'static str),
    /// An approval by the action alone: of which plan, of which generation, and when.
    Approval,
    /// A record of the profile, which exists.
    Record,
    /// The guide left it out for brevity.
    Whatever,
}

/// The complaints about `ours`, none if it is as the guide has it but for what is listed.
pub(crate) fn complaints(theirs: &Value, ours: &Value, listed: &[Difference]) -> Vec<String> {
    let found = differences(&masked(theirs), &masked(ours));
    let generation = &ours["metadata"]["generation"];
    let unlisted = found.iter().filter(|found| !is_listed(found, listed, generation)).map(describe);
    let gone = listed.iter().filter(|listed| !found.iter().any(|found| matches(&listed.path, &found.path)));
    let gone =
        gone.map(|gone| format!("{}: no longer differs, although it is listed because {}\n", gone.path, gone.because));
    unlisted.chain(gone).collect()
}

/// Of an object, just what a guide shows of it: the same fields, and the same elements of lists.
pub(crate) fn extract(theirs: &Value, ours: &Value) -> Value {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let shown = a.iter().filter_map(|(key, theirs)| Some((key.clone(), extract(theirs, b.get(key)?))));
            Value::Object(shown.collect())
        }
        (Value::Array(a), Value::Array(b)) if let (Some(a), Some(b)) = (named(a), named(b)) => {
            let shown = a.iter().filter_map(|(name, theirs)| {
                b.iter().find(|(other, _)| other == name).map(|(_, ours)| extract(theirs, ours))
            });
            shown.collect()
        }
        (_, ours) => ours.clone(),
    }
}

fn describe(found: &Found) -> String {
    let show = |value: &Option<Value>| match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) if text.contains('\n') => format!("\n{text}"),
        Some(value) => value.to_string(),
    };
    format!(
        "{}: differs, and is not listed\n  guide: {}\n  ours:  {}\n",
        found.path,
        show(&found.theirs),
        show(&found.ours)
    )
}

fn is_listed(found: &Found, listed: &[Difference], generation: &Value) -> bool {
    let mut listed = listed.iter().filter(|listed| matches(&listed.path, &found.path)).peekable();
    if listed.peek().is_none() {
        return false;
    }
    let mut expected = found.theirs.clone();
    for Difference { what, .. } in listed {
        match (what, &found.theirs, &found.ours) {
            (What::Adds(shape), None, Some(ours)) if shape.fits(ours, generation) => return true,
            (What::Lacks, Some(_), None) | (What::Illustrated, Some(_), Some(_)) => return true,
            (What::Differs { theirs, ours }, Some(found_theirs), Some(found_ours)) => {
                return theirs == found_theirs && ours == found_ours;
            }
            (What::Reads { theirs, ours }, Some(_), Some(_)) => {
                let Some(text) = expected.as_ref().and_then(Value::as_str) else { return false };
                if text.matches(theirs).count() != 1 {
                    return false;
                }
                expected = Some(text.replace(theirs, ours).into());
            }
            _ => return false,
        }
    }
    expected == found.ours
}

impl Shape {
    fn fits(&self, value: &Value, generation: &Value) -> bool {
        match self {
            Shape::Exactly(expected) => value == expected,
            Shape::Rollout(pools) => is_rollout(value, pools),
            Shape::Digest => is_digest(value),
            Shape::Time => is_time(value),
            Shape::Generation => value == generation,
            Shape::Condition(status, reason) => {
                let says = value["message"].as_str().is_some_and(|message| !message.is_empty());
                says && value["status"] == *status
                    && value["reason"] == *reason
                    && value["observedGeneration"] == *generation
            }
            Shape::Approval => {
                let is_known = value["mode"] == "Immediate" && value["generation"].is_u64();
                is_known && is_digest(&value["planDigest"]) && is_time(&value["time"])
            }
            Shape::Record => {
                let is_its = value["name"].as_str().is_some_and(|name| name.starts_with("load-aware-rebalancing-"));
                is_its && value["created"] == true && is_digest(&value["planDigest"])
            }
            Shape::Whatever => true,
        }
    }
}

/// Whether a path is one of those that a pattern stands for.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.split_once("[*]") {
        None => pattern == path,
        Some((before, after)) => path
            .strip_prefix(before)
            .and_then(|rest| rest.strip_prefix('['))
            .and_then(|rest| rest.split_once(']'))
            .is_some_and(|(_, rest)| matches(after, rest)),
    }
}

fn is_rollout(value: &Value, pools: &Value) -> bool {
    let mut value = value.clone();
    let is_timed = |pool: &mut Value| {
        let pool = pool.as_object_mut();
        pool.is_some_and(|pool| {
            ["since", "lastProgress"].iter().all(|time| pool.remove(*time).is_some_and(|it| is_time(&it)))
        })
    };
    value.as_array_mut().is_some_and(|value| value.iter_mut().all(is_timed)) && value == *pools
}

fn is_digest(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.len() == 64 && text.bytes().all(|byte| b"0123456789abcdef".contains(&byte)))
}

/// `2025-12-18T21:13:17Z`
fn is_time(value: &Value) -> bool {
    let digits = |text: &str| text.replace(|c: char| c.is_ascii_digit(), "0");
    value.as_str().is_some_and(|text| digits(text) == "0000-00-00T00:00:00Z")
}

fn is_uid(value: &Value) -> bool {
    let lengths = |text: &str| text.split('-').map(str::len).collect::<Vec<_>>();
    value.as_str().is_some_and(|text| lengths(text) == [8, 4, 4, 4, 12])
}

fn is_version(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.parse::<u64>().is_ok())
}

/// What no two runs have in common. A value that is not of its shape is left for the comparison to find.
fn masked(object: &Value) -> Value {
    let mut object = object.clone();
    let mut mask = |pointer: &str, is_it: fn(&Value) -> bool, name: &str| {
        if let Some(value) = object.pointer_mut(pointer).filter(|value| is_it(value)) {
            *value = name.into();
        }
    };
    mask("/metadata/creationTimestamp", is_time, "(a time)");
    mask("/metadata/uid", is_uid, "(a uid)");
    mask("/metadata/resourceVersion", is_version, "(a version)");
    mask("/status/sourceSnapshotHash", is_digest, "(a hash)");
    for list in ["conditions", "items"] {
        for position in 0..64 {
            mask(&format!("/status/{list}/{position}/lastTransitionTime"), is_time, "(a time)");
        }
    }
    object
}

fn differences(theirs: &Value, ours: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    compare(String::new(), Some(theirs), Some(ours), &mut found);
    found
}

fn compare(path: String, theirs: Option<&Value>, ours: Option<&Value>, found: &mut Vec<Found>) {
    match (theirs, ours) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let mut keys: Vec<_> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(path, a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if let (Some(a), Some(b)) = (named(a), named(b)) => {
            let find = |list: &[(&str, &Value)], name: &str| {
                list.iter().find(|(other, _)| *other == name).map(|(_, value)| Value::clone(value))
            };
            let common = |list: &[(&str, &Value)], other: &[(&str, &Value)]| -> Vec<Value> {
                list.iter().filter(|(name, _)| find(other, name).is_some()).map(|(name, _)| (*name).into()).collect()
            };
            let (order, our_order) = (common(&a, &b), common(&b, &a));
            if order != our_order {
                let path = format!("{path} (order)");
                found.push(Found { path, theirs: Some(order.into()), ours: Some(our_order.into()) });
            }
            let mut names: Vec<_> = a.iter().chain(&b).map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                compare(format!("{path}[{name}]"), find(&a, name).as_ref(), find(&b, name).as_ref(), found);
            }
        }
        (theirs, ours) if theirs == ours => {}
        (theirs, ours) => found.push(Found { path, theirs: theirs.cloned(), ours: ours.cloned() }),
    }
}

/// The elements of a list with the names that tell them apart, if they have such.
fn named(list: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let name = |element: &'static str| {
        let names = list.iter().map(|value| Some((value.get(element)?.as_str()?, value)));
        names.collect::<Option<Vec<_>>>()
    };
    ["type", "name", "path"].into_iter().find_map(name).filter(|names| !names.is_empty())
}

mod tests;
