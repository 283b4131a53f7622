//! A configuration of which Git has one part and an approver another, as `docs/gitops.md` tells it.
//!
//! The field manager `git` stands for Argo CD and Flux, which apply by force what is in Git, again and again.

use std::{os::unix::process::ExitStatusExt, process::Output};

use advisor::kstatus::kstatus;
use devcluster::Identity;
use serde_json::{Value, json};
use testkit::{
    configs::{condition, config, phase, reason},
    files::root,
    platform::{LOAD_AWARE, Platform, path},
    running_operator::RunningOperator,
};

use crate::lifecycle::no_psi;

const GIT: &str = "git";

/// What is in Git: options without machine configs, and what else is given.
fn in_git(spec: Value) -> Value {
    let mut object = config(LOAD_AWARE, json!({"options": no_psi()}));
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

/// Another value of an option.
fn every(seconds: i32) -> Value {
    let mut options = no_psi();
    options["loadAware"]["deschedulingIntervalSeconds"] = seconds.into();
    json!({ "options": options })
}

fn approval(config: &Value) -> Value {
    json!({"action": "Apply", "approval": {"planDigest": config["status"]["planDigest"]}})
}

/// What an approver decides, as it is stored.
fn decided(config: &Value) -> (Value, Value) {
    (config["spec"]["action"].clone(), config["spec"]["approval"].clone())
}

/// The third way: `action` and `approval` are not in Git.
#[tokio::test(flavor = "multi_thread")]
async fn what_git_leaves_out_is_left_to_the_approver() {
    let platform = Platform::shared().await;
    let created = platform.apply(GIT, &in_git(json!({})), "").await;
    assert_eq!(decided(&created), (json!("DryRun"), Value::Null), "the default of the definition");
    let operator = RunningOperator::start(&platform).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!(kstatus(&planned), "Current", "a sync that waits for it ends");

    platform.patch("approver", &config(LOAD_AWARE, approval(&planned))).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;
    assert_eq!(kstatus(&done), "Current");
    let synced = platform.apply(GIT, &in_git(json!({})), "").await;
    assert_eq!(decided(&synced), decided(&done));
    assert_eq!(synced["metadata"]["generation"], done["metadata"]["generation"], "nothing changed");

    // Git changes an option: the approval of the former plan stays and approves nothing else.
    let synced = platform.apply(GIT, &in_git(every(300)), "").await;
    assert_eq!(decided(&synced), decided(&done));
    assert_eq!(kstatus(&synced), "InProgress", "the operator has not acted on it yet");
    let waiting = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    assert_eq!((reason(&waiting, "Stalled"), kstatus(&waiting)), ("ApprovalMismatch", "Failed"));
    platform.patch("approver", &config(LOAD_AWARE, approval(&waiting))).await;
    let done = platform.until_phase(LOAD_AWARE, "Completed").await;

    // Not so if Git replaces the object.
    let mut replacement = in_git(every(300));
    replacement["metadata"]["resourceVersion"] = done["metadata"]["resourceVersion"].clone();
    let uri = format!("{}?fieldManager={GIT}", path(&replacement));
    let replaced = platform.request("PUT", &uri, Some("application/json"), replacement).await;
    assert_eq!(decided(&replaced), (json!("DryRun"), Value::Null), "the approval is lost");
    operator.stop().await;
}

/// The operator offers a profile with `action: Ignore`, and Git leaves that as it is, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_was_offered_first_stays_ignored_until_somebody_asks_for_a_plan() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    platform.apply(GIT, &in_git(json!({})), "").await;
    let ignored = platform.until_phase(LOAD_AWARE, "Ignored").await;
    assert_eq!(
        (kstatus(&ignored), &ignored["spec"]["options"]["loadAware"]["enablePSIMetrics"]),
        ("Current", &json!(false))
    );

    platform.patch("approver", &config(LOAD_AWARE, json!({"action": "DryRun"}))).await;
    platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let synced = platform.apply(GIT, &in_git(json!({})), "").await;
    assert_eq!(decided(&synced), (json!("DryRun"), Value::Null));
    operator.stop().await;
}

/// The first way: both fields are in Git, and what somebody decides past Git is reverted.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_git_is_decided_in_git() {
    let platform = Platform::shared().await;
    platform.apply(GIT, &in_git(json!({"action": "DryRun"})), "").await;
    let operator = RunningOperator::start(&platform).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let approved = approval(&planned);
    platform.apply(GIT, &in_git(approved.clone()), "").await;
    platform.until_phase(LOAD_AWARE, "Completed").await;

    platform.patch("somebody", &config(LOAD_AWARE, json!({"action": "Ignore"}))).await;
    platform.until_phase(LOAD_AWARE, "Ignored").await;
    let healed = platform.apply(GIT, &in_git(approved.clone()), "").await;
    assert_eq!(healed["spec"]["action"], "Apply");
    platform.until_phase(LOAD_AWARE, "Completed").await;

    // Fields that are taken out of Git go, because nobody else has set them.
    let without = platform.apply(GIT, &in_git(json!({})), "").await;
    assert_eq!(decided(&without), (json!("DryRun"), Value::Null));
    // They stay if the approver has set them to the same values before.
    platform.apply(GIT, &in_git(approved.clone()), "").await;
    platform.apply("approver", &config(LOAD_AWARE, approved.clone()), "").await;
    let without = platform.apply(GIT, &in_git(json!({})), "").await;
    assert_eq!(decided(&without), (json!("Apply"), approved["approval"].clone()));
    operator.stop().await;
}

/// The second way: `ignoreDifferences` with `RespectIgnoreDifferences`. Argo CD then applies the live values of these fields.
#[tokio::test(flavor = "multi_thread")]
async fn what_git_is_told_to_ignore_is_not_reverted() {
    let platform = Platform::shared().await;
    let manifest = in_git(json!({"action": "DryRun"}));
    platform.apply(GIT, &manifest, "").await;
    let operator = RunningOperator::start(&platform).await;
    let planned = platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
    let live = platform.patch("approver", &config(LOAD_AWARE, approval(&planned))).await;

    let mut respected = manifest.clone();
    for field in ["action", "approval"] {
        respected["spec"][field] = live["spec"][field].clone();
    }
    let synced = platform.apply(GIT, &respected, "").await;
    assert_eq!(decided(&synced), decided(&live));
    platform.until_phase(LOAD_AWARE, "Completed").await;

    // Without it, the next sync takes the approval back.
    let reverted = platform.apply(GIT, &manifest, "").await;
    assert_eq!(reverted["spec"]["action"], "DryRun");
    operator.stop().await;
}

/// The block of commands of the page that contains a text.
fn commands(containing: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/gitops.md")).unwrap();
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()));
    blocks.into_iter().find(|block| block.contains(containing)).unwrap()
}

async fn bash(platform: &Platform, script: String) -> Output {
    let kubectl = platform.cluster.access().kubectl_command(&Identity::Admin).await.unwrap();
    let mut command = std::process::Command::new("bash");
    let folder = std::path::Path::new(kubectl.get_program()).parent().unwrap().to_owned();
    let path =
        std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())));
    command.envs(kubectl.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path.unwrap());
    command.args(["-c", &script]);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_script_of_the_page_waits_for_success_or_failure() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let script = commands("wait -n");
    let another = json!({"planDigest": "0".repeat(64)});
    for (approval, code, said) in [(another, 1, "The approval names plan 000"), (Value::Null, 0, "condition met")] {
        let spec = json!({"action": "DryRun", "options": no_psi(), "approval": approval});
        platform.configure(LOAD_AWARE, spec).await;
        platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
        let output = bash(&platform, script.clone()).await;
        let shown = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!((output.status.code(), output.status.signal()), (Some(code), None), "{shown}");
        assert!(shown.contains(said), "{shown}");
    }
    operator.stop().await;
}

/// Nobody acts on the edit here, so the condition is of the spec before.
#[tokio::test(flavor = "multi_thread")]
async fn kubectl_does_not_take_a_condition_of_an_earlier_spec_for_one_of_the_newest() {
    let platform = Platform::shared().await;
    let operator = RunningOperator::start(&platform).await;
    let done = platform.complete(LOAD_AWARE, json!({"options": no_psi()}), &[]).await;
    operator.stop().await;
    let object = format!("virtplatformconfig/{LOAD_AWARE}");
    let met = async |what: &str| {
        let wait = ["wait", &object, &format!("--for={what}"), "--timeout=1s"];
        platform.cluster.access().kubectl(&Identity::Admin, &wait).await.unwrap().status.success()
    };
    assert!(met("condition=Completed").await && met("condition=Ready").await);
    platform.configure(LOAD_AWARE, every(300)).await;
    assert!(!met("condition=Completed").await && !met("condition=Ready").await);
    assert!(met("jsonpath={.status.phase}=Completed").await, "the form that the page warns of");
    assert_eq!((phase(&done), &condition(&done, "Ready")["status"]), ("Completed", &json!("True")));
}
