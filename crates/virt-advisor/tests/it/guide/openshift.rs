//! The commands of `docs/OPENSHIFT_DEPLOYMENT.md` on the definitions of OpenShift, and why some of them are not run.

use serde_json::Value;
use testkit::checklist::script;

use super::{
    checklist::Checklist,
    nodes::Nodes,
    test_cluster::{DESCHEDULER, TestCluster, define},
};

const PROFILE: &str = "load-aware-rebalancing";
const PAGE: &str = "docs/OPENSHIFT_DEPLOYMENT.md";

const BUILD: &str = "it needs the builds of OpenShift";
const REGISTRY: &str = "it needs a registry; crates/xtask/tests/it/image tests how images are built";

/// What the page prints and we do not run, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("make docker-build docker-push IMG=registry.example.com/virt-advisor-operator:v0.1.0", REGISTRY),
    ("make build-static", "crates/xtask/tests/it/image builds it"),
    ("mkdir -p target/in-cluster", BUILD),
    ("cp Dockerfile <path that build-static printed> target/in-cluster", BUILD),
    ("oc -n openshift-cnv new-build --name=virt-advisor-operator --binary --strategy=docker", BUILD),
    ("oc -n openshift-cnv start-build virt-advisor-operator --from-dir=target/in-cluster --follow", BUILD),
    ("make image-archive", "crates/xtask/tests/it/image writes archives"),
    (
        "skopeo copy --preserve-digests oci-archive:<file> docker://mirror.example.com/virt-advisor-operator:v0.1.0",
        REGISTRY,
    ),
    (
        "make build-installer IMG=mirror.example.com/virt-advisor-operator:v0.1.0",
        "it would change files of the tree; crates/xtask tests what it writes",
    ),
    ("make deploy IMG=<image>", "crates/xtask/tests/it/installation.rs runs it"),
    (
        "oc -n openshift-cnv rollout status deployment/virt-advisor-operator-controller-manager --timeout=2m",
        "no pods run here",
    ),
    ("virt-advisor doctor", "it finds that the pods of the Deployment do not run; support/doctor.rs tests it"),
    (
        "oc delete -f dist/install.yaml -l app.kubernetes.io/name=virt-advisor-operator",
        "it takes the rights of the running operator; crates/xtask/tests/it/installation.rs runs it",
    ),
];

#[tokio::test]
async fn deploying_on_openshift() {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    let nodes = Nodes::start(&cluster, 3).await;
    nodes.release();
    let mut guide = Checklist::of(&script(PAGE), EXCEPTIONS, &cluster.terminal);

    guide.run_first("oc get crd").await;
    guide.run("oc get machineconfigpool").await;
    guide.run("oc get nodes").await;
    guide.run("oc apply --server-side -f dist/install.yaml").await;
    guide.run_first("oc -n openshift-cnv get deployment").await;
    let offered = guide.run("oc get virtplatformconfig").await;
    assert!(offered.contains(PROFILE), "{offered}");

    guide.run_first("oc patch virtplatformconfig").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    guide.run("oc get virtplatformconfig load-aware-rebalancing").await;
    for command in ["plan", "impact"] {
        let shown = guide.run(&format!("virt-advisor {command} {PROFILE}")).await;
        assert!(shown.contains(PROFILE), "{command}: {shown}");
    }
    guide.run_first("oc patch virtplatformconfig").await;
    guide.run_first("virt-advisor wait").await;
    cluster.reach(PROFILE, "Completed").await;
    for command in ["virt-advisor status", "oc get machineconfigpool worker", "oc get nodes -o wide"] {
        assert_ne!(guide.run_first(command).await, "", "{command}");
    }
    let items = guide.run_first("oc get virtplatformconfig load-aware-rebalancing -o jsonpath").await;
    assert!(items.contains("all 3 nodes updated"), "{items}");

    for _ in ["pause", "go on"] {
        guide.run_first("oc patch machineconfigpool worker").await;
    }
    guide.run_first("oc patch virtplatformconfig").await;
    let is_planned = |config: &Value| config["status"]["restore"].is_object();
    cluster.until(PROFILE, "planned to be restored", is_planned).await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    guide.finish();
    cluster.finish().await;
}
