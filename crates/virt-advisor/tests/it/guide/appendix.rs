//! The appendix of the workflow guide: the plan for higher density, and what becomes of it when somebody else changes what it
//! set; and the appendix of our own guide.

use serde_json::Value;

use super::{
    differences::{Section, assert_as_in_the_guide},
    document::Document,
    nodes::Nodes,
    test_cluster::TestCluster,
    workflow::condition,
};

const PROFILE: &str = "virt-higher-density";
const DRIFT: &str = "InputDependencyDrift";
/// Lines of our own guide.
const ONE: &str = "kubectl get virtplatformconfig virt-higher-density";
const ITEMS: &str = r#"kubectl get virtplatformconfig virt-higher-density \
  -o jsonpath='{range .status.items[*]}{.name}: {.impactSeverity}: {.message}{"\n"}{end}'"#;
const DIFF: &str = "kubectl get virtplatformconfig virt-higher-density -o jsonpath='{.status.items[1].diff}'";
const FILES: &str = r#"kubectl get virtplatformconfig virt-higher-density \
  -o jsonpath='{range .status.items[0].desiredState.spec.config.storage.files[*]}{.path}{"\n"}{end}'"#;
const UNITS: &str = r#"kubectl get virtplatformconfig virt-higher-density \
  -o jsonpath='{range .status.items[0].desiredState.spec.config.systemd.units[*]}{.name}{"\n"}{end}'"#;

fn action(action: &str) -> String {
    format!(
        r#"oc patch virtplatformconfig {PROFILE} --type='json' -p='[{{"op": "replace", "path": "/spec/action", "value":"{action}"}}]'"#
    )
}

fn overcommit(percentage: u32) -> String {
    let spec = format!(r#"{{"spec": {{"higherWorkloadDensity": {{"memoryOvercommitPercentage": {percentage}}}}}}}"#);
    format!("oc patch hyperconverged kubevirt-hyperconverged -n openshift-cnv --type=merge -p '{spec}'")
}

/// The end of our own guide, on a cluster on which another profile is applied.
pub(crate) async fn our_own_appendix(cluster: &TestCluster, guide: &mut Document) {
    guide.show(&cluster.terminal, &[&action("DryRun").replace("oc ", "kubectl ")]).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    guide.also(&cluster.terminal, &[ONE, ITEMS]).await;
    guide.show(&cluster.terminal, &[FILES, UNITS]).await;
    guide.show(&cluster.terminal, &[DIFF]).await;
}

#[tokio::test]
async fn a_plan_for_higher_density_and_a_change_of_what_it_set() {
    let cluster = TestCluster::with_platform().await;
    let nodes = Nodes::start(&cluster, 3).await;
    cluster.terminal.run(&action("DryRun")).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    let config = cluster.terminal.yaml("oc get virtplatformconfigs virt-higher-density -o yaml").await;
    assert_as_in_the_guide(Section::Appendix, &config);

    nodes.release();
    cluster.terminal.run(&action("Apply")).await;
    cluster.reach(PROFILE, "Completed").await;

    // "If HCO memory settings are changed externally, drift detection triggers automatic plan regeneration with forced user
    // review."
    cluster.terminal.run(&overcommit(130)).await;
    let forced = |config: &Value| config["status"]["phase"] == "ReviewRequired" && condition(config, DRIFT).0 == "True";
    let config = cluster.until(PROFILE, "in a forced review", forced).await;
    let message = "Input dependency changed: HCO memoryOvercommitPercentage changed (150 -> 130)";
    assert_eq!(condition(&config, DRIFT), ("True", "InputChanged", message));
    let diff = config["status"]["items"][1]["diff"].as_str().unwrap();
    assert!(diff.contains("\n-    memoryOvercommitPercentage: 130\n+    memoryOvercommitPercentage: 150\n"), "{diff}");

    cluster.terminal.run(&overcommit(150)).await;
    let config = cluster.reach(PROFILE, "Completed").await;
    assert_eq!(condition(&config, DRIFT).1, "DriftResolved");
    cluster.finish().await;
}
