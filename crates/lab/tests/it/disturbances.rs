//! A stand-in that is restarted, and an API server that is, in the middle of a rollout.

use std::time::Duration;

use devcluster::{Cluster, Component};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::{
    film::Camera,
    platform::{Pool, blank, define, own, settings, start_stand_in, status},
};

#[tokio::test]
async fn a_restarted_stand_in_goes_on_where_the_last_one_stopped() {
    let (cluster, client) = blank(Cluster::builder()).await;
    // Before there is anything to watch.
    let stand_in = start_stand_in(&cluster).await;
    assert_eq!(stand_in.settings(), settings());
    define(&cluster).await;
    let pool = Pool::create(&client, "restarted", 4, json!({})).await;
    let camera = Camera::start(&pool).await;
    pool.configure("99-restarted", json!({"kernelArguments": ["psi=1"]})).await;
    pool.reach("to have begun", |pool| status(pool).unavailable_machine_count == 1).await;

    // At moments that are as good as random: while a node is told, cordoned, down, coming up.
    let mut stand_in = stand_in;
    for updated in 1..4 {
        stand_in.shutdown().await.unwrap();
        stand_in = start_stand_in(&cluster).await;
        pool.reach("to go on", |pool| status(pool).updated_machine_count >= updated).await;
        drop(stand_in);
        stand_in = start_stand_in(&cluster).await;
    }
    pool.settle("99-restarted", true, 4).await;
    let film = camera.stop(&pool).await;
    assert_eq!(film.most_away(), 1);
    assert_eq!(film.order(), ["restarted-0", "restarted-1", "restarted-2", "restarted-3"], "each node once");
    let updated = film.counts(|status| status.updated_machine_count);
    assert_eq!(updated, [4, 0, 1, 2, 3, 4]);
    stand_in.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_api_server_that_restarts_delays_a_rollout_and_spoils_nothing() {
    let (cluster, client) = own(Cluster::builder()).await;
    let stand_in = start_stand_in(&cluster).await;
    let pool = Pool::create(&client, "interrupted", 4, json!({})).await;
    let camera = Camera::start(&pool).await;
    pool.configure("99-interrupted", json!({"kernelArguments": ["psi=1"]})).await;
    pool.reach("to be in the middle", |pool| {
        status(pool).updated_machine_count == 1 && status(pool).unavailable_machine_count == 1
    })
    .await;
    // Nothing ends before the camera, which loses its connection too, can see it.
    stand_in.change(|settings| settings.reboot = Duration::from_secs(600));
    cluster.kill(Component::ApiServer).unwrap();
    cluster.start(Component::ApiServer).await.unwrap();
    for number in 0..4 {
        let touch = Patch::Merge(json!({"metadata": {"annotations": {"touched": "true"}}}));
        pool.nodes.patch(&pool.node(number), &PatchParams::default(), &touch).await.unwrap();
    }
    camera.catch_up(&pool).await;
    stand_in.change(|changed| changed.reboot = settings().reboot);
    pool.settle("99-interrupted", true, 4).await;
    let film = camera.stop(&pool).await;
    assert_eq!(film.most_away(), 1);
    let nodes: Vec<_> = (0..4).map(|number| pool.node(number)).collect();
    assert_eq!(film.order(), nodes, "each node once");

    // Versions that are too old to watch from are no obstacle either.
    cluster.expire_watches().await.unwrap();
    pool.unconfigure("99-interrupted").await;
    pool.settle("99-interrupted", false, 4).await;
    stand_in.shutdown().await.unwrap();
}
