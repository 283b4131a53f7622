//! Tells which configurations still manage objects of others, and how to take that back.

use advisor::record::managed;
use api::{VirtPlatformPlanRecord, virt_platform_config::TargetRef};
use serde_json::Value;

use crate::install::Listed;

/// Warns before the operator or its kinds are removed.
pub(crate) fn warn(listed: &Listed) {
    let lines = told(listed);
    if lines.is_empty() {
        return;
    }
    eprintln!("These VirtPlatformConfigs still manage objects, which stay as they are:");
    lines.iter().for_each(|line| eprintln!("  {line}"));
    eprintln!(
        "To set them back instead, do this first, while the operator runs, and approve the plan that follows (docs/undo.md):"
    );
    let patch = r#"{"spec":{"action":"DryRun","restore":{"record":"original"}}}"#;
    eprintln!("  kubectl patch vpcfg NAME --type=merge -p '{patch}'");
}

/// Each configuration that manages something, with what it manages.
fn told(listed: &Listed) -> Vec<String> {
    let all = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    // What cannot be read was not written by the operator.
    let records: Vec<VirtPlatformPlanRecord> =
        all(&listed.records).into_iter().filter_map(|record| serde_json::from_value(record).ok()).collect();
    let told = |config: Value| {
        let name = config["metadata"]["name"].as_str().unwrap_or("-");
        let records: Vec<_> = records.iter().filter(|record| record.spec.profile.as_str() == name).cloned().collect();
        let status = serde_json::from_value(config["status"].clone()).ok();
        let targets: Vec<String> = managed(status.as_ref(), &records).iter().map(described).collect();
        (!targets.is_empty()).then(|| format!("{name:<24} {}", targets.join(", ")))
    };
    all(&listed.configurations).into_iter().filter_map(told).collect()
}

fn described(target: &TargetRef) -> String {
    format!("{} {}", target.kind, target.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_configuration_is_told_with_the_objects_that_its_records_name() {
        let item = |kind: &str| json!({"name": kind, "targetRef": {"apiVersion": "v1", "kind": kind, "name": "cluster"}, "operation": "Apply", "fieldManager": "m", "existed": false});
        let record = json!({
            "apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformPlanRecord", "metadata": {"name": "example-profile-1"},
            "spec": {
                "profile": "example-profile", "configUid": "u", "generation": 1, "planDigest": "d", "operatorVersion": "v",
                "startedAt": "2026-01-05T08:00:00Z", "impactSeverity": "Low", "items": [item("A"), item("B")],
            },
        });
        let config = |name: &str| json!({"metadata": {"name": name}, "status": {"phase": "ReviewRequired"}});
        let configurations = json!({"items": [config("example-profile"), config("virt-higher-density")]});
        let listed =
            Listed { configurations, records: json!({"items": [record, {"metadata": {"name": "unreadable"}}]}) };
        assert_eq!(told(&listed), ["example-profile          A cluster, B cluster"]);
        assert_eq!(told(&Listed { configurations: Value::Null, records: Value::Null }), [""; 0]);
    }
}
