//! The workflow guide from the first look at the profiles to a plan that is applied, on a cluster without a descheduler;
//! and our own guide, which goes on from there to drift and its resolution.

use serde_json::Value;

use super::{
    appendix::our_own_appendix,
    differences::{Section, assert_as_in_the_guide},
    document::Document,
    monitoring::{our_own_guide, says_one_of_three},
    nodes::Nodes,
    recorder::{Recorder, phases},
    test_cluster::{DESCHEDULER, TestCluster, define},
};

const PROFILE: &str = "load-aware-rebalancing";

/// The guide's commands.
const LIST: &str = "oc get VirtPlatformConfig";
pub(crate) const GET: &str = "oc get virtplatformconfigs load-aware-rebalancing -o yaml";
pub(crate) const DRY_RUN: &str = r#"oc patch virtplatformconfig load-aware-rebalancing \
  --type='json' \
  -p='[{"op": "replace", "path": "/spec/action", "value":"DryRun"}]'"#;
pub(crate) const APPLY: &str = r#"oc patch virtplatformconfig load-aware-rebalancing \
  --type='json' \
  -p='[{"op": "replace", "path": "/spec/action", "value":"Apply"}]'"#;

/// A line of our own guide.
pub(crate) const ONE: &str = "kubectl get virtplatformconfig load-aware-rebalancing";

/// As the guide prints it, with ages of its own.
const TABLE: &str = "\
NAME                     ACTION   IMPACT   PHASE     AGE
load-aware-rebalancing   Ignore   High     Ignored   44s
virt-higher-density      Ignore   High     Ignored   44s
";

/// The lines of a table without their last column.
fn without_age(table: &str) -> Vec<String> {
    let line = |line: &str| line.rsplit_once(' ').map_or_else(String::new, |(rest, _)| rest.trim_end().to_owned());
    table.lines().map(line).collect()
}

/// W39 (exit on new definition), D11 (DryRun writes nothing), D15 (first phases): a kind that appears restarts
/// nothing, and a dry run creates nothing.
#[tokio::test]
async fn sections_1_to_7_and_our_own_guide() {
    let cluster = TestCluster::with_platform().await;
    let nodes = Nodes::start(&cluster, 3).await;
    let terminal = &cluster.terminal;
    let recorder = Recorder::start(&cluster, PROFILE).await;
    let mut guide = Document::default();

    // 1. Profile discovery
    assert_eq!(without_age(&terminal.run(LIST).await), without_age(TABLE));
    guide.show(terminal, &["kubectl get virtplatformconfig"]).await;

    // 2. Initial status
    let ignored = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Ignored, &ignored);
    guide.show(terminal, &["kubectl get virtplatformconfig load-aware-rebalancing -o yaml"]).await;

    // 3. Initiating DryRun
    guide.show(terminal, &[&DRY_RUN.replace("oc ", "kubectl ")]).await;

    // 4. Prerequisite checks
    cluster.reach(PROFILE, "PrerequisiteFailed").await;
    let failed = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Prerequisites, &failed);
    let seen = recorder.up_to(&failed).await;
    assert_eq!(phases(&seen), ["Ignored", "Pending", "Drafting", "PrerequisiteFailed"]);
    let why = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{.status.conditions[?(@.type=="PrerequisiteFailed")].message}'"#;
    guide.show(terminal, &[ONE, why]).await;

    // 5. Installing prerequisites: nothing is touched but what the descheduler's installation brings.
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;

    // 6. Reviewing the generated plan
    cluster.reach(PROFILE, "ReviewRequired").await;
    let review = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Review, &review);
    let seen = recorder.up_to(&review).await;
    assert_eq!(phases(&seen)[3..], ["PrerequisiteFailed", "Pending", "Drafting", "ReviewRequired"]);
    nothing_was_created(&cluster).await;
    let diffs = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{range .status.items[*]}{.name}: {.impactSeverity} {.impactDetail}{"\n"}{.diff}{"\n"}{end}'"#;
    let inputs = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{range .status.inputs[*]}{.path} = {.value}{"\n"}{end}'"#;
    guide.show(terminal, &[ONE, diffs]).await;
    guide.show(terminal, &[inputs]).await;

    // 7. Applying the configuration
    guide.show(terminal, &[&APPLY.replace("oc ", "kubectl ")]).await;
    nodes.hold_after_the_first(&cluster).await;
    let progress = cluster.until(PROFILE, "telling how many nodes are done", says_one_of_three).await;
    assert_eq!(progress["metadata"]["generation"], 3, "as the guide counts it");
    let seen = recorder.up_to(&progress).await;
    assert_eq!(phases(&seen)[6..], ["ReviewRequired", "InProgress"]);
    let state = terminal.run("kubectl get kubedescheduler cluster -o jsonpath='{.spec.managementState}'").await;
    assert_eq!(state, "Managed");

    our_own_guide(&cluster, &nodes, &mut guide).await;
    our_own_appendix(&cluster, &mut guide).await;
    guide.check("docs/WORKFLOW_EXAMPLE.md");
    cluster.finish().await;
}

/// A dry run writes to none of the targets.
async fn nothing_was_created(cluster: &TestCluster) {
    for target in ["machineconfig 99-worker-psi-karg", "kubedescheduler cluster"] {
        let output = cluster.terminal.try_run(&format!("kubectl get {target}")).await;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("NotFound"), "{target}: {said}");
    }
}

/// Whether a condition holds, and what it says.
pub(crate) fn condition<'a>(config: &'a Value, kind: &str) -> (&'a str, &'a str, &'a str) {
    let mut conditions = config["status"]["conditions"].as_array().into_iter().flatten();
    let text = |condition: &'a Value, field: &str| condition[field].as_str().unwrap_or_default();
    let found = conditions.find(|condition| condition["type"] == kind);
    found.map_or(("", "", ""), |found| (text(found, "status"), text(found, "reason"), text(found, "message")))
}
