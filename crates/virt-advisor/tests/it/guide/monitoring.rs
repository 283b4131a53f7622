//! The workflow guide from a plan that is being applied to drift and its resolution, on a cluster that has a descheduler
//! with a profile of the administrator's choice; and the same part of our own guide.

use serde_json::Value;

use super::{
    differences::{Section, assert_as_in_the_guide},
    document::Document,
    nodes::Nodes,
    recorder::{Recorder, phases},
    terminal::shown,
    test_cluster::{DESCHEDULER, TestCluster, define},
    workflow::{APPLY, DRY_RUN, GET, ONE, condition},
};

const PROFILE: &str = "load-aware-rebalancing";

/// What its own operator adds to the descheduler's object; the guide's diff has the line numbers of one that has it.
const OBSERVED: &str = r#"kubectl patch kubedescheduler cluster --type=merge --field-manager=descheduler-operator -p '
{"spec": {"observedConfig": {"servingInfo": {"minTLSVersion": "VersionTLS12", "cipherSuites": [
  "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]}}}}'"#;

/// What the guide tells happened, without printing the commands.
const EDIT_DESCHEDULER: &str = r#"kubectl patch kubedescheduler cluster -n openshift-kube-descheduler-operator --type=merge \
  -p '{"spec": {"deschedulingIntervalSeconds": 180, "profileCustomizations": {"devEnableSoftTainter": false}}}'"#;
const EDIT_HYPER_CONVERGED: &str = r#"kubectl patch hyperconverged kubevirt-hyperconverged -n openshift-cnv --type=merge \
  -p '{"spec": {"liveMigrationConfig": {"parallelMigrationsPerCluster": 10, "parallelOutboundMigrationsPerNode": 4}}}'"#;

fn hash(config: &Value) -> &str {
    config["status"]["sourceSnapshotHash"].as_str().unwrap()
}

pub(crate) fn says_one_of_three(config: &Value) -> bool {
    config["status"]["items"][0]["message"].as_str().is_some_and(|message| message.contains("Updated: 1/3, Ready: 1/3"))
}

fn is_forced_review(config: &Value) -> bool {
    config["status"]["phase"] == "ReviewRequired" && condition(config, "InputDependencyDrift").0 == "True"
}

/// W4 (pool done too early), W31 (pointless forced review), D5 (changed input), D24 (progress texts): word for word,
/// but for what is listed as a difference.
#[tokio::test]
async fn sections_8_to_11() {
    let cluster = TestCluster::with_platform().await;
    define(&cluster.control_plane, &format!("config/crd/third-party/{DESCHEDULER}")).await;
    let terminal = &cluster.terminal;
    terminal.run("kubectl apply --server-side -f config/samples/third-party/kubedescheduler.yaml").await;
    terminal.run(OBSERVED).await;
    let nodes = Nodes::start(&cluster, 3).await;
    let recorder = Recorder::start(&cluster, PROFILE).await;
    terminal.run(DRY_RUN).await;
    let review = cluster.reach(PROFILE, "ReviewRequired").await;
    terminal.run(APPLY).await;

    // 8. Monitoring progress during long operations
    nodes.hold_after_the_first(&cluster).await;
    cluster.until(PROFILE, "telling how many nodes are done", says_one_of_three).await;
    let progress = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Progress, &progress);
    assert_ne!(hash(&progress), hash(&review), "the snapshot is now that of what was applied");
    watch_the_rollout(&cluster, &nodes).await;

    // 9. Completion
    cluster.reach(PROFILE, "Completed").await;
    let completed = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Completed, &completed);
    assert_eq!(hash(&completed), hash(&progress), "as in the guide");
    let seen = recorder.up_to(&completed).await;
    assert_eq!(phases(&seen), ["Ignored", "Pending", "Drafting", "ReviewRequired", "InProgress", "Completed"]);

    // 10. Drift detection
    terminal.run(EDIT_DESCHEDULER).await;
    terminal.run(EDIT_HYPER_CONVERGED).await;
    cluster.until(PROFILE, "in a forced review", is_forced_review).await;
    let drift = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Drift, &drift);
    assert_ne!(hash(&drift), hash(&completed));
    let seen = recorder.up_to(&drift).await;
    let after = phases(&seen).split_off(5).into_iter().filter(|phase| *phase != "Drifted").collect::<Vec<_>>();
    assert_eq!(after, ["Completed", "Drafting", "ReviewRequired"], "whether the first edit was noticed or not");
    let limits = "kubectl get kubedescheduler cluster -o jsonpath='{.spec.evictionLimits.total}'";
    assert_eq!(terminal.run(limits).await, "5", "nothing is applied although the action is Apply");

    // 11. Acknowledging and resolving drift
    terminal.run(&format!("{DRY_RUN}\n\n{APPLY}")).await;
    cluster.reach(PROFILE, "Completed").await;
    let resolved = terminal.yaml(GET).await;
    assert_as_in_the_guide(Section::Resolved, &resolved);
    assert_ne!(hash(&resolved), hash(&drift));
    assert_eq!(terminal.run(limits).await, "10");
    what_is_taken_back_resolves_itself(&cluster).await;
    cluster.finish().await;
}

/// The guide's special case without its end: whoever changed the limits changes them back, and nobody has to do anything.
async fn what_is_taken_back_resolves_itself(cluster: &TestCluster) {
    let lower = EDIT_HYPER_CONVERGED.replace("10", "5");
    cluster.terminal.run(&lower).await;
    let config = cluster.until(PROFILE, "in a forced review", is_forced_review).await;
    let message = "Input dependency changed: HCO parallelMigrationsPerCluster changed (scaled 10 -> 5)";
    assert_eq!(condition(&config, "InputDependencyDrift"), ("True", "InputChanged", message));
    cluster.terminal.run(EDIT_HYPER_CONVERGED).await;
    let config = cluster.reach(PROFILE, "Completed").await;
    let (status, reason, _) = condition(&config, "InputDependencyDrift");
    assert_eq!((status, reason), ("False", "DriftResolved"));
}

/// `oc get mcp worker -w` and `oc get nodes -w`, from one node that is done to all of them.
async fn watch_the_rollout(cluster: &TestCluster, nodes: &Nodes) {
    let access = cluster.control_plane.access();
    let rows = |text: &str, name: &str| text.lines().filter(|line| line.starts_with(name)).count();
    let watches = [("oc get mcp worker -w", "worker "), ("oc get nodes -w", "worker-2 ")];
    let mut open = Vec::new();
    for (command, name) in watches {
        let watch = cluster.terminal.start(access, command).await;
        shown(&watch, |text| rows(text, name) == 1).await;
        open.push((watch, name));
    }
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;
    for (watch, name) in open {
        shown(&watch, |text| rows(text, name) > 1).await;
    }
}

/// The rest of our own guide, from a rollout that is under way.
pub(crate) async fn our_own_guide(cluster: &TestCluster, nodes: &Nodes, guide: &mut Document) {
    let terminal = &cluster.terminal;
    let items = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{range .status.items[*]}{.name}: {.state}: {.message}{"\n"}{end}'"#;
    let why = r#"kubectl get virtplatformconfig load-aware-rebalancing \
  -o jsonpath='{.status.conditions[?(@.type=="InputDependencyDrift")].message}'"#;
    let diff = "kubectl get virtplatformconfig load-aware-rebalancing -o jsonpath='{.status.items[1].diff}'";
    guide.show(terminal, &[ONE, items, "kubectl get machineconfigpool worker"]).await;
    nodes.release();
    cluster.reach(PROFILE, "Completed").await;
    guide.show(terminal, &[ONE, items]).await;

    guide.show(terminal, &[EDIT_DESCHEDULER]).await;
    cluster.reach(PROFILE, "Drifted").await;
    guide.also(terminal, &[ONE, items, diff]).await;
    guide.show(terminal, &[EDIT_HYPER_CONVERGED]).await;
    cluster.until(PROFILE, "in a forced review", is_forced_review).await;
    guide.also(terminal, &[ONE, why, diff]).await;

    guide.show(terminal, &[&DRY_RUN.replace("oc ", "kubectl "), &APPLY.replace("oc ", "kubectl ")]).await;
    cluster.reach(PROFILE, "Completed").await;
    guide.also(terminal, &[ONE, items]).await;
}
