//! Whether the rendered config of a pool contains a MachineConfig as it is meant to be.
//! A pool lists the names of the configs in a rendered config, but not their versions. Rendered configs never change, and a pool
//! renders another one only if their content differs. So the content tells whether a pool still has to render a change.

use serde_json::{Value, json};

use crate::{
    drift, fingerprint, kernel_arguments,
    machine_config::{ALWAYS_REBOOT, same},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    Included,
    /// Something of it is missing, or something is there that was to go.
    Missing,
    /// A file or a unit has other content: it is an earlier one, or another config overrides it.
    Unclear,
}

/// Where the lists of entries with a key are, and the key.
const LISTS: [(&str, &str); 2] = [("/spec/config/storage/files", "path"), ("/spec/config/systemd/units", "name")];

/// Texts that are longer than this are kept as fingerprints, which are shorter.
const LONGEST: usize = 100;

/// What `kubectl apply` keeps of an object: as much as the object itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// What has to be known of a MachineConfig of somebody else: its metadata, its arguments, and which files and units it has. There may
/// be many of them, and each may have a megabyte of files.
pub fn excerpt(mut config: Value) -> Value {
    let mut take = |at: &str| config.pointer_mut(at).map_or(Value::Null, Value::take);
    let mut metadata = take("/metadata");
    if let Some(annotations) = metadata.pointer_mut("/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let [files, units] = LISTS.map(|(at, _)| shortened(take(at)));
    json!({
        "apiVersion": take("/apiVersion"),
        "kind": take("/kind"),
        "metadata": metadata,
        "spec": {
            "kernelArguments": take("/spec/kernelArguments"),
            "config": {"storage": {"files": files}, "systemd": {"units": units}},
        },
    })
}

/// A value in which fingerprints stand for long texts. Two values are the same if these are.
fn shortened(value: Value) -> Value {
    match value {
        Value::String(text) if text.len() > LONGEST => format!("sha256 {}", fingerprint::sha256(&text.into())).into(),
        Value::Array(list) => list.into_iter().map(shortened).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, shortened(value))).collect(),
        value => value,
    }
}

/// Compares a rendered config with one of its parts. `before` is that part as it was until now, if it existed.
pub fn content(rendered: &Value, before: Option<&Value>, after: &Value) -> Content {
    let before = before.unwrap_or(&Value::Null);
    let lists = LISTS.map(|(at, key)| of_list(rendered, before, after, at, key));
    // These are not concatenated, so another config may have the last word.
    let is_other = |field: &str| field != "kernelArguments" && !same(&before["spec"][field], &after["spec"][field]);
    let others = if ALWAYS_REBOOT.into_iter().any(is_other) { Content::Unclear } else { Content::Included };
    let all = [of_arguments(rendered, before, after), lists[0], lists[1], others];
    [Content::Missing, Content::Unclear].into_iter().find(|found| all.contains(found)).unwrap_or(Content::Included)
}

/// A pool concatenates the entries of all of its configs, so none of them gets lost.
fn of_arguments(rendered: &Value, before: &Value, after: &Value) -> Content {
    let has = |config: &Value, entry: &str| kernel_arguments::entries(config).any(|known| known == entry);
    let is_complete = kernel_arguments::entries(after).all(|entry| has(rendered, entry));
    let is_left = kernel_arguments::entries(before).any(|entry| !has(after, entry) && has(rendered, entry));
    if is_complete && !is_left { Content::Included } else { Content::Missing }
}

fn of_list(rendered: &Value, before: &Value, after: &Value, at: &str, key: &str) -> Content {
    let list = |config: &'_ Value| config.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let (rendered, before, after) = (list(rendered), list(before), list(after));
    let find = |list: &[Value], entry: &Value| list.iter().rev().find(|known| known[key] == entry[key]).cloned();
    let is_left = |entry: &Value| {
        find(&after, entry).is_none() && find(&rendered, entry).is_some_and(|found| drift::contains(&found, entry))
    };
    if before.iter().any(is_left) || after.iter().any(|entry| find(&rendered, entry).is_none()) {
        return Content::Missing;
    }
    let is_same = |entry: &Value| find(&rendered, entry).is_some_and(|found| drift::contains(&found, entry));
    if after.iter().all(is_same) { Content::Included } else { Content::Unclear }
}

/// Whether a rendered config has exactly the kernel arguments of these configs.
pub fn has_arguments_of(rendered: &Value, configs: &[&Value]) -> bool {
    let mut wanted: Vec<&str> = configs.iter().copied().flat_map(kernel_arguments::entries).collect();
    let mut found: Vec<&str> = kernel_arguments::entries(rendered).collect();
    wanted.sort_unstable();
    found.sort_unstable();
    wanted == found
}

/// Whether a rendered config has exactly the files and units of these configs, which are in the order in which they are merged: the
/// last of several with one key counts. Entries that a pool merges field by field are not recognized. Excerpts are sufficient.
pub fn has_entries_of(rendered: &Value, configs: &[&Value]) -> bool {
    LISTS.iter().all(|(at, key)| {
        let list = |config: &Value| -> Vec<Value> {
            let entries = config.pointer(at).and_then(Value::as_array).into_iter().flatten();
            entries.cloned().map(shortened).collect()
        };
        let wanted: Vec<Value> = configs.iter().flat_map(|config| list(config)).collect();
        let found = list(rendered);
        let last = |entry: &Value| wanted.iter().rev().find(|known| known[*key] == entry[*key]);
        found.iter().all(|entry| last(entry).is_some_and(|last| drift::contains(entry, last)))
            && wanted.iter().all(|entry| found.iter().any(|known| known[*key] == entry[*key]))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use Content::*;

    fn arguments(list: &[&str]) -> Value {
        json!({"spec": {"kernelArguments": list}})
    }

    fn file(path: &str, text: &str) -> Value {
        json!({"path": path, "mode": 420, "contents": {"source": text}})
    }

    fn files(list: &[Value]) -> Value {
        json!({"spec": {"config": {"storage": {"files": list}}}})
    }

    #[test]
    fn kernel_arguments_are_all_there_or_the_pool_has_to_render_again() {
        let cases = [
            ("one of many", &["quiet", "psi=1"][..], None, &["psi=1"][..], Included),
            ("not yet", &["quiet"], None, &["psi=1"], Missing),
            ("with another value", &["psi=0"], Some(&["psi=0"][..]), &["psi=1"], Missing),
            ("set back before the pool noticed", &["psi=1"], Some(&["psi=0"]), &["psi=1"], Included),
            (
                "one that is to go is still there",
                &["psi=1", "audit=0"],
                Some(&["psi=1", "audit=0"]),
                &["psi=1"],
                Missing,
            ),
            ("one that was to go never came", &["psi=1"], Some(&["psi=1", "audit=0"]), &["psi=1"], Included),
            ("nothing to include", &["quiet"], None, &[], Included),
        ];
        for (case, rendered, before, after, expected) in cases {
            let before = before.map(arguments);
            assert_eq!(content(&arguments(rendered), before.as_ref(), &arguments(after)), expected, "{case}");
        }
    }

    #[test]
    fn files_and_units_are_found_by_their_keys_and_may_be_overridden() {
        let normalized =
            json!({"path": "/a", "mode": 420, "overwrite": true, "contents": {"source": "x", "compression": ""}});
        let cases = [
            ("as it is normalized", vec![normalized], vec![], vec![file("/a", "x")], Included),
            ("not there", vec![file("/b", "x")], vec![], vec![file("/a", "x")], Missing),
            ("an earlier one, or overridden", vec![file("/a", "y")], vec![], vec![file("/a", "x")], Unclear),
            ("the last one counts", vec![file("/a", "y"), file("/a", "x")], vec![], vec![file("/a", "x")], Included),
            (
                "one that is to go is still there",
                vec![file("/a", "x"), file("/b", "x")],
                vec![file("/a", "x"), file("/b", "x")],
                vec![file("/a", "x")],
                Missing,
            ),
            (
                "one that goes, and another config has it too",
                vec![file("/b", "z")],
                vec![file("/b", "x")],
                vec![],
                Included,
            ),
        ];
        for (case, rendered, before, after, expected) in cases {
            assert_eq!(content(&files(&rendered), Some(&files(&before)), &files(&after)), expected, "{case}");
        }
        let unit =
            |text: &str| json!({"spec": {"config": {"systemd": {"units": [{"name": "a.service", "contents": text}]}}}});
        assert_eq!(content(&unit("x"), None, &unit("x")), Included);
        assert_eq!(content(&unit("y"), None, &unit("x")), Unclear);
        assert_eq!(content(&json!({}), None, &unit("x")), Missing);
    }

    #[test]
    fn what_cannot_be_compared_is_unclear_and_what_is_missing_comes_first() {
        let realtime = json!({"spec": {"kernelType": "realtime"}});
        assert_eq!(content(&realtime, None, &realtime), Unclear);
        assert_eq!(content(&realtime, Some(&realtime), &realtime), Included, "it does not change");
        let both = json!({"spec": {"kernelType": "realtime", "kernelArguments": ["psi=1"]}});
        assert_eq!(content(&realtime, None, &both), Missing);
    }

    #[test]
    fn a_rendered_config_has_the_arguments_of_all_of_its_configs_and_no_others() {
        let cases = [
            ("one after another", vec!["quiet", "psi=1"], vec![vec!["quiet"], vec!["psi=1"]], true),
            ("in any order", vec!["psi=1", "quiet"], vec![vec!["quiet"], vec!["psi=1"]], true),
            ("the same from two configs", vec!["psi=1", "psi=1"], vec![vec!["psi=1"], vec!["psi=1"]], true),
            ("from one of two that have it now", vec!["psi=1"], vec![vec!["psi=1"], vec!["psi=1"]], false),
            ("from one that does not have it any more", vec!["audit=0", "psi=1"], vec![vec!["psi=1"]], false),
            ("not yet", vec!["quiet"], vec![vec!["quiet"], vec!["psi=1"]], false),
        ];
        for (case, rendered, configs, expected) in cases {
            let configs: Vec<Value> = configs.iter().map(|list| arguments(list)).collect();
            let configs: Vec<&Value> = configs.iter().collect();
            assert_eq!(has_arguments_of(&arguments(&rendered), &configs), expected, "{case}");
        }
    }

    #[test]
    fn a_rendered_config_has_the_last_of_files_with_one_path() {
        let (early, late) = (files(&[file("/a", "x")]), files(&[file("/a", "y"), file("/b", "z")]));
        let cases = [
            ("overridden", vec![file("/a", "y"), file("/b", "z")], true),
            ("the earlier one", vec![file("/a", "x"), file("/b", "z")], false),
            ("one is missing", vec![file("/a", "y")], false),
            ("one of a config that is gone", vec![file("/a", "y"), file("/b", "z"), file("/c", "z")], false),
        ];
        for (case, rendered, expected) in cases {
            assert_eq!(has_entries_of(&files(&rendered), &[&early, &late]), expected, "{case}");
        }
    }

    /// A hundred configs of others may be needed at a time.
    #[test]
    fn an_excerpt_of_a_config_is_small_and_tells_the_same() {
        let (long, other) = ("x".repeat(1 << 20), "y".repeat(1 << 20));
        let whole = |text: &str| {
            json!({
                "apiVersion": "v", "kind": "MachineConfig",
                "metadata": {
                    "name": "a", "labels": {"role": "worker"}, "annotations": {LAST_APPLIED: text, "mode": "unmanaged"},
                },
                "spec": {
                    "kernelArguments": ["quiet"], "extensions": [text], "osImageURL": text,
                    "config": {
                        "passwd": {"users": [text]},
                        "storage": {"files": [file("/a", text), file("/b", "short")], "directories": [text]},
                        "systemd": {"units": [{"name": "a.service", "contents": text}]},
                    },
                },
            })
        };
        let (config, changed) = (whole(&long), whole(&other));
        let excerpt = |config: &Value| super::excerpt(config.clone());
        assert!(excerpt(&config).to_string().len() < 1000, "{}", excerpt(&config));
        assert_eq!(
            excerpt(&config)["metadata"],
            json!({"name": "a", "labels": {"role": "worker"}, "annotations": {"mode": "unmanaged"}})
        );
        assert_eq!(kernel_arguments::entries(&excerpt(&config)).collect::<Vec<_>>(), ["quiet"]);
        assert!(has_arguments_of(&config, &[&excerpt(&config)]));
        assert!(has_entries_of(&config, &[&config]) && has_entries_of(&config, &[&excerpt(&config)]));
        assert!(!has_entries_of(&changed, &[&excerpt(&config)]), "a file has other content");
        assert_eq!(excerpt(&excerpt(&config)), excerpt(&config));
        assert!(has_entries_of(&json!({}), &[&excerpt(&arguments(&["quiet"]))]), "no files, no units");
        for odd in [Value::Null, json!("text"), json!({"metadata": 1, "spec": "text"})] {
            assert!(has_entries_of(&json!({}), &[&excerpt(&odd)]), "{odd}");
        }
    }
}
