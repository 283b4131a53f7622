//! The same decision whatever request carries an edit: patch, apply, replacement, creation, dry run; and who writes a status.

use advisor::admission;
use serde_json::{Value, json};
use testkit::{
    configs::config,
    eventually,
    platform::{LOAD_AWARE, Platform, path},
};

use super::{
    APPLY, JSON, MERGE, Person, approved, boss, cluster, install_policies, person, plan_a, plan_b, planned, put,
    shipped, until_enforced, writer,
};

/// A new configuration with plan A.
async fn with_plan(platform: &Platform) -> Value {
    let object = config(LOAD_AWARE, json!({"action": "DryRun"}));
    platform.delete(&object).await;
    Person::new(platform, &boss()).await.create(&object).await.unwrap();
    let writer = Person::new(platform, &writer()).await;
    writer.patch_status(&object, &planned(&plan_a()), "").await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_decision_does_not_depend_on_the_kind_of_request() {
    let platform = cluster().await;
    install_policies(&platform).await;
    let approver = Person::new(&platform, &person("approver")).await;
    for digest in [plan_a(), plan_b()] {
        for (method, content) in [("PATCH", MERGE), ("PATCH", APPLY), ("PUT", JSON)] {
            for dry_run in ["&dryRun=All", ""] {
                let stored = with_plan(&platform).await;
                let mut object = config(LOAD_AWARE, approved("approver", &digest));
                if method == "PUT" {
                    object["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
                    // The status of this request does not count.
                    object["status"] = json!({"phase": "ReviewRequired", "planDigest": plan_b()});
                }
                let force = if content == APPLY { "&force=true" } else { "" };
                let uri = format!("{}?fieldManager=approver{force}{dry_run}", path(&object));
                let answer = approver.send(method, &uri, content, &object).await;
                let what = format!("{method} {content} {dry_run} {digest}");
                match answer {
                    Ok(answer) => {
                        assert_eq!(digest, plan_a(), "{what}");
                        assert_eq!(answer["status"]["planDigest"], json!(plan_a()), "{what}");
                    }
                    Err(status) => {
                        assert_eq!((status.code, &digest), (403, &plan_b()), "{what}: {}", status.message);
                        let words =
                            format!("spec.approval.planDigest is {digest}, and the current plan is {}", plan_a());
                        assert!(status.message.contains(&words), "{what}: {}", status.message);
                        // By this a program tells a refusal of the policy from a lack of rights.
                        assert!(!status.details.unwrap().causes.is_empty(), "{what}");
                    }
                }
                let action = if digest == plan_a() && dry_run.is_empty() { "Apply" } else { "DryRun" };
                assert_eq!(platform.config(LOAD_AWARE).await["spec"]["action"], action, "{what}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_begins_without_an_approval_and_its_status_is_the_operators() {
    let platform = cluster().await;
    install_policies(&platform).await;
    let (editor, boss) = (Person::new(&platform, &person("editor")).await, Person::new(&platform, &boss()).await);

    let object = config(LOAD_AWARE, approved("boss", &plan_a()));
    let apply = format!("{}?fieldManager=boss&force=true", path(&object));
    let refusals =
        [boss.create(&object).await, boss.send("PATCH", &apply, APPLY, &object).await, editor.create(&object).await];
    for refusal in refusals {
        let status = refusal.unwrap_err();
        let words = format!(
            "A configuration cannot be created with action Apply, because nobody has read its plan: \
             spec.approval.planDigest is {}, and there is no current plan. Create {LOAD_AWARE} with action DryRun",
            plan_a()
        );
        assert!(status.code == 403 && status.message.contains(&words), "{}", status.message);
    }
    let lie = config(LOAD_AWARE, json!({"action": "DryRun", "approval": {"approvedBy": "boss"}}));
    let status = editor.create(&lie).await.unwrap_err();
    assert!(status.message.contains("sends the request, editor, and it is boss."), "{}", status.message);
    let mut object = config(LOAD_AWARE, json!({"action": "DryRun"}));
    object["status"] = planned(&plan_b())["status"].clone();
    let created = editor.create(&object).await.unwrap();
    assert_eq!(created.get("status"), None, "a status cannot be brought along");

    for (who, words) in [
        (&boss, format!("Only the operator, user {}, writes the status", admission::installed_operator())),
        (&editor, "cannot patch resource \"virtplatformconfigs/status\"".to_owned()),
    ] {
        let status = who.patch_status(&object, &planned(&plan_b()), "").await.unwrap_err();
        assert!(status.code == 403 && status.message.contains(&words), "{}", status.message);
    }
    // Neither metadata nor an offer of the operator is anybody's approval.
    let writer = Person::new(&platform, &writer()).await;
    writer.patch_status(&object, &planned(&plan_a()), "").await.unwrap();
    boss.patch(&object, &json!({"spec": approved("boss", &plan_a())})).await.unwrap();
    let labeled = editor.patch(&object, &json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    assert_eq!(labeled["spec"]["approval"]["approvedBy"], "boss");
    writer.create(&config("example-profile", json!({"action": "Ignore"}))).await.unwrap();
}

/// The annotations of the last request on a configuration, with its code.
fn last_annotations(platform: &Platform) -> (u64, Value) {
    let text = std::fs::read_to_string(platform.cluster.audit().path()).unwrap();
    let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut answers = lines.filter(|line| {
        line["stage"] == "ResponseComplete" && line["objectRef"]["name"] == LOAD_AWARE && line["verb"] == "patch"
    });
    let line = answers.next().unwrap();
    (line["responseStatus"]["code"].as_u64().unwrap(), line["annotations"].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_names_plan_and_approver_and_audit_mode_refuses_nothing() {
    let platform = cluster().await;
    install_policies(&platform).await;
    let object = with_plan(&platform).await;
    let (editor, approver) = (Person::new(&platform, &person("editor")).await, person("approver"));
    let approver = Person::new(&platform, &approver).await;
    let (plan, by) = ("approval.advisor.kubevirt.io/approved-plan", "approval.advisor.kubevirt.io/approved-by");

    // A refused request has them as well: only together with the code do they say that a plan was approved.
    for (digest, code) in [(plan_b(), 403), (plan_a(), 200)] {
        let _ = approver.patch(&object, &json!({"spec": approved("approver", &digest)})).await;
        let (found, annotations) = last_annotations(&platform);
        assert_eq!((found, &annotations[plan], &annotations[by]), (code, &json!(digest), &json!("approver")));
    }
    editor.patch(&object, &json!({"spec": {"action": "DryRun"}})).await.unwrap();
    let (code, annotations) = last_annotations(&platform);
    assert_eq!((code, annotations.get(plan), annotations.get(by)), (200, None, None));

    for mut binding in shipped("bindings.yaml") {
        binding["spec"]["validationActions"] = json!(["Audit"]);
        put(&platform, &binding).await;
    }
    let unread = json!({"spec": {"action": "Apply"}});
    eventually("nothing is refused", async || {
        let answer = editor.patch(&object, &unread).await;
        let _ = editor.patch(&object, &json!({"spec": {"action": "DryRun"}})).await;
        answer.ok()
    })
    .await;
    editor.patch(&object, &unread).await.unwrap();
    let (code, annotations) = last_annotations(&platform);
    let failure = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str().unwrap();
    assert!(code == 200 && failure.contains("User editor may not approve plans of"), "{failure}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_approved_before_the_policy_stays_and_without_binding_nothing_is_refused() {
    let platform = cluster().await;
    for policy in shipped("policies.yaml") {
        put(&platform, &policy).await;
    }
    let editor = Person::new(&platform, &person("editor")).await;
    let object = config(LOAD_AWARE, json!({"action": "Apply"}));
    editor.create(&object).await.unwrap();
    for binding in shipped("bindings.yaml") {
        put(&platform, &binding).await;
    }
    until_enforced(&platform).await;
    assert_eq!(platform.config(LOAD_AWARE).await["spec"]["action"], "Apply");
    let writer = Person::new(&platform, &writer()).await;
    writer.patch_status(&object, &planned(&plan_a()), "").await.unwrap();
    editor.patch(&object, &json!({"metadata": {"labels": {"a": "b"}}})).await.unwrap();
    editor.patch(&object, &json!({"spec": {"action": "Apply"}})).await.unwrap();
    let status = editor.patch(&object, &json!({"spec": {"waitTimeout": "1h"}})).await.unwrap_err();
    assert!(status.message.contains("User editor may not approve plans of"), "{}", status.message);

    // The bindings are the switch.
    for binding in shipped("bindings.yaml") {
        let uri = admission::path(&binding);
        platform.request("DELETE", &uri, None, Value::Null).await;
    }
    let edit = json!({"spec": {"waitTimeout": "1h"}});
    eventually("the policy is off", async || editor.patch(&object, &edit).await.ok()).await;
}
