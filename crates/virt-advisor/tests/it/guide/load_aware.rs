//! The guide of the profile load-aware-rebalancing: preview, approval, options, drift and its two treatments.

use serde_json::{Value, json};
use testkit::checklist::script;

use super::{
    checklist::Checklist,
    compare::{Difference, What, complaints, extract},
    monitoring::says_one_of_three,
    nodes::Nodes,
    terminal::{Terminal, shown},
    test_cluster::{DESCHEDULER, TestCluster, define},
    workflow::condition,
};

const PROFILE: &str = "load-aware-rebalancing";
/// Our own guide.
const PAGE: &str = "docs/LOADAWARE_PROFILE.md";

/// What the guide prints and we do not run, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("make dev-setup", "it starts a cluster, which this test has done"),
    ("make run", "it starts the operator, which this test has done"),
];

/// What the guide's example of a plan has, and we do not.
fn differences() -> Vec<Difference> {
    let difference = |field: &str, what, because| Difference {
        path: format!("status.items[enable-load-aware-descheduling].{field}"),
        what,
        because,
    };
    let replaces = |theirs: Value, ours: Value| What::Differs { theirs, ours };
    vec![
        difference(
            "impactSeverity",
            replaces(json!("Low - Updates existing descheduler configuration"), json!("Low")),
            "in the workflow guide, which shows real output, it is one of three words",
        ),
        difference("diff", What::Illustrated, "a hunk of one line cannot have eleven; what it is about is asserted"),
        difference(
            "managedFields",
            replaces(
                json!(["spec.deschedulingIntervalSeconds", "spec.profiles", "spec.profileCustomizations"]),
                json!([
                    "spec.deschedulingIntervalSeconds",
                    "spec.mode",
                    "spec.profiles",
                    "spec.profileCustomizations",
                    "spec.evictionLimits",
                ]),
            ),
            "the mode and the limits are managed too, as in the workflow guide",
        ),
    ]
}

/// The descheduler of the guide's example: all set but for one profile.
const AS_IN_THE_EXAMPLE: &str = r#"kubectl patch kubedescheduler cluster --type=merge -p '{"spec": {
  "deschedulingIntervalSeconds": 60, "mode": "Automatic", "evictionLimits": {"total": 5, "node": 2},
  "profileCustomizations": {"devDeviationThresholds": "AsymmetricLow", "devEnableEvictionsInBackground": true, "devEnableSoftTainter": true},
  "profiles": ["AffinityAndTaints", "SoftTopologyAndDuplicates", "LifecycleAndUtilization"]}}'"#;

const GET: &str = "kubectl get virtplatformconfig load-aware-rebalancing -o yaml";
const QUERY: &str = r#"kubectl get virtplatformconfig -o json | jq '.items[] | select(.status.conditions[] | select(.type=="Drifted" and .status=="True"))'"#;

/// Somebody edits a managed field.
const EDIT: &str =
    r#"kubectl patch kubedescheduler cluster --type=merge -p '{"spec": {"deschedulingIntervalSeconds": 1800}}'"#;
const INTERVAL: &str = "kubectl get kubedescheduler cluster -o jsonpath='{.spec.deschedulingIntervalSeconds}'";

fn patch(spec: &str) -> String {
    format!("kubectl patch virtplatformconfig load-aware-rebalancing --type=merge -p '{{\"spec\": {spec}}}'")
}

/// D25 (quick start as printed): the commands of the quick start, as printed.
#[tokio::test]
async fn the_guide_of_load_aware_rebalancing() {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    let nodes = Nodes::start(&cluster, 3).await;
    let commands = [include_str!("load-aware.sh"), script(PAGE).as_str()].concat();
    let mut guide = Checklist::of(&commands, EXCEPTIONS, &cluster.terminal);

    preview(&cluster, &mut guide).await;
    apply(&cluster, &nodes, &mut guide).await;
    options(&cluster, &nodes).await;
    drift(&cluster, &mut guide).await;
    remediation(&cluster).await;
    guide.finish();
    cluster.finish().await;
}

async fn preview(cluster: &TestCluster, guide: &mut Checklist<'_>) {
    guide.run("kubectl apply -f config/samples/mock_baseline_resources.yaml").await;
    cluster.terminal.run(AS_IN_THE_EXAMPLE).await;
    let access = cluster.control_plane.access();
    let mut watches = Vec::new();
    for command in ["kubectl get virtplatformconfig load-aware-rebalancing -w", "kubectl get virtplatformconfig -w"] {
        guide.tick(command);
        let watch = cluster.terminal.start(access, command).await;
        shown(&watch, |text| text.contains("Ignored")).await;
        watches.push(watch);
    }
    guide.run("kubectl apply -f config/samples/loadaware_sample.yaml").await;
    cluster.reach(PROFILE, "ReviewRequired").await;
    guide.tick(GET);
    let config = cluster.terminal.yaml(GET).await;
    let example: Value = serde_saphyr::from_str(include_str!("load-aware-example.yaml")).unwrap();
    let said = complaints(&example, &extract(&example, &config), &differences());
    assert!(said.is_empty(), "{}", said.join("\n"));
    let diff = config["status"]["items"][1]["diff"].as_str().unwrap();
    let changed: Vec<_> = diff.lines().skip(2).filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(changed, ["-  - LifecycleAndUtilization", "+  - KubeVirtRelieveAndMigrate"], "{diff}");
    for watch in watches {
        shown(&watch, |text| ["Pending", "Drafting", "ReviewRequired"].iter().all(|phase| text.contains(phase))).await;
    }
}

async fn apply(cluster: &TestCluster, nodes: &Nodes, guide: &mut Checklist<'_>) {
    guide.run_first("kubectl patch virtplatformconfig").await;
    nodes.hold_after_the_first(cluster).await;
    cluster
        .until(PROFILE, "InProgress with a completed item", |config| {
            config["status"]["phase"] == "InProgress" && config["status"]["items"][1]["state"] == "Completed"
        })
        .await;

    // During InProgress, drift of what is completed already is told at once; the phase follows when the rest is done.
    cluster.terminal.run(EDIT).await;
    let drifted = |config: &Value| condition(config, "Drifted").0 == "True";
    let config = cluster.until(PROFILE, "telling of drift", drifted).await;
    assert_eq!(config["status"]["phase"], "InProgress");
    cluster.terminal.run(&EDIT.replace("1800", "60")).await;
    cluster.until(PROFILE, "no longer telling of drift", |config| !drifted(config)).await;
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;

    let descheduler: Value =
        serde_saphyr::from_str(&guide.run("kubectl get kubedescheduler cluster -o yaml").await).unwrap();
    assert_eq!(
        descheduler["spec"]["profiles"],
        json!(["AffinityAndTaints", "SoftTopologyAndDuplicates", "KubeVirtRelieveAndMigrate"]),
        "what goes with it is preserved, the rest is removed"
    );
    let config = guide.run("kubectl get machineconfig 99-worker-psi-karg -o yaml").await;
    assert!(config.contains("  kernelArguments:\n  - psi=1\n"), "{config}");
    for beginning in [
        "kubectl get kubedescheduler cluster -n",
        "kubectl get kubedescheduler cluster -n",
        "kubectl get machineconfig",
    ] {
        assert_ne!(guide.run_first(beginning).await, "", "{beginning}");
    }
}

/// The overrides as the guide prints them, which are the defaults, and then others.
async fn options(cluster: &TestCluster, nodes: &Nodes) {
    let printed = r#"{"options": {"loadAware": {"deschedulingIntervalSeconds": 60, "mode": "Automatic", "enablePSIMetrics": true, "devDeviationThresholds": "AsymmetricLow"}}}"#;
    cluster.terminal.run(&patch(printed)).await;
    let config = cluster.reach(PROFILE, "Completed").await;
    assert_eq!(config["status"]["appliedOptions"], config["spec"]["options"]);

    let others = r#"{"action": "DryRun", "options": {"loadAware": {"deschedulingIntervalSeconds": 300, "mode": "Predictive", "enablePSIMetrics": false, "devDeviationThresholds": "High"}}}"#;
    cluster.terminal.run(&patch(others)).await;
    let config = cluster.reach(PROFILE, "ReviewRequired").await;
    let items = &config["status"]["items"];
    let item = |name: &str| items.as_array().unwrap().iter().find(|item| item["name"] == name).cloned().unwrap();
    let spec = item("enable-load-aware-descheduling")["desiredState"]["spec"].clone();
    assert_eq!(spec["deschedulingIntervalSeconds"], 300);
    assert_eq!(spec["mode"], "Predictive");
    assert_eq!(spec["profileCustomizations"]["devDeviationThresholds"], "High");
    let removal = item("enable-psi-metrics");
    assert_eq!(removal["operation"], "Delete", "what is no longer wanted is removed: {removal:#}");
    assert_eq!(config["status"]["impactSeverity"], "High", "and that reboots nodes, too");

    nodes.slow_down();
    cluster.terminal.run(&patch(r#"{"action": "Apply"}"#)).await;
    nodes.hold_after_the_first(cluster).await;
    let config = cluster.until(PROFILE, "waiting for the nodes to run without it", says_one_of_three).await;
    assert_eq!(config["status"]["phase"], "InProgress");
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;
    let gone = cluster.terminal.try_run("kubectl get machineconfig 99-worker-psi-karg").await;
    assert!(!gone.status.success());

    cluster.terminal.run(&patch(r#"{"options": null}"#)).await;
    cluster.reach(PROFILE, "Completed").await;
    cluster.terminal.run("kubectl get machineconfig 99-worker-psi-karg").await;
}

/// By default drift is told, and nobody is fought with.
async fn drift(cluster: &TestCluster, guide: &mut Checklist<'_>) {
    guide.tick(QUERY);
    assert_eq!(drifted(&cluster.terminal).await, [""; 0]);
    cluster.terminal.run(EDIT).await;
    let config = cluster.reach(PROFILE, "Drifted").await;
    assert_eq!(drifted(&cluster.terminal).await, [PROFILE]);
    let (status, reason, _) = condition(&config, "Drifted");
    assert_eq!((status, reason), ("True", "DriftDetected"));
    assert_eq!(condition(&config, "Completed").0, "False");

    cluster.terminal.run(&patch(r#"{"action": "DryRun"}"#)).await;
    let config = cluster.reach(PROFILE, "ReviewRequired").await;
    let diff = config["status"]["items"][1]["diff"].as_str().unwrap();
    assert!(diff.contains("\n-  deschedulingIntervalSeconds: 1800\n+  deschedulingIntervalSeconds: 60\n"), "{diff}");
    assert_eq!(cluster.terminal.run(INTERVAL).await, "1800", "nothing was reverted so far");
    cluster.terminal.run(&patch(r#"{"action": "Apply"}"#)).await;
    cluster.reach(PROFILE, "Completed").await;
    assert_eq!(cluster.terminal.run(INTERVAL).await, "60");
}

/// With `bypassOptimisticLock: true`, drift is corrected without a person.
async fn remediation(cluster: &TestCluster) {
    cluster.terminal.run(&patch(r#"{"bypassOptimisticLock": true}"#)).await;
    cluster.reach(PROFILE, "Completed").await;
    cluster.terminal.run(EDIT).await;
    let kind = kube::api::GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
    let reverted = |object: &Value| object["spec"]["deschedulingIntervalSeconds"] == 60;
    let namespace = Some("openshift-kube-descheduler-operator");
    cluster.object_until(&kind, namespace, "cluster", "as it was applied", reverted).await;
    cluster.reach(PROFILE, "Completed").await;
}

/// The names that the guide's query finds, by jq where it is installed and always by our own reading of it.
async fn drifted(terminal: &Terminal) -> Vec<String> {
    let (source, _) = QUERY.split_once(" | jq").unwrap();
    let list: Value = serde_json::from_str(&terminal.run(source).await).unwrap();
    let is_drifted = |config: &&Value| condition(config, "Drifted").0 == "True";
    let name = |config: &Value| config["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let found: Vec<_> = list["items"].as_array().unwrap().iter().filter(is_drifted).map(name).collect();
    if terminal.try_run("command -v jq").await.status.success() {
        let output = terminal.run(QUERY).await;
        let configs = serde_json::Deserializer::from_str(&output).into_iter::<Value>();
        let by_jq: Vec<_> = configs.map(|config| name(&config.unwrap())).collect();
        assert_eq!(by_jq, found);
    }
    found
}
