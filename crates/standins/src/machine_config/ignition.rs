//! Merges Ignition configs as Ignition does: field by field, and lists of named entries by name. The later config wins.

use serde_json::Value;

/// Merges `later` into `base`.
pub(super) fn merge(base: &mut Value, later: &Value) {
    merge_field("", base, later);
}

fn merge_field(field: &str, base: &mut Value, later: &Value) {
    match (base, later) {
        (_, Value::Null) => {}
        (Value::Object(base), Value::Object(later)) => {
            for (key, value) in later {
                merge_field(key, base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(base), Value::Array(later)) => {
            for entry in later {
                let same = |known: &&mut Value| identity(field, known) == identity(field, entry);
                match base.iter_mut().find(same) {
                    Some(known) => merge_field(field, known, entry),
                    None => base.push(entry.clone()),
                }
            }
        }
        (base, later) => *base = later.clone(),
    }
}

/// The part of a list entry that identifies it. A plain text, such as a key or a group, identifies itself.
fn identity<'a>(list: &str, entry: &'a Value) -> &'a Value {
    let key = match list {
        "files" | "directories" | "links" => "path",
        "disks" | "filesystems" => "device",
        "partitions" => "label",
        _ => "name",
    };
    entry.get(key).unwrap_or(entry)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn later_configs_win_field_by_field_and_name_by_name() {
        let cases = [
            (
                "a file of another path is added",
                json!({"storage": {"files": [{"path": "/a"}]}}),
                json!({"storage": {"files": [{"path": "/b"}]}}),
                json!({"storage": {"files": [{"path": "/a"}, {"path": "/b"}]}}),
            ),
            (
                "a file of the same path is replaced where it stands",
                json!({"storage": {"files": [{"path": "/a", "contents": {"source": "data:,1"}}, {"path": "/b"}]}}),
                json!({"storage": {"files": [{"path": "/a", "contents": {"source": "data:,2"}}]}}),
                json!({"storage": {"files": [{"path": "/a", "contents": {"source": "data:,2"}}, {"path": "/b"}]}}),
            ),
            (
                "what the later one does not say stays",
                json!({"storage": {"files": [{"path": "/a", "mode": 420}]}}),
                json!({"storage": {"files": [{"path": "/a", "overwrite": true, "mode": null}]}}),
                json!({"storage": {"files": [{"path": "/a", "mode": 420, "overwrite": true}]}}),
            ),
            (
                "units by name, drop-ins within them too",
                json!({"systemd": {"units": [{"name": "a.service", "enabled": true, "dropins": [{"name": "x", "contents": "1"}]}]}}),
                json!({"systemd": {"units": [{"name": "a.service", "enabled": false, "dropins": [{"name": "x", "contents": "2"}, {"name": "y"}]}]}}),
                json!({"systemd": {"units": [{"name": "a.service", "enabled": false, "dropins": [{"name": "x", "contents": "2"}, {"name": "y"}]}]}}),
            ),
            (
                "keys of the same user come together, each once",
                json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one", "two"]}]}}),
                json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["two", "three"]}]}}),
                json!({"passwd": {"users": [{"name": "core", "sshAuthorizedKeys": ["one", "two", "three"]}]}}),
            ),
            (
                "onto nothing",
                json!({}),
                json!({"ignition": {"version": "3.2.0"}}),
                json!({"ignition": {"version": "3.2.0"}}),
            ),
            ("nothing", json!({"ignition": {}}), Value::Null, json!({"ignition": {}})),
        ];
        for (case, mut base, later, expected) in cases {
            merge(&mut base, &later);
            assert_eq!(base, expected, "{case}");
        }
    }
}
