//! The operator with its shipped rights where both policies are in effect.

use advisor::admission::{self, PolicyMode};
use serde_json::json;
use testkit::{
    configs::config,
    platform::{LOAD_AWARE, Platform},
    running_operator::{OPERATOR, RunningOperator},
};

use super::{Person, approved, install_people, person, put, until_enforced};
use crate::lifecycle::no_psi;

/// An editor asks for a plan, an approver approves it, the operator applies it and records who agreed.
#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_applied_once_an_approver_has_named_it() {
    let platform = Platform::at_rest().await;
    platform.install().await;
    install_people(&platform).await;
    let objects = admission::policies(OPERATOR).into_iter().chain(admission::bindings(PolicyMode::Enforce));
    for object in objects {
        put(&platform, &object).await;
    }
    until_enforced(&platform).await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;

    let (editor, approver) =
        (Person::new(&platform, &person("editor")).await, Person::new(&platform, &person("approver")).await);
    let object = config(LOAD_AWARE, json!({}));
    editor.patch(&object, &json!({"spec": {"action": "DryRun", "options": no_psi()}})).await.unwrap();
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let digest = planned["status"]["planDigest"].as_str().unwrap();
    let mark = platform.mark().await;
    let refused = editor.patch(&object, &json!({"spec": approved("editor", digest)})).await.unwrap_err();
    assert!(refused.message.contains("User editor may not approve plans"), "{}", refused.message);
    assert_eq!(platform.changes_since(mark).await, [""; 0]);

    approver.patch(&object, &json!({"spec": approved("approver", digest)})).await.unwrap();
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    let recorded = &done["status"]["approval"];
    assert_eq!((&recorded["approvedBy"], &recorded["planDigest"]), (&json!("approver"), &json!(digest)));
    assert_eq!(platform.changes_since(mark).await, ["patch kubedeschedulers cluster"]);
    operator.stop().await;
}
