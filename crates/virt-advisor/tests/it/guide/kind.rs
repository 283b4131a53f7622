//! The journey of `docs/TESTING_ON_KIND.md`, on our own control plane.

use testkit::checklist::script;

use super::{
    checklist::Checklist,
    document::Document,
    nodes::Nodes,
    test_cluster::{DESCHEDULER, TestCluster, define},
};

const PROFILE: &str = "load-aware-rebalancing";
const PAGE: &str = "docs/TESTING_ON_KIND.md";

/// What the page prints and we do not run, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("make dev-setup", "it starts a cluster: crates/xtask/tests/it/dev.rs"),
    ("make run", "it starts the operator, which this test has done"),
    ("export KUBECONFIG=~/.cache/virt-advisor/dev/kubeconfig", "the cluster of this test is another one"),
    ("make kind-delete", "it ends a cluster: crates/xtask/tests/it/dev.rs"),
];

const ALL: &str = "kubectl get virtplatformconfig";
const ONE: &str = "kubectl get virtplatformconfig load-aware-rebalancing";
const ITEMS: &str = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{range .status.items[*]}{.name}: {.impactSeverity}: {.state}: {.message}{"\n"}{end}'"#;
const DIFF: &str = "kubectl get virtplatformconfig load-aware-rebalancing -o jsonpath='{.status.items[1].diff}'";
const WHY: &str = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{.status.conditions[?(@.type=="PrerequisiteFailed")].message}'"#;
const UNDEFINE: &str = "kubectl delete crd kubedeschedulers.operator.openshift.io";
const DEFINE: &str = "kubectl apply --server-side -f config/crd/third-party/kubedescheduler-5.1.yaml";
const PROFILES: &str = r#"kubectl get kubedescheduler cluster -o jsonpath='{.spec.profiles}{"\n"}'"#;
const ARGUMENTS: &str = r#"kubectl get machineconfig 99-worker-psi-karg -o jsonpath='{.spec.kernelArguments}{"\n"}'"#;
const EDIT: &str =
    r#"kubectl patch kubedescheduler cluster --type=merge -p '{"spec": {"deschedulingIntervalSeconds": 1800}}'"#;
const REFUSED: &str = "kubectl apply -f config/samples/rejected/ratio_without_swap.yaml";

fn action(action: &str) -> String {
    format!(
        r#"kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{{"spec": {{"action": "{action}"}}}}'"#
    )
}

#[tokio::test]
async fn testing_on_kind() {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    let nodes = Nodes::start(&cluster, 3).await;
    nodes.release();
    let mut list = Checklist::of(&script(PAGE), EXCEPTIONS, &cluster.terminal);
    let mut page = Document::default();
    page.show(&cluster.terminal, &[ALL]).await;
    prerequisite(&cluster, &mut page).await;
    preview_and_apply(&cluster, &mut list, &mut page).await;
    options(&cluster, &mut list, &mut page).await;
    drift(&cluster, &mut page).await;
    pause_and_clean_up(&cluster, &mut list, &mut page).await;
    list.finish();
    page.check(PAGE);
    cluster.finish().await;
}

async fn prerequisite(cluster: &TestCluster, page: &mut Document) {
    page.show(&cluster.terminal, &[UNDEFINE, &action("DryRun")]).await;
    cluster.reach(PROFILE, "PrerequisiteFailed").await;
    page.also(&cluster.terminal, &[ONE, WHY]).await;
    page.show(&cluster.terminal, &[DEFINE]).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.also(&cluster.terminal, &[ONE, &action("Ignore")]).await;
    cluster.reach(PROFILE, "Ignored").await;
}

async fn preview_and_apply(cluster: &TestCluster, list: &mut Checklist<'_>, page: &mut Document) {
    list.run("kubectl apply -f config/samples/mock_baseline_resources.yaml").await;
    list.run("kubectl apply -f config/samples/loadaware_sample.yaml").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.show(&cluster.terminal, &[ONE, ITEMS, DIFF]).await;
    page.show(&cluster.terminal, &[&action("Apply")]).await;
    cluster.reach(PROFILE, "Completed").await;
    page.also(&cluster.terminal, &[ONE, ITEMS]).await;
    page.show(&cluster.terminal, &[PROFILES, ARGUMENTS]).await;
}

async fn options(cluster: &TestCluster, list: &mut Checklist<'_>, page: &mut Document) {
    list.run("kubectl apply -f config/samples/loadaware_typed_sample.yaml").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.show(&cluster.terminal, &[DIFF]).await;
    list.tick(REFUSED);
    let refused = cluster.terminal.try_run(REFUSED).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("requires enableSwap=true"), "{said}");
    page.show(&cluster.terminal, &[&action("Apply")]).await;
    cluster.reach(PROFILE, "Completed").await;
    page.also(&cluster.terminal, &[ONE]).await;
}

async fn drift(cluster: &TestCluster, page: &mut Document) {
    page.show(&cluster.terminal, &[EDIT]).await;
    cluster.reach(PROFILE, "Drifted").await;
    page.also(&cluster.terminal, &[ONE, ITEMS]).await;
    page.show(&cluster.terminal, &[&action("DryRun")]).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    page.also(&cluster.terminal, &[DIFF, &action("Apply")]).await;
    cluster.reach(PROFILE, "Completed").await;
    page.also(&cluster.terminal, &[ONE]).await;
}

async fn pause_and_clean_up(cluster: &TestCluster, list: &mut Checklist<'_>, page: &mut Document) {
    page.show(&cluster.terminal, &[&action("Ignore")]).await;
    cluster.reach(PROFILE, "Ignored").await;
    page.also(&cluster.terminal, &[ONE]).await;
    list.run(&action("DryRun")).await;
    cluster.until(PROFILE, "managed again", |config| config["status"]["phase"] != "Ignored").await;
    list.run("kubectl delete -f config/samples/loadaware_sample.yaml").await;
    cluster.reach(PROFILE, "Ignored").await;
}
