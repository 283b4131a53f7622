//! How Flux, Helm and kpt read the status of any object: the rules of kstatus, for tests.

use serde_json::Value;

/// `Current`, `InProgress`, `Failed` or `Terminating`.
pub fn kstatus(object: &Value) -> &'static str {
    if object.pointer("/metadata/deletionTimestamp").is_some() {
        return "Terminating";
    }
    let observed = object.pointer("/status/observedGeneration");
    if observed.is_some_and(|observed| Some(observed) != object.pointer("/metadata/generation")) {
        return "InProgress";
    }
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    // The order of the list decides between these two.
    for condition in conditions.iter().filter(|condition| condition["status"] == "True") {
        match condition["type"].as_str() {
            Some("Reconciling") => return "InProgress",
            Some("Stalled") => return "Failed",
            _ => {}
        }
    }
    match conditions.iter().find(|condition| condition["type"] == "Ready") {
        Some(ready) if ready["status"] != "True" => "InProgress",
        _ => "Current",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_rules() {
        let object = |generation: i64, conditions: &[(&str, &str)]| {
            let conditions: Vec<_> =
                conditions.iter().map(|(kind, status)| json!({"type": kind, "status": status})).collect();
            json!({"metadata": {"generation": generation}, "status": {"observedGeneration": 2, "conditions": conditions}})
        };
        for (object, expected) in [
            (json!({"metadata": {"generation": 1}}), "Current"),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "Terminating"),
            (object(3, &[("Ready", "True")]), "InProgress"),
            (object(2, &[]), "Current"),
            (object(2, &[("Ready", "True")]), "Current"),
            (object(2, &[("Ready", "False")]), "InProgress"),
            (object(2, &[("Ready", "Unknown")]), "InProgress"),
            (object(2, &[("Ready", "False"), ("Stalled", "True")]), "Failed"),
            (object(2, &[("Ready", "True"), ("Stalled", "False")]), "Current"),
            (object(2, &[("Reconciling", "True"), ("Stalled", "True")]), "InProgress"),
            (object(2, &[("Stalled", "True"), ("Reconciling", "True")]), "Failed"),
        ] {
            assert_eq!(kstatus(&object), expected, "{object}");
        }
    }
}
