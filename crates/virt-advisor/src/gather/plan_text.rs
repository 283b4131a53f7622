//! A plan as text: what the status or a record says of it, with the payloads of Ignition files decoded.

use serde_json::Value;

use crate::plan::diff_text::decoded;

/// The plan in the status of a configuration.
pub(crate) fn of_config(config: &Value) -> String {
    let status = &config["status"];
    let mut text = format!("{}\n\n", name(config));
    for (label, value) in [
        ("action", &config["spec"]["action"]),
        ("phase", &status["phase"]),
        ("impact", &status["impactSeverity"]),
        ("plan digest", &status["planDigest"]),
        ("operator", &status["operatorVersion"]),
        ("record", &status["record"]["name"]),
    ] {
        text += &field(label, value);
    }
    text += &holding_conditions(status);
    text += &listed("input", &status["inputs"], |input| {
        format!("{} {} = {}", plain(&input["source"]), plain(&input["path"]), plain(&input["value"]))
    });
    text += &listed("risk", &status["risks"], |risk| format!("{}: {}", plain(&risk["name"]), plain(&risk["message"])));
    text += &listed("note", &status["notes"], plain);
    text + &items(&status["items"])
}

/// The plan that a record holds.
pub(crate) fn of_record(record: &Value) -> String {
    let (spec, status) = (&record["spec"], &record["status"]);
    let mut text = format!("{}\n\n", name(record));
    for (label, value) in [
        ("outcome", &status["outcome"]),
        ("message", &status["message"]),
        ("started", &spec["startedAt"]),
        ("finished", &status["finishedAt"]),
        ("approved by", &spec["approval"]["approvedBy"]),
        ("plan digest", &spec["planDigest"]),
        ("operator", &spec["operatorVersion"]),
    ] {
        text += &field(label, value);
    }
    text += &listed("item", &status["items"], |item| {
        format!("{}: {} {}", plain(&item["name"]), plain(&item["state"]), plain(&item["message"]))
    });
    text + &items(&spec["items"])
}

fn name(object: &Value) -> String {
    format!("{} {}", plain(&object["kind"]), plain(&object["metadata"]["name"]))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn field(label: &str, value: &Value) -> String {
    if value.is_null() { String::new() } else { format!("{label:<12} {}\n", plain(value)) }
}

fn holding_conditions(status: &Value) -> String {
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let holding = conditions.filter(|condition| condition["status"] == "True");
    let line = |condition: &Value| {
        let [kind, reason, message] = ["type", "reason", "message"].map(|field| plain(&condition[field]));
        format!("{:<12} {kind} ({reason}): {message}\n", "condition")
    };
    holding.map(line).collect()
}

fn listed(label: &str, list: &Value, line: impl Fn(&Value) -> String) -> String {
    list.as_array().into_iter().flatten().map(|entry| format!("{label:<12} {}\n", line(entry))).collect()
}

fn items(items: &Value) -> String {
    let mut text = String::new();
    for (number, item) in items.as_array().into_iter().flatten().enumerate() {
        let target = &item["targetRef"];
        let namespace = target["namespace"].as_str().map_or_else(String::new, |namespace| format!("{namespace}/"));
        let object = format!("{} {namespace}{}", plain(&target["kind"]), plain(&target["name"]));
        text += &format!("\n{}. {}: {object}\n", number + 1, plain(&item["name"]));
        for (label, value) in [
            ("state", &item["state"]),
            ("message", &item["message"]),
            ("impact", &item["impactSeverity"]),
            ("drifted by", &drifted_by(&item["driftedBy"])),
        ] {
            text += &field(label, value);
        }
        text += &listed("rollout", &item["rollout"], |pool| {
            let [name, state, updated, total, cause] =
                ["pool", "state", "updated", "total", "cause"].map(|field| plain(&pool[field]));
            format!("pool {name}: {state}, {updated} of {total} nodes updated, cause {cause}")
        });
        let diff = item["readableDiff"].as_str().or(item["diff"].as_str()).unwrap_or_default();
        text += &format!("\n{}", decoded(diff));
    }
    text
}

/// Who has changed a managed field. Nothing tells who has deleted an object.
fn drifted_by(drifted_by: &Value) -> Value {
    if drifted_by["deleted"] == true { "a deletion, nothing tells whose".into() } else { drifted_by["manager"].clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_plan_is_told_with_its_conditions_and_the_pool_that_does_not_get_on() {
        let config = json!({
            "kind": "VirtPlatformConfig", "metadata": {"name": "p"}, "spec": {"action": "Apply"},
            "status": {
                "phase": "InProgress", "planDigest": "abc",
                "conditions": [
                    {"type": "Stalled", "status": "True", "reason": "NoProgress", "message": "pool worker"},
                    {"type": "Ready", "status": "False", "reason": "x", "message": "y"},
                ],
                "inputs": [{"source": "HyperConverged/h", "path": "spec.a"}],
                "items": [{
                    "name": "psi", "targetRef": {"kind": "MachineConfig", "name": "m"}, "state": "InProgress",
                    "rollout": [{"pool": "worker", "state": "Degraded", "updated": 1, "total": 3, "cause": "node-2: disk"}],
                    "diff": "+a\n",
                }],
            },
        });
        let expected = "\
VirtPlatformConfig p

action       Apply
phase        InProgress
plan digest  abc
condition    Stalled (NoProgress): pool worker
input        HyperConverged/h spec.a = -

1. psi: MachineConfig m
state        InProgress
rollout      pool worker: Degraded, 1 of 3 nodes updated, cause node-2: disk

+a
";
        assert_eq!(of_config(&config), expected);
    }

    #[test]
    fn a_deletion_is_told_as_one() {
        let drifted =
            |by: Value| items(&json!([{"name": "i", "targetRef": {"kind": "K", "name": "o"}, "driftedBy": by}]));
        assert!(drifted(json!({"manager": "kubectl-edit"})).contains("drifted by   kubectl-edit\n"));
        let deleted = drifted(json!({"manager": "unknown", "deleted": true}));
        assert!(deleted.contains("drifted by   a deletion, nothing tells whose\n"), "{deleted}");
        assert!(!drifted(Value::Null).contains("drifted"));
    }

    #[test]
    fn a_record_is_told_with_who_agreed_and_how_it_ended() {
        let record = json!({
            "kind": "VirtPlatformPlanRecord", "metadata": {"name": "p-1"},
            "spec": {"approval": {"approvedBy": "jane"}, "items": [{"name": "i", "targetRef": {"kind": "K", "namespace": "n", "name": "o"}, "readableDiff": "+b\n", "diff": "+a\n"}]},
            "status": {"outcome": "Failed", "items": [{"name": "i", "state": "Failed", "message": "no"}]},
        });
        let text = of_record(&record);
        for part in
            ["outcome      Failed\n", "approved by  jane\n", "item         i: Failed no\n", "1. i: K n/o\n", "\n+b\n"]
        {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
    }
}
