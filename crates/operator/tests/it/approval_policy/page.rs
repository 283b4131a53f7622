//! `docs/approvals.md` shows refusals as kubectl prints them.

use serde_json::json;
use testkit::{
    configs::config,
    files::root,
    platform::{LOAD_AWARE, Platform},
};

use super::{Person, bind, boss, can_approve, cluster, install_policies, person, planned, writer};

const READ: &str = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752";
const CURRENT: &str = "fd61a03af4f77d870fc21e05e7e80678095c92d808cfb3b5c279ee04c74aca13";

/// The command as one would type it, and what it prints.
async fn shown(platform: &Platform, who: &str, args: &[&str]) -> String {
    let output = platform.cluster.access().kubectl(&person(who), args).await.unwrap();
    let quoted = |arg: &&str| if arg.contains([' ', '{']) { format!("'{arg}'") } else { (*arg).to_owned() };
    let command = args.iter().map(quoted).collect::<Vec<_>>().join(" ");
    let printed = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    format!("$ kubectl --as {who} {command}\n{}", String::from_utf8_lossy(&printed))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_kubectl_prints() {
    let platform = cluster().await;
    install_policies(&platform).await;
    for (role, user) in [("editor", "bob"), ("approver", "jane")] {
        bind(&platform, &format!("virtplatformconfig-{role}-role"), user).await;
    }
    testkit::eventually("jane may approve", async || can_approve(&platform, "jane", LOAD_AWARE).await.then_some(()))
        .await;
    let object = config(LOAD_AWARE, json!({"action": "DryRun"}));
    Person::new(&platform, &boss()).await.create(&object).await.unwrap();
    Person::new(&platform, &writer()).await.patch_status(&object, &planned(CURRENT), "").await.unwrap();

    let approval = |by: &str, digest: &str| {
        format!(r#"{{"spec":{{"action":"Apply","approval":{{"planDigest":"{digest}","approvedBy":"{by}"}}}}}}"#)
    };
    let edits = [
        ("bob", approval("bob", CURRENT)),
        ("jane", approval("jane", READ)),
        ("jane", approval("bob", CURRENT)),
        ("jane", approval("jane", CURRENT)),
        ("bob", r#"{"spec":{"waitTimeout":"2h"}}"#.to_owned()),
        ("jane", r#"{"spec":{"bypassOptimisticLock":true}}"#.to_owned()),
        ("bob", r#"{"spec":{"action":"DryRun"}}"#.to_owned()),
    ];
    let mut all = Vec::new();
    let named = format!("vpcfg/{LOAD_AWARE}");
    all.push(shown(&platform, "bob", &["auth", "can-i", "approve", &named]).await);
    all.push(shown(&platform, "jane", &["auth", "can-i", "approve", &named]).await);
    for (who, patch) in &edits {
        all.push(shown(&platform, who, &["patch", "vpcfg", LOAD_AWARE, "--type=merge", "-p", patch]).await);
    }
    let page = std::fs::read_to_string(root().join("docs/approvals.md")).unwrap_or_default();
    let missing: Vec<&String> = all.iter().filter(|text| !page.contains(text.as_str())).collect();
    let missing = missing.into_iter().cloned().collect::<Vec<_>>().join("\n");
    assert!(missing.is_empty(), "docs/approvals.md does not show:\n{missing}");
}
