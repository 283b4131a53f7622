//! What else can go wrong in the life of a cluster: each alert fires in a real Prometheus, its runbook works as printed, and the alert
//! ends with the cause. The node that cannot be updated has a test of its own.

use std::collections::BTreeSet;

use advisor::monitoring::ALERTS;
use devcluster::{Cluster, Port};

use super::{
    prometheus::{Server, component},
    runbooks::{self, Section},
};
use crate::guide::{
    nodes::Nodes,
    test_cluster::{DESCHEDULER, TestCluster, define},
};

const PROFILE: &str = "load-aware-rebalancing";

/// Runbooks that the other test runs.
const AT_NIGHT: [&str; 2] = ["VirtAdvisorPoolDegraded", "VirtAdvisorReviewOverdue"];

const DRY_RUN: &str =
    r#"kubectl patch vpcfg load-aware-rebalancing --type=merge -p '{"spec":{"action":"DryRun","approval":null}}'"#;
const APPLY: &str = r#"kubectl patch vpcfg load-aware-rebalancing --type=merge -p '{"spec":{"action":"Apply"}}'"#;

/// An edit of what a plan manages, with a value that no plan has.
fn edit(interval: u32) -> String {
    format!(
        "kubectl patch kubedescheduler cluster -n openshift-kube-descheduler-operator --type=merge \
         -p '{{\"spec\":{{\"deschedulingIntervalSeconds\":{interval}}}}}'"
    )
}

/// The lease, held by somebody who is not there.
const HELD: &str = r#"kubectl apply -f - <<END
{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "virt-advisor-operator", "namespace": "openshift-cnv"},
 "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600, "renewTime": "$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)"}}
END"#;

#[tokio::test(flavor = "multi_thread")]
async fn every_alert_fires_has_a_runbook_that_works_and_ends_with_its_cause() {
    let port = Port::reserve().unwrap();
    let address = port.address();
    let args = ["operator", "--metrics-bind-address", &address, "--metrics-secure=false", "--stuck-after=5s"];
    let mut cluster = TestCluster::with_platform_and(Cluster::builder().prometheus(component(&address)), &args).await;
    let nodes = Nodes::start(&cluster, 3).await;
    // It comes first in every list, and no runbook may lead to it.
    Nodes::add_stranger(&cluster, "another").await;
    let prometheus = Server::of(&cluster.control_plane);
    prometheus.until_result("kubevirt_advisor_build_info").await;
    // The kinds of the Prometheus operator are not there, and its rights are.
    cluster.terminal.run("kubectl apply --server-side -f config/monitoring/prometheus_role.yaml").await;
    let mut run = BTreeSet::new();
    // Runs a runbook to its end while its alert fires.
    macro_rules! runbook {
        ($alert:literal) => {{
            run.insert($alert);
            runbooks::run(&cluster.terminal, $alert, Section::Mitigation).await
        }};
    }

    // The descheduler's definition is not there.
    cluster.terminal.run(DRY_RUN).await;
    cluster.reach(PROFILE, "PrerequisiteFailed").await;
    prometheus.until_firing(&["VirtAdvisorPrerequisiteMissing"]).await;
    let told = runbook!("VirtAdvisorPrerequisiteMissing");
    assert!(told.contains("PrerequisiteFailed") && told.contains("Descheduler Operator"), "{told}");
    cluster.reach(PROFILE, "Ignored").await;
    prometheus.until_firing(&[]).await;

    // The descheduler is changed between review and approval.
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    cluster.terminal.run("kubectl apply --server-side -f config/samples/third-party/kubedescheduler.yaml").await;
    cluster.terminal.run(DRY_RUN).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    cluster.terminal.run(&edit(180)).await;
    cluster.until(PROFILE, "out of date", |config| config.to_string().contains("\"PlanStale\"")).await;
    cluster.terminal.run(APPLY).await;
    cluster.reach(PROFILE, "Failed").await;
    prometheus.until_firing(&["VirtAdvisorConfigFailed"]).await;
    nodes.hold();
    let told = runbook!("VirtAdvisorConfigFailed");
    assert!(told.contains("PlanStale"), "{told}");

    // The new plan is approved, and the first node does not come back from its reboot.
    cluster.reach(PROFILE, "InProgress").await;
    prometheus.until_firing(&["VirtAdvisorRolloutNotProgressing"]).await;
    let told = runbook!("VirtAdvisorRolloutNotProgressing");
    let node = told.lines().find(|line| line.contains("Rebooting")).unwrap_or_else(|| panic!("{told}"));
    let name = node.split_whitespace().next().unwrap();
    assert!(told.lines().any(|line| line.starts_with("Name:") && line.ends_with(name)), "it is described: {told}");
    assert!(!told.lines().any(|line| line.starts_with("another ")), "a node of another pool: {told}");
    cluster.terminal.run(APPLY).await;
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;
    prometheus.until_firing(&[]).await;

    // Somebody changes what was applied. The page about a war of edits does the same, without the war: three reverts take minutes.
    for alert in ["VirtAdvisorDrifted", "VirtAdvisorRemediationStalled"] {
        cluster.terminal.run(&edit(240)).await;
        cluster.reach(PROFILE, "Drifted").await;
        let firing = prometheus.until_firing(&["VirtAdvisorDrifted"]).await;
        assert_eq!(firing[0]["labels"]["manager"], "kubectl-patch");
        run.insert(alert);
        let told = runbooks::run(&cluster.terminal, alert, Section::Mitigation).await;
        assert!(told.contains("kubectl-patch") && told.contains("240"), "{told}");
        cluster.reach(PROFILE, "Completed").await;
        prometheus.until_firing(&[]).await;
    }

    // The operator is gone.
    cluster.kill_operator();
    prometheus.until_firing(&["VirtAdvisorDown"]).await;
    runbook!("VirtAdvisorDown");

    // It is back, and somebody else holds its lease.
    cluster.terminal.run(HELD).await;
    let elected = [&args[..], &["--leader-elect", "--leader-election-namespace=openshift-cnv"]].concat();
    cluster.restart_operator(&elected).await;
    prometheus.until_firing(&["VirtAdvisorNoLeader"]).await;
    let told = runbook!("VirtAdvisorNoLeader");
    assert!(told.lines().any(|line| line.starts_with("somebody  ")), "{told}");
    // Its window is too short for a Prometheus in a hurry; promtool has it fire.
    runbook!("VirtAdvisorErrorRateHigh");
    cluster.terminal.run("kubectl -n openshift-cnv delete lease virt-advisor-operator").await;
    prometheus.until_firing(&[]).await;
    prometheus.assert_rules_are_healthy();

    let all: BTreeSet<&str> = ALERTS.iter().map(|alert| alert.name).collect();
    run.extend(AT_NIGHT);
    assert_eq!(run, all, "the commands of every runbook are run");
    cluster.finish().await;
}
