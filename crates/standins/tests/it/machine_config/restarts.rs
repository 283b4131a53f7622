//! Restarts of the stand-in and of the API server in the middle of a rollout.

use std::time::Duration;

use devcluster::{Cluster, Component};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{
    fixtures::{TestPool, define, empty_cluster, new_cluster, settings, start_stand_in, status},
    recording::Recorder,
};

#[tokio::test]
async fn a_restarted_stand_in_continues_where_the_last_one_stopped() {
    let (cluster, client) = empty_cluster(Cluster::builder()).await;
    // Before its kinds are defined.
    let stand_in = start_stand_in(&cluster).await;
    assert_eq!(stand_in.settings(), settings());
    define(&cluster).await;
    let pool = TestPool::create(&client, "restarted", 4, json!({})).await;
    let recorder = Recorder::start(&pool).await;
    pool.configure("99-restarted", json!({"kernelArguments": ["psi=1"]})).await;
    pool.reach("to have begun", |pool| status(pool).unavailable_machine_count == 1).await;

    // At arbitrary moments of the update of a node.
    let mut stand_in = stand_in;
    for updated in 1..4 {
        stand_in.shutdown().await.unwrap();
        stand_in = start_stand_in(&cluster).await;
        pool.reach("to go on", |pool| status(pool).updated_machine_count >= updated).await;
        drop(stand_in);
        stand_in = start_stand_in(&cluster).await;
    }
    pool.settle("99-restarted", true, 4).await;
    let recording = recorder.stop(&pool).await;
    assert_eq!(recording.most_unavailable(), 1);
    assert_eq!(recording.order(), ["restarted-0", "restarted-1", "restarted-2", "restarted-3"], "each node once");
    let updated = recording.counts(|status| status.updated_machine_count);
    assert_eq!(updated, [4, 0, 1, 2, 3, 4]);
    stand_in.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_restart_of_the_api_server_only_delays_a_rollout() {
    let (cluster, client) = new_cluster(Cluster::builder()).await;
    let stand_in = start_stand_in(&cluster).await;
    let pool = TestPool::create(&client, "interrupted", 4, json!({})).await;
    let recorder = Recorder::start(&pool).await;
    pool.configure("99-interrupted", json!({"kernelArguments": ["psi=1"]})).await;
    pool.reach("to be in the middle", |pool| {
        status(pool).updated_machine_count == 1 && status(pool).unavailable_machine_count == 1
    })
    .await;
    // The recorder loses its connection, too. No reboot ends before it is back.
    stand_in.change(|settings| settings.reboot = Duration::from_secs(600));
    cluster.kill(Component::ApiServer).unwrap();
    cluster.start(Component::ApiServer).await.unwrap();
    for number in 0..4 {
        let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "true"}}}));
        pool.nodes.patch(&pool.node(number), &PatchParams::default(), &touch).await.unwrap();
    }
    recorder.catch_up(&pool).await;
    stand_in.change(|changed| changed.reboot = settings().reboot);
    pool.settle("99-interrupted", true, 4).await;
    let recording = recorder.stop(&pool).await;
    assert_eq!(recording.most_unavailable(), 1);
    let nodes: Vec<_> = (0..4).map(|number| pool.node(number)).collect();
    assert_eq!(recording.order(), nodes, "each node once");

    // Watches also survive that their resourceVersion has expired.
    cluster.expire_watches().await.unwrap();
    pool.unconfigure("99-interrupted").await;
    pool.settle("99-interrupted", false, 4).await;
    stand_in.shutdown().await.unwrap();
}
