//! Nodes are drained by eviction, so that disruption budgets are respected.

use std::time::Duration;

use devcluster::{Cluster, Identity, Kwok};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use standins::machine_config::{DrainSettings, Machine, MachineConfigSettings, StandIn};
use testkit::eventually;

use super::{
    fixtures::{
        STAND_IN, TestPool, describe, is_at_rest, message, name, new_cluster, settings, shared_cluster, start_stand_in,
        status,
    },
    recording::Recorder,
};

async fn pod(client: &Client, name: &str, node: &str, metadata: Value) {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
    });
    pod["metadata"].as_object_mut().unwrap().extend(metadata.as_object().unwrap().clone());
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
}

#[tokio::test]
async fn pods_are_evicted_before_the_reboot_but_not_daemons_and_mirror_pods() {
    let client = shared_cluster().await.cluster.access().client().await.unwrap();
    let pool = TestPool::create(&client, "drained", 1, json!({})).await;
    let owner = |kind: &str| json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "1", "controller": true}]});
    pod(&client, "plain", "drained-0", json!({})).await;
    pod(&client, "of-a-replica-set", "drained-0", owner("ReplicaSet")).await;
    pod(&client, "of-a-daemon-set", "drained-0", owner("DaemonSet")).await;
    pod(&client, "mirror", "drained-0", json!({"annotations": {"kubernetes.io/config.mirror": "x"}})).await;
    // A pod that is being deleted: without a kubelet nobody confirms that it has ended.
    pod(&client, "ending", "drained-0", json!({})).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    pods.delete("ending", &DeleteParams::default()).await.unwrap();

    pool.configure("99-drained", json!({"kernelArguments": ["psi=1"]})).await;
    pool.settle("99-drained", true, 1).await;
    let left = pods.list(&ListParams::default().fields("spec.nodeName=drained-0")).await.unwrap();
    assert_eq!(left.iter().map(name).collect::<Vec<_>>(), ["mirror", "of-a-daemon-set"]);
}

#[tokio::test]
async fn a_disruption_budget_delays_the_drain_and_kwok_keeps_its_nodes() {
    let builder = Cluster::builder().controllers(&["disruption-controller"]).kwok(Kwok::default());
    let (cluster, client) = new_cluster(builder).await;
    let stand_in = start_stand_in(&cluster).await;
    let pool = TestPool::define(&client, "kwok", &["kwok"], &[], 0, json!({})).await;
    pool.add_node(0, &["kwok"], json!({"kwok.x-k8s.io/node": "fake"})).await;
    pool.reach("at rest", |pool| is_at_rest(pool, 1)).await;

    pod(&client, "guarded", "kwok-0", json!({})).await;
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "default");
    let budget = json!({"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "guarded"}}}});
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    eventually("the budget counts the pod", async || {
        let status = budgets.get("guard").await.unwrap().status?;
        (status.current_healthy == 1 && status.disruptions_allowed == 0).then_some(())
    })
    .await;

    let mark = cluster.audit().position(&client).await.unwrap();
    let recorder = Recorder::start(&pool).await;
    pool.configure("99-kwok", json!({"kernelArguments": ["psi=1"]})).await;
    let evictions = async |code: u16| {
        let requests = cluster.audit().since(mark, &client).await.unwrap();
        let by_stand_in =
            requests.iter().filter(|request| request.user == STAND_IN && request.subresource == "eviction");
        by_stand_in.filter(|request| request.code == code).count()
    };
    eventually("the budget refuses twice", async || (evictions(429).await >= 2).then_some(())).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    assert!(pods.get("guarded").await.unwrap().metadata.deletion_timestamp.is_none());
    assert_eq!(describe(&pool.nodes.get("kwok-0").await.unwrap()), "Working outdated cordoned");
    let held = pool.get().await;
    assert_eq!((status(&held).updated_machine_count, status(&held).unavailable_machine_count), (0, 1));

    // A drain that takes too long degrades the node, and continues.
    stand_in.change(|settings| settings.drain.timeout = Duration::ZERO);
    let stuck = pool.reach("to be degraded", |pool| status(pool).degraded_machine_count == 1).await;
    assert!(message(&stuck, "NodeDegraded").contains("failed to drain node: kwok-0 after 1 hour. Please see"));
    stand_in.change(|changed| changed.drain.timeout = settings().drain.timeout);

    budgets.delete("guard", &DeleteParams::default()).await.unwrap();
    pool.settle("99-kwok", true, 1).await;
    assert_eq!(pods.get_opt("guarded").await.unwrap().map(|pod| name(&pod)), None);
    assert_eq!(evictions(201).await, 1);

    let recording = recorder.stop(&pool).await;
    assert!(
        recording.nodes.iter().all(|node| Machine::of(node).ready() == Some(true)),
        "KWOK owns the Ready condition"
    );
    assert_eq!(recording.states("kwok-0").last().map(String::as_str), Some("Done"));
    let requests = cluster.audit().since(mark, &client).await.unwrap();
    assert!(!requests.iter().any(|it| it.user == STAND_IN && it.resource == "nodes" && it.subresource == "status"));
    stand_in.shutdown().await.unwrap();
}

/// An attempt repeats refused evictions, and in the pause after it nothing is evicted.
#[tokio::test]
async fn a_drain_goes_on_in_attempts_with_pauses_between_them() {
    let (cluster, client) = new_cluster(Cluster::builder()).await;
    let millis = Duration::from_millis;
    let drain = DrainSettings {
        attempt: millis(300),
        retry: millis(20),
        poll: millis(20),
        pause: millis(700),
        long_pause: millis(1500),
        long_pause_after: millis(1500),
        ..DrainSettings::default()
    };
    let who = Identity::user(STAND_IN, &["system:masters"]);
    let settings = MachineConfigSettings { drain, machine_config_nodes: true, ..settings() };
    let stand_in = StandIn::start(cluster.access().client_for(&who).await.unwrap(), settings);
    let pool = TestPool::create(&client, "blocked", 1, json!({})).await;
    pod(&client, "held", "blocked-0", json!({})).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let running = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status("held", &PatchParams::default(), &Patch::Merge(running)).await.unwrap();
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "default");
    let budget = json!({"metadata": {"name": "guard"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}}});
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    let allows = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    budgets.patch_status("guard", &PatchParams::default(), &Patch::Merge(allows)).await.unwrap();

    let mark = cluster.audit().position(&client).await.unwrap();
    pool.configure("99-blocked", json!({"kernelArguments": ["psi=1"]})).await;
    let pauses = async || {
        let requests = cluster.audit().since(mark, &client).await.unwrap();
        let refused: Vec<Timestamp> = requests
            .iter()
            .filter(|request| request.user == STAND_IN && request.subresource == "eviction" && request.code == 429)
            .map(|request| request.arrived)
            .collect();
        let gaps = refused.windows(2).map(|pair| pair[1].duration_since(pair[0]).as_millis());
        (gaps.clone().filter(|gap| *gap < 650).count(), gaps.filter(|gap| *gap >= 1450).count())
    };
    let (retries, long_pauses) =
        eventually("pauses become long", async || Some(pauses().await).filter(|(_, long)| *long >= 1)).await;
    assert!(retries >= 2 && long_pauses >= 1, "{retries} {long_pauses}");

    assert_eq!(step(&client).await, "Drained Unknown");
    budgets.delete("guard", &DeleteParams::default()).await.unwrap();
    pool.settle("99-blocked", true, 1).await;
    eventually("the node is told to be updated", async || (step(&client).await == "Updated True").then_some(())).await;
    stand_in.shutdown().await.unwrap();
}

/// The condition of the MachineConfigNode that tells how far the node is.
async fn step(client: &Client) -> String {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfigNode");
    let nodes: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let node = nodes.get("blocked-0").await.unwrap();
    let conditions = node.data["status"]["conditions"].as_array().unwrap().clone();
    let find = |status: &str| {
        conditions
            .iter()
            .find(|it| it["status"] == status)
            .map(|it| format!("{} {status}", it["type"].as_str().unwrap()))
    };
    find("Unknown").or_else(|| find("True")).unwrap()
}
