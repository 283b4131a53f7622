//! One node of six cannot be updated while nobody looks.
//! The status names node and cause, the alert fires, its runbook leads to the node, `gather` has the story, and when the node
//! recovers, everything is healthy again without anybody's help.

use std::{collections::BTreeMap, path::Path};

use devcluster::{Cluster, Port, RunningProgram};
use serde_json::{Deserializer, Value};

use super::{
    panels,
    prometheus::{Server, component},
    runbooks::{self, Section},
};
use crate::guide::{
    nodes::{Nodes, pool_until},
    recorder::Recorder,
    terminal::shown,
    test_cluster::{DESCHEDULER, TestCluster, define},
};

const PROFILE: &str = "load-aware-rebalancing";
/// The node that fails, and what it reports.
const NODE: &str = "worker-2";
const CAUSE: &str = "the stand-in was told to fail on this node";

const EDIT: &str = r#"kubectl patch kubedescheduler cluster -n openshift-kube-descheduler-operator --type=merge \
  -p '{"spec":{"deschedulingIntervalSeconds":180}}'"#;

/// What the status says about the worker pool.
fn pool(config: &Value) -> &Value {
    let items = config["status"]["items"].as_array();
    let rollouts = items.into_iter().flatten().filter_map(|item| item["rollout"].as_array());
    rollouts.flatten().find(|rollout| rollout["pool"] == "worker").unwrap_or(&Value::Null)
}

fn names_node_and_cause(config: &Value) -> bool {
    let cause = pool(config)["cause"].as_str().unwrap_or_default();
    pool(config)["state"] == "Degraded" && cause.contains(NODE) && cause.contains(CAUSE)
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

fn is_degraded(pool: &Value) -> bool {
    let conditions = pool["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|known| known["type"] == "NodeDegraded" && known["status"] == "True")
}

/// The first state of the pool in which it is degraded, as a watch shows it.
async fn first_degraded(watch: &RunningProgram) -> Value {
    let states =
        |text: &str| -> Vec<Value> { Deserializer::from_str(text).into_iter().map_while(Result::ok).collect() };
    let text = shown(watch, |text| states(text).iter().any(is_degraded)).await;
    states(&text).into_iter().find(is_degraded).unwrap()
}

/// All texts below a folder, by their paths.
fn files(folder: &Path, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            found.insert(path.to_string_lossy().into_owned(), text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_degraded_node_is_named_alerted_about_and_forgotten_when_it_recovers() {
    let port = Port::reserve().unwrap();
    let address = port.address();
    let args = ["operator", "--metrics-bind-address", &address, "--metrics-secure=false", "--stuck-after=5s"];
    let cluster = TestCluster::with_platform_and(Cluster::builder().prometheus(component(&address)), &args).await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    let terminal = &cluster.terminal;
    terminal.run("kubectl apply --server-side -f config/samples/third-party/kubedescheduler.yaml").await;
    let nodes = Nodes::start(&cluster, 6).await;
    nodes.release();
    nodes.fail(NODE);
    Nodes::add_stranger(&cluster, "another").await;
    let prometheus = Server::of(&cluster.control_plane);
    prometheus.until_result("kubevirt_advisor_build_info").await;

    // In the evening: somebody asks for a plan, reads it, approves it as the runbook of unread plans says, and goes home.
    terminal
        .run("kubectl patch vpcfg load-aware-rebalancing --type=merge -p '{\"spec\":{\"action\":\"DryRun\"}}'")
        .await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    prometheus.until_result("kubevirt_advisor_review_age_seconds").await;
    prometheus.until_firing(&[]).await;
    let review = panels::tables(&prometheus);
    let recorder = Recorder::start(&cluster, PROFILE).await;
    let access = cluster.control_plane.access();
    let pools = terminal.start(access, "kubectl get machineconfigpool worker --watch -o json").await;
    runbooks::run(terminal, "VirtAdvisorReviewOverdue", Section::Mitigation).await;

    // At night: the status names node and cause with the watch event that brings the news.
    let degraded = first_degraded(&pools).await;
    let config = cluster.until(PROFILE, "naming node and cause", names_node_and_cause).await;
    let told = recorder.up_to(&config).await;
    let since: Vec<&Value> = told.iter().filter(|state| version(state) > version(&degraded)).collect();
    assert!(since.len() <= 2, "one status may have been on its way: {since:#?}");
    assert_eq!(pool(&config)["updated"], 2, "{NODE} is the third of six");
    assert_eq!(pool(&config)["total"], 6);

    // The alert, and no other.
    let firing = prometheus.until_firing(&["VirtAdvisorPoolDegraded"]).await;
    let labels = &firing[0]["labels"];
    for (label, expected) in [
        ("profile", PROFILE),
        ("pool", "worker"),
        ("state", "Degraded"),
        ("severity", "warning"),
        ("namespace", "openshift-cnv"),
    ] {
        assert_eq!(labels[label], expected, "{labels}");
    }
    prometheus.assert_rules_are_healthy();

    // Its runbook leads to the node.
    let url = firing[0]["annotations"]["runbook_url"].as_str().unwrap();
    let name = url.rsplit('/').next().unwrap();
    let printed = runbooks::run(terminal, name, Section::Mitigation).await;
    assert!(printed.lines().any(|line| line.starts_with(NODE) && line.contains(CAUSE)), "{printed}");
    assert!(printed.contains("worker  Degraded  2/6"), "{printed}");
    assert!(!printed.lines().any(|line| line.starts_with("another ")), "a node of another pool: {printed}");

    gather_has_the_story(&cluster).await;
    prometheus.until_result("kubevirt_advisor_config_stalled{reason=\"NoProgress\"}").await;
    let stuck = panels::tables(&prometheus);

    // In the morning the node is repaired, and everything else happens by itself.
    nodes.recover();
    pool_until(&cluster, "updated", |pool| pool["status"]["updatedMachineCount"] == 6).await;
    let config = cluster.reach(PROFILE, "Completed").await;
    let conditions = config["status"]["conditions"].as_array().unwrap();
    let holds = |kind: &str| conditions.iter().any(|known| known["type"] == kind && known["status"] == "True");
    assert!(holds("Ready") && !holds("Stalled") && !holds("Reconciling"), "{conditions:#?}");
    prometheus.until_firing(&[]).await;
    prometheus.until_result("kubevirt_advisor_config_phase{phase=\"Completed\"}").await;
    let repaired = panels::tables(&prometheus);

    // At noon somebody changes by hand what was applied.
    terminal.run(EDIT).await;
    prometheus.until_firing(&["VirtAdvisorDrifted"]).await;
    let edited = panels::tables(&prometheus);
    let moments =
        [("in review", review), ("node stuck", stuck), ("node repaired", repaired), ("edited by hand", edited)];
    panels::compare_with_the_page(&moments);
    cluster.finish().await;
}

async fn gather_has_the_story(cluster: &TestCluster) {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("case");
    cluster.terminal.run(&format!("virt-advisor gather -o '{}'", target.display())).await;
    let mut found = BTreeMap::new();
    files(&target, &mut found);
    for (file, parts) in [
        ("virtplatformconfigs/load-aware-rebalancing.yaml", [NODE, CAUSE]),
        ("machineconfigpools/worker.yaml", ["NodeDegraded", NODE]),
        ("default/core/events.yaml", ["RolloutDegraded", NODE]),
        ("summary.txt", [PROFILE, "InProgress"]),
    ] {
        let (_, text) = found
            .iter()
            .find(|(path, _)| path.ends_with(file))
            .unwrap_or_else(|| panic!("{file} is not in {:?}", found.keys()));
        for part in parts {
            assert!(text.contains(part), "{part} is not in {file}:\n{text}");
        }
    }
}
