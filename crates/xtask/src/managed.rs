//! Tells which configurations still manage objects of others, and how to take that back.

use serde_json::Value;

/// Warns before the operator or its kinds are removed.
pub(crate) fn warn(configurations: &Value) {
    let lines = told(configurations);
    if lines.is_empty() {
        return;
    }
    eprintln!("These VirtPlatformConfigs still manage objects, which stay as they are:");
    lines.iter().for_each(|line| eprintln!("  {line}"));
    eprintln!(
        "To set them back instead, do this first, while the operator runs, and approve the plan that follows (docs/undo.md):"
    );
    eprintln!(r#"  kubectl patch vpcfg NAME --type=merge -p '{{"spec":{{"restore":{{"record":"original"}}}}}}'"#);
}

/// Each configuration that manages something, with what it manages.
fn told(configurations: &Value) -> Vec<String> {
    let all = configurations["items"].as_array().into_iter().flatten();
    let told = |config: &Value| {
        let targets: Vec<String> = config["status"]["items"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|item| is_applied(item))
            .map(target)
            .collect();
        let name = config["metadata"]["name"].as_str().unwrap_or("-");
        (!targets.is_empty() && !has_given_back(config)).then(|| format!("{name:<24} {}", targets.join(", ")))
    };
    all.filter_map(told).collect()
}

fn is_applied(item: &Value) -> bool {
    item["appliedFingerprint"].is_string() && item["operation"] != "Delete"
}

/// Whether a restore has been applied.
fn has_given_back(config: &Value) -> bool {
    config["status"]["restore"].is_object() && config["status"]["phase"] == "Completed"
}

fn target(item: &Value) -> String {
    let text = |name: &str| item["targetRef"][name].as_str().unwrap_or("-");
    format!("{} {}", text("kind"), text("name"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_applied_and_not_given_back_is_told() {
        let item = |kind: &str, fingerprint: Option<&str>| json!({"targetRef": {"kind": kind, "name": "cluster"}, "appliedFingerprint": fingerprint, "operation": "Apply"});
        let config = |name: &str, items: Value, restore: Value, phase: &str| json!({"metadata": {"name": name}, "status": {"items": items, "restore": restore, "phase": phase}});
        let applied = || json!([item("A", Some("f")), item("B", None), item("C", Some("f"))]);
        let restore = || json!({"record": "original"});
        let configurations = json!({"items": [
            config("applied", applied(), Value::Null, "Drifted"),
            config("planned", json!([item("A", None)]), Value::Null, "ReviewRequired"),
            config("restored", applied(), restore(), "Completed"),
            config("restoring", applied(), restore(), "InProgress"),
            {"metadata": {"name": "new"}},
        ]});
        assert_eq!(
            told(&configurations),
            ["applied                  A cluster, C cluster", "restoring                A cluster, C cluster"]
        );
        assert_eq!(told(&Value::Null), [""; 0]);
    }
}
