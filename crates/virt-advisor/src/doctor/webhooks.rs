//! Admission webhooks that cannot be asked by a dry run. A plan that changes what they watch cannot be previewed.

use std::collections::BTreeSet;

use advisor::{Access, Kind, profiles};
use kube_io::RequestError;
use serde_json::Value;

use super::finding::Finding;

const CHECK: &str = "webhooks";

/// `configurations` are ValidatingWebhookConfigurations and MutatingWebhookConfigurations.
pub(super) fn webhooks(configurations: &Result<Vec<Value>, RequestError>) -> Finding {
    let configurations = match configurations {
        Ok(configurations) => configurations,
        Err(error) => return Finding::unknown(CHECK, "they may not be listed", error),
    };
    let kinds = previewed();
    let mut found = Vec::new();
    for configuration in configurations {
        for webhook in configuration["webhooks"].as_array().into_iter().flatten().filter(|webhook| !is_pure(webhook)) {
            let matched: Vec<&str> = kinds.iter().filter(|kind| matches(webhook, kind)).map(|kind| kind.kind).collect();
            if !matched.is_empty() {
                let [owner, name] =
                    [&configuration["metadata"]["name"], &webhook["name"]].map(|name| name.as_str().unwrap_or("-"));
                found.push(format!("{name} of {owner} ({})", matched.join(", ")));
            }
        }
    }
    if found.is_empty() {
        return Finding::ok(CHECK, "all that see planned changes can be asked by a dry run");
    }
    Finding::problem(
        CHECK,
        format!("these do not support dry runs, so plans that they see cannot be made: {}", found.join("; ")),
        "ask their owner to set sideEffects to None or NoneOnDryRun",
    )
}

/// The kinds that plans change, and which therefore are previewed.
fn previewed() -> BTreeSet<&'static Kind> {
    let declared = profiles::PROFILES.iter().flat_map(|profile| profile.access());
    let changed = declared.filter(|access| matches!(access, Access::Change(_) | Access::Create(_) | Access::Delete(_)));
    changed.map(|access| access.kind()).collect()
}

fn is_pure(webhook: &Value) -> bool {
    matches!(webhook["sideEffects"].as_str(), Some("None" | "NoneOnDryRun"))
}

/// Whether a rule of the webhook names the kind. Selectors are not looked at: a webhook may see less than this.
fn matches(webhook: &Value, kind: &Kind) -> bool {
    let has = |rule: &Value, field: &str, wanted: &[&str]| {
        let mut given = rule[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        given.any(|given| given == "*" || wanted.contains(&given))
    };
    let mut rules = webhook["rules"].as_array().into_iter().flatten();
    rules.any(|rule| {
        has(rule, "apiGroups", &[kind.group])
            && has(rule, "apiVersions", kind.versions)
            && has(rule, "resources", &[kind.plural, "*/*"])
            && has(rule, "operations", &["CREATE", "UPDATE", "DELETE"])
    })
}

#[cfg(test)]
mod tests {
    use kube_io::Class;
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Level;

    fn level(side_effects: &str, group: &str, resource: &str, operation: &str) -> Level {
        let rule =
            json!({"apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": [operation]});
        let webhook = json!({"name": "w", "sideEffects": side_effects, "rules": [rule]});
        webhooks(&Ok(vec![json!({"metadata": {"name": "c"}, "webhooks": [webhook]})])).level
    }

    #[test]
    fn a_webhook_matters_if_it_sees_what_plans_change_and_cannot_be_asked() {
        let mco = "machineconfiguration.openshift.io";
        for (case, found, expected) in [
            ("it can be asked", level("None", mco, "machineconfigs", "*"), Level::Ok),
            ("it says so", level("NoneOnDryRun", mco, "machineconfigs", "*"), Level::Ok),
            ("it cannot", level("Some", mco, "machineconfigs", "UPDATE"), Level::Problem),
            ("nobody knows", level("Unknown", "*", "*", "CREATE"), Level::Problem),
            ("of another kind", level("Some", mco, "kubeletconfigs", "*"), Level::Ok),
            ("of another group", level("Some", "", "machineconfigs", "*"), Level::Ok),
            ("only connections", level("Some", mco, "machineconfigs", "CONNECT"), Level::Ok),
            ("a kind that is only read", level("Some", mco, "machineconfigpools", "*"), Level::Ok),
        ] {
            assert_eq!(found, expected, "{case}");
        }
        let denied = RequestError::other("reading".into(), "no".into(), Class::Forbidden);
        assert_eq!(webhooks(&Err(denied)).level, Level::Unknown);
    }
}
