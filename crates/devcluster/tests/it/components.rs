//! The optional components start, say they are ready, and do their work together.

use std::time::Duration;

use devcluster::{Cluster, Component, Descheduler, Kwok, Prometheus};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::{from_value, json};
use testkit::eventually;

#[tokio::test]
async fn a_deployment_runs_on_kwok_nodes_with_real_scheduler_controllers_prometheus_and_descheduler() {
    let prometheus = Prometheus {
        config: "global: {evaluation_interval: 1s}\nrule_files: [rules.yml]\n".into(),
        rules: vec![(
            "rules.yml".into(),
            "groups: [{name: test, interval: 1s, rules: [{record: answer, expr: vector(42)}]}]\n".into(),
        )],
        ..Prometheus::default()
    };
    let cluster = Cluster::builder()
        .scheduler()
        // Without the node lifecycle controller, nobody takes the not-ready taint off a node that became Ready.
        .controllers(&["node-lifecycle-controller", "deployment-controller", "replicaset-controller"])
        .kwok(Kwok::default())
        .prometheus(prometheus)
        .descheduler(Descheduler { interval: Duration::from_secs(1), ..Default::default() })
        .start()
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    let client = cluster.access().client().await.unwrap();

    let nodes: Api<Node> = Api::all(client.clone());
    for name in ["node-1", "node-2"] {
        let node = json!({
            "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}},
            "status": {"capacity": {"cpu": "8", "memory": "16Gi", "pods": "50"}, "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "50"}},
        });
        nodes.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
    }
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let deployment = json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
            },
        },
    });
    deployments.create(&PostParams::default(), &from_value(deployment).unwrap()).await.unwrap();

    eventually("four pods are available", async || {
        let web = deployments.get("web").await.unwrap();
        web.status.and_then(|status| status.available_replicas).filter(|replicas| *replicas == 4)
    })
    .await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let pods_now = pods.list(&ListParams::default()).await.unwrap();
    let placed = pods_now.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref());
    assert_eq!(placed.filter(|node| ["node-1", "node-2"].contains(node)).count(), 4, "the scheduler gave each a node");
    let node = nodes.get("node-1").await.unwrap();
    assert_eq!(node.status.unwrap().capacity.unwrap()["cpu"].0, "8", "KWOK keeps the capacity a node was created with");

    eventually("the rule has a value", async || {
        let url = format!("http://{}", cluster.address(Component::Prometheus).unwrap());
        let config = kube::Config::new(url.parse().unwrap());
        let prometheus = kube::Client::try_from(config).unwrap();
        let request = http::Request::get("/api/v1/query?query=answer").body(Vec::new()).unwrap();
        prometheus.request_text(request).await.unwrap().contains("\"42\"").then_some(())
    })
    .await;
    let log = cluster.log(Component::Descheduler).unwrap();
    eventually("the descheduler has run a cycle", async || {
        std::fs::read_to_string(log).unwrap().contains("Number of evictions/requests").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_component_that_was_not_asked_for_is_a_clear_error() {
    let cluster = devcluster::own().await.unwrap();
    let error = cluster.pid(Component::Kwok).unwrap_err();
    assert_eq!(error.to_string(), "this cluster does not run kwok: it was not asked for, or it was stopped");
}

#[tokio::test]
async fn a_program_that_fails_to_start_shows_its_last_words_and_its_log() {
    let kwok = Kwok { stages: "apiVersion: nonsense/v1\nkind: Nothing\n".into() };
    let error = Cluster::builder().kwok(kwok).start().await.expect_err("KWOK cannot start without stages");
    let text = error.to_string();
    assert!(text.starts_with("kwok ended (exit status: 1) before it was ready; its log is /"), "{text}");
    assert!(text.contains("no stages found") || text.contains("nonsense"), "{text}");

    let log = text.split("its log is ").nth(1).unwrap().lines().next().unwrap();
    assert!(std::path::Path::new(log).exists(), "the log is kept for whoever wants to read it");
    std::fs::remove_dir_all(std::path::Path::new(log).parent().unwrap()).unwrap();
}
