//! The cluster of `config/samples/third-party`, with the status that the real operator wrote.

use std::time::Duration;

use devcluster::Cluster;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use serde_json::json;
use standins::machine_config::Machine;
use testkit::{
    eventually,
    files::{documents, root},
};

use super::fixtures::{STAND_IN, apply, configs, describe, is_at_rest, name, new_cluster, start_stand_in};

/// Holds L50 (requests without change).
#[tokio::test]
async fn the_sample_cluster_is_adopted_as_it_is_and_at_rest_costs_no_requests() {
    let (cluster, client) = new_cluster(Cluster::builder()).await;
    let samples = root().join("config/samples/third-party");
    for file in ["machineconfigs.yaml", "machineconfigpools.yaml"] {
        for object in documents(&samples.join(file)) {
            apply(&client, &object, false).await;
        }
    }
    for object in documents(&samples.join("status.yaml")).iter().filter(|it| it["kind"] == "MachineConfigPool") {
        apply(&client, object, true).await;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    for role in ["worker", "master"] {
        for number in 0..3 {
            let labels = json!({format!("node-role.kubernetes.io/{role}"): ""});
            let node = json!({"metadata": {"name": format!("{role}-{number}"), "labels": labels}});
            nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        }
    }
    let pools: Api<standins::machine_config::MachineConfigPool> = Api::all(client.clone());
    let before = pools.list(&ListParams::default()).await.unwrap().items;
    let configs_before = configs(&client).list(&ListParams::default()).await.unwrap().items.len();

    let mark = cluster.audit().position(&client).await.unwrap();
    let stand_in = start_stand_in(&cluster).await;
    eventually("all nodes are adopted and ready", async || {
        let nodes = nodes.list(&ListParams::default()).await.unwrap();
        nodes.iter().map(Machine::of).all(|node| node.is_done() && node.is_in_service()).then_some(())
    })
    .await;
    let writes = async |since| {
        let requests = cluster.audit().since(since, &client).await.unwrap();
        requests.into_iter().filter(|request| request.user == STAND_IN).collect::<Vec<_>>()
    };
    let seen = writes(mark).await;
    assert!(seen.iter().filter(|it| it.is_write()).all(|it| it.resource == "nodes"), "{seen:#?}");
    assert_eq!(seen.iter().filter(|it| it.is_write()).count(), 12, "annotations and a Ready condition per node");

    let after = pools.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(before, after, "pools are as they were, to the resource version");
    assert!(after.iter().all(|pool| is_at_rest(pool, 3)));
    assert_eq!(configs(&client).list(&ListParams::default()).await.unwrap().items.len(), configs_before);
    for node in nodes.list(&ListParams::default()).await.unwrap() {
        assert_eq!(describe(&node), "Done", "{}", name(&node));
        let pool = after.iter().find(|pool| name(&node).starts_with(&name(*pool))).unwrap();
        assert!(Machine::of(&node).is_done_with(&pool.spec.configuration.name));
    }

    // No event says that nothing happens, so the test waits for a while.
    let mark = cluster.audit().position(&client).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let idle = writes(mark).await;
    assert!(idle.is_empty(), "{idle:#?}");
    stand_in.shutdown().await.unwrap();
}
