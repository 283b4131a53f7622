//! The shape of the policies. What they refuse is tested on a real API server, in the tests of the operator.

use std::path::Path;

use super::*;

fn expressions(policy: &Value) -> Vec<&str> {
    let lists = ["matchConditions", "variables", "validations", "auditAnnotations"];
    let entries = lists.iter().flat_map(|list| policy["spec"][list].as_array().into_iter().flatten());
    let fields = ["expression", "message", "messageExpression", "valueExpression"];
    entries.flat_map(|entry| fields.iter().filter_map(|field| entry[field].as_str())).collect()
}

#[test]
fn no_text_has_a_line_break_and_no_expression_asks_for_more_than_one_right() {
    for policy in policies("jane") {
        let expressions = expressions(&policy);
        assert!(expressions.len() > 3, "{policy}");
        for expression in expressions {
            assert!(!expression.contains('\n') && expression.len() < 5_000, "{expression}");
            assert!(expression.matches(".check(").count() <= 1, "{expression}");
        }
    }
}

#[test]
fn every_refusal_is_forbidden_and_has_words_for_when_its_expression_fails() {
    for policy in policies("jane") {
        for validation in policy["spec"]["validations"].as_array().unwrap() {
            assert_eq!(validation["reason"], "Forbidden");
            assert!(validation["message"].as_str().is_some_and(|message| message.ends_with('.')), "{validation}");
        }
    }
}

#[test]
fn variables_are_not_used_where_they_cannot_be() {
    let [approval, _] = policies("jane");
    for condition in approval["spec"]["matchConditions"].as_array().unwrap() {
        assert!(!condition["expression"].as_str().unwrap().contains("variables."), "{condition}");
    }
}

#[test]
fn a_user_name_cannot_end_the_literal_that_holds_it() {
    assert_eq!(text(r"o'neill\x"), r"'o\'neill\\x'");
}

#[test]
fn bindings_are_the_switch() {
    let actions = |mode| -> Vec<Value> {
        bindings(mode).iter().map(|binding| binding["spec"]["validationActions"].clone()).collect()
    };
    assert_eq!(actions(PolicyMode::Enforce), [json!(["Deny"]), json!(["Deny"])]);
    assert_eq!(actions(PolicyMode::Audit), [json!(["Audit"]), json!(["Audit"])]);
    assert_eq!(kept(PolicyMode::Off, "jane", "1"), [Value::Null; 0]);
}

#[test]
fn what_the_operator_keeps_goes_with_the_definition_and_is_known_as_its_own() {
    let kept = kept(PolicyMode::Enforce, "jane", "the-uid");
    let mut known = paths().to_vec();
    known.sort();
    let mut found: Vec<_> = kept.iter().map(path).collect();
    found.sort();
    assert_eq!(found, known);
    for object in &kept {
        assert!(is_kept(object));
        assert_eq!(object["metadata"]["ownerReferences"][0]["uid"], "the-uid");
    }
    assert!(policies("jane").iter().all(|policy| !is_kept(policy)), "those of config/admission are somebody else's");
}

#[test]
fn an_addition_of_others_is_replaced_and_a_faithful_object_is_not() {
    let [wanted, _] = policies("jane");
    let mut found = wanted.clone();
    found["metadata"]["resourceVersion"] = "7".into();
    assert_eq!(replacement(&found, &wanted), None);
    found["spec"]["matchConditions"].as_array_mut().unwrap().push(json!({"name": "never", "expression": "false"}));
    let replaced = replacement(&found, &wanted).unwrap();
    assert_eq!((&replaced["spec"], &replaced["metadata"]["resourceVersion"]), (&wanted["spec"], &json!("7")));
}

// --- files ---

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_files_are_up_to_date() {
    for (path, expected) in files() {
        let committed = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(committed == expected, "{path} is out of date: run `make generate` and commit the result");
    }
}

#[test]
fn the_files_hold_the_objects() {
    let documents = |path: &str| -> Vec<Value> {
        let files = files();
        let (_, text) = files.iter().find(|(file, _)| *file == path).unwrap();
        serde_saphyr::from_multiple(text).unwrap()
    };
    assert_eq!(documents("config/admission/policies.yaml"), policies(&installed_operator()));
    assert_eq!(documents("config/admission/bindings.yaml"), bindings(PolicyMode::Enforce));
    let role = documents("config/approval-policy/role.yaml");
    assert_eq!(role[0]["metadata"]["name"], role[1]["roleRef"]["name"]);
    let account = json!([{
        "kind": "ServiceAccount",
        "name": format!("{NAME_PREFIX}{SERVICE_ACCOUNT}"),
        "namespace": NAMESPACE,
    }]);
    assert_eq!(role[1]["subjects"], account);
}

#[test]
fn the_prefix_is_the_one_of_the_installation() {
    let kustomization = std::fs::read_to_string(root().join("config/default/kustomization.yaml")).unwrap();
    assert!(kustomization.contains(&format!("namePrefix: {NAME_PREFIX}\n")), "{kustomization}");
}
