//! The files in `config/rbac` say what the roles are.

use std::path::Path;

use serde_json::{Value, json};

use super::super::*;

fn documents(path: &str) -> Vec<Value> {
    let files = files();
    let (_, text) = files.iter().find(|(file, _)| file.ends_with(path)).unwrap();
    serde_saphyr::from_multiple(text).unwrap()
}

#[test]
fn the_files_say_what_the_roles_are() {
    let written = |role: &Role| {
        let rule = |rule: &Rule| {
            let mut value = json!({"apiGroups": [rule.group], "resources": [rule.resource], "verbs": rule.verbs});
            if !rule.names.is_empty() {
                value["resourceNames"] = json!(rule.names);
            }
            value
        };
        (role.name, role.namespace, role.rules.iter().map(rule).collect::<Vec<_>>())
    };
    for (path, roles) in [("/role.yaml", operator()), ("/user_roles.yaml", people())] {
        let documents = documents(path);
        assert_eq!(documents.len(), roles.len(), "{path}");
        for (document, role) in documents.iter().zip(&roles) {
            let (name, namespace, rules) = written(role);
            assert_eq!(document["kind"], if namespace.is_some() { "Role" } else { "ClusterRole" });
            assert_eq!(document["metadata"]["name"], name);
            assert_eq!(document["metadata"]["namespace"].as_str(), namespace);
            assert_eq!(document["rules"], json!(rules));
            let labels = document["metadata"].get("labels").and_then(Value::as_object);
            let labels: Vec<_> = labels.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
            let expected: Vec<_> =
                role.part_of.iter().map(|part| format!("rbac.authorization.k8s.io/aggregate-to-{part}")).collect();
            assert_eq!(labels, expected);
        }
    }
}

#[test]
fn every_role_of_the_operator_is_given_to_its_service_account() {
    let bindings = documents("/role_binding.yaml");
    let roles = documents("/role.yaml");
    assert_eq!(bindings.len(), roles.len());
    for (binding, role) in bindings.iter().zip(&roles) {
        assert_eq!(binding["kind"], format!("{}Binding", role["kind"].as_str().unwrap()));
        assert_eq!(binding["metadata"]["namespace"], role["metadata"]["namespace"]);
        assert_eq!(
            (&binding["roleRef"]["kind"], &binding["roleRef"]["name"]),
            (&role["kind"], &role["metadata"]["name"])
        );
        let account = json!([{"kind": "ServiceAccount", "name": SERVICE_ACCOUNT, "namespace": NAMESPACE}]);
        assert_eq!(binding["subjects"], account);
    }
}

#[test]
fn the_files_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (path, expected) in files() {
        let committed = std::fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}
