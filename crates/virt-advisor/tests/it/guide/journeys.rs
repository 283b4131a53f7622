//! The journeys of `docs/approvals.md` and `docs/undo.md`, with the operator as its own process: every command as printed, and what it
//! prints.

use serde_json::Value;
use testkit::eventually;

use super::{
    document::Document,
    test_cluster::{DESCHEDULER, TestCluster, define},
    workflow::condition,
};

const PROFILE: &str = "load-aware-rebalancing";
const PLAN: &str = r#"kubectl patch vpcfg load-aware-rebalancing --type=merge \
    -p '{"spec":{"action":"DryRun","approval":{"mode":"Reviewed"},"options":{"loadAware":{"enablePSIMetrics":false}}}}'"#;
const SHOW: &str = "kubectl virt-advisor plan load-aware-rebalancing";
const DIGEST: &str = r#"kubectl get vpcfg load-aware-rebalancing -o jsonpath='{.status.planDigest}{"\n"}'"#;
const RECORDS: &str = "kubectl get virtplatformplanrecords";
const POLICY: &str = "kubectl apply -k config/admission";
const APPROVERS: &str = "kubectl create clusterrolebinding approvers --user=jane \\
    --clusterrole=virt-advisor-operator-virtplatformconfig-approver-role";
/// Refused as soon as the policy is in effect: nobody sets the name of somebody else.
const CLAIM: &str = r#"kubectl patch vpcfg load-aware-rebalancing --type=merge --dry-run=server -p '{"spec":{"approval":{"approvedBy":"bob"}}}'"#;
const PREVIEW: &str = "kubectl virt-advisor plan load-aware-rebalancing --draft --restore original";
const UNDO: &str = "kubectl virt-advisor undo load-aware-rebalancing --to original";
const END: &str = r#"kubectl get vpcfg load-aware-rebalancing \
    -o jsonpath='{.status.conditions[?(@.type=="Completed")].message}{"\n"}'"#;
const HISTORY: &str = "kubectl virt-advisor history load-aware-rebalancing";
const AGREED: &str = "kubectl virt-advisor history load-aware-rebalancing 1";
const SPEC: &str = "kubectl get kubedescheduler cluster -o jsonpath='{.spec}'";

fn approve(digest: &str) -> String {
    format!("kubectl virt-advisor approve load-aware-rebalancing --reason CHG-4711 \\\n    --digest {digest}")
}

/// The same with kubectl, as automation does it.
fn patch(digest: &str) -> String {
    format!(
        r#"kubectl patch vpcfg load-aware-rebalancing --type=merge -p '{{"spec":{{"action":"Apply","approval":{{
    "planDigest":"{digest}",
    "acceptedRisks":["TakesOverFields"],"approvedBy":"jane","reason":"CHG-4711"}}}}}}'"#
    )
}

/// A cluster whose descheduler has the profiles of an administrator's choice.
async fn cluster() -> TestCluster {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    cluster.terminal.run("kubectl create -f config/samples/third-party/kubedescheduler.yaml").await;
    cluster
}

async fn digest(cluster: &TestCluster) -> String {
    cluster.terminal.run(DIGEST).await.trim().to_owned()
}

#[tokio::test]
async fn approve_exactly_what_the_board_saw_and_show_later_who_agreed() {
    let cluster = cluster().await;
    let terminal = &cluster.terminal;
    let mut page = Document::default();
    page.show(terminal, &[PLAN]).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.also(terminal, &[SHOW]).await;
    let seen = digest(&cluster).await;
    let approve = approve(&seen) + " --accept-risk TakesOverFields";

    // Somebody changes the options behind the board's back. The approval of the plan that was seen applies nothing.
    let edit = |spec: &str| format!("kubectl patch vpcfg load-aware-rebalancing --type=merge -p '{{\"spec\":{spec}}}'");
    terminal.run(&edit(r#"{"options":{"loadAware":{"deschedulingIntervalSeconds":77}}}"#)).await;
    cluster.until(PROFILE, "planned anew", |config| config["status"]["planDigest"] != seen.as_str()).await;
    page.show_refused(terminal, &approve).await;
    terminal.run(&patch(&seen)).await;
    let is_refused = |config: &Value| condition(config, "ReviewRequired").1 == "ApprovalMismatch";
    cluster.until(PROFILE, "refused", is_refused).await;
    terminal.run(&edit(r#"{"action":"DryRun","options":{"loadAware":{"deschedulingIntervalSeconds":null}}}"#)).await;
    cluster.until(PROFILE, "as the board saw it", |config| config["status"]["planDigest"] == seen.as_str()).await;

    // From here on a name is more than a claim.
    page.show(terminal, &[POLICY, APPROVERS]).await;
    eventually("the policy is in effect", async || (!terminal.try_run(CLAIM).await.status.success()).then_some(()))
        .await;
    page.also(terminal, &[&(approve + " --as jane")]).await;
    let applied = cluster.reach(PROFILE, "Completed").await;
    assert_eq!(applied["status"]["approval"]["planDigest"], seen.as_str(), "exactly what was seen");
    cluster.record_until_finished("load-aware-rebalancing-1").await;
    page.also(terminal, &[RECORDS]).await;

    // The configuration is deleted, and what was agreed to stays.
    terminal.run("kubectl delete vpcfg load-aware-rebalancing").await;
    page.show(terminal, &[AGREED]).await;
    page.check("docs/approvals.md");
    cluster.finish().await;
}

#[tokio::test]
async fn put_it_back_on_monday() {
    let cluster = cluster().await;
    let terminal = &cluster.terminal;
    let before = terminal.run(SPEC).await;
    terminal.run(PLAN).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    terminal.run(&patch(&digest(&cluster).await)).await;
    cluster.reach(PROFILE, "Completed").await;
    assert_ne!(terminal.run(SPEC).await, before);

    let mut page = Document::default();
    page.show(terminal, &[PREVIEW]).await;
    let previewed = terminal.run(PREVIEW).await;
    page.show(terminal, &[UNDO]).await;
    cluster.until(PROFILE, "planned", |config| config["status"]["restore"].is_object()).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.also(terminal, &[SHOW]).await;
    let digest = digest(&cluster).await;
    assert!(previewed.contains(&format!("Plan digest {digest}\n")), "the preview showed the same plan: {previewed}");
    page.show(terminal, &[&approve(&digest)]).await;
    cluster.reach(PROFILE, "Completed").await;
    cluster.record_until_finished("load-aware-rebalancing-2").await;
    page.also(terminal, &[HISTORY]).await;
    let told = terminal.run(END).await;
    assert!(told.contains("The configuration manages nothing."), "{told}");
    assert_eq!(terminal.run(SPEC).await, before, "everything is as it was");
    page.check("docs/undo.md");
    cluster.finish().await;
}
