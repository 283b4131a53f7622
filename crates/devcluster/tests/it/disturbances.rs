//! What tests can do to a cluster of their own: restart, kill, pause, expire.

use std::{pin::pin, time::Duration};

use devcluster::{Cluster, Component};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ObjectMeta, PostParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt, watcher},
};

const TIMEOUT: Duration = Duration::from_secs(60);

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, ..Default::default() }
}

async fn config_maps(cluster: &Cluster) -> Api<ConfigMap> {
    Api::namespaced(cluster.access().client().await.unwrap(), "default")
}

#[tokio::test]
async fn a_restarted_api_server_keeps_its_data_and_its_port_and_a_watch_reconnects() {
    let cluster = Cluster::builder().start().await.unwrap();
    let api = config_maps(&cluster).await;
    api.create(&PostParams::default(), &config_map("before")).await.unwrap();
    let address = cluster.address(Component::ApiServer).unwrap();

    let mut watch = pin!(watcher(api.clone(), watcher::Config::default()).default_backoff().applied_objects());
    let mut seen = async |name: &str| {
        let next = async {
            loop {
                // Errors while the server is away are what the back-off is for.
                if let Some(Ok(object)) = watch.next().await
                    && object.metadata.name.as_deref() == Some(name)
                {
                    break;
                }
            }
        };
        tokio::time::timeout(TIMEOUT, next).await.unwrap_or_else(|_| panic!("the watch never showed {name}"));
    };
    seen("before").await;

    cluster.restart(Component::ApiServer).await.unwrap();
    api.create(&PostParams::default(), &config_map("after-restart")).await.unwrap();
    seen("after-restart").await;

    let pid = cluster.pid(Component::ApiServer).unwrap();
    cluster.kill(Component::ApiServer).unwrap();
    cluster.pid(Component::ApiServer).expect_err("nothing runs after kill -9");
    api.get("before").await.expect_err("nobody answers after kill -9");
    cluster.start(Component::ApiServer).await.unwrap();
    assert_ne!(cluster.pid(Component::ApiServer).unwrap(), pid);
    api.get("before").await.expect("the data is still there");
    api.create(&PostParams::default(), &config_map("after-kill")).await.unwrap();
    seen("after-kill").await;
    assert_eq!(cluster.address(Component::ApiServer).unwrap(), address);
}

#[tokio::test]
async fn paused_etcd_makes_the_api_server_wait_and_resumed_etcd_loses_nothing() {
    let cluster = Cluster::builder().start().await.unwrap();
    let api = config_maps(&cluster).await;

    cluster.pause(Component::Etcd).unwrap();
    let create = tokio::spawn({
        let api = api.clone();
        async move { api.create(&PostParams::default(), &config_map("during-the-pause")).await }
    });
    let waited = tokio::time::timeout(Duration::from_millis(500), async {
        while !create.is_finished() {
            tokio::task::yield_now().await
        }
    });
    waited.await.expect_err("a write was answered while etcd was paused");

    cluster.resume(Component::Etcd).unwrap();
    tokio::time::timeout(TIMEOUT, create).await.expect("the write goes through").unwrap().unwrap();
    api.get("during-the-pause").await.unwrap();
}

#[tokio::test]
async fn expired_watches_are_answered_with_410() {
    let cluster = Cluster::builder().start().await.unwrap();
    let api = config_maps(&cluster).await;
    let created = api.create(&PostParams::default(), &config_map("old")).await.unwrap();
    let version = created.metadata.resource_version.unwrap();

    let first = async || {
        let watch = api.watch(&WatchParams::default().timeout(2), &version).await.unwrap();
        pin!(watch).try_next().await
    };
    assert!(first().await.unwrap().is_none(), "before, nothing has happened since that version");
    cluster.expire_watches().await.unwrap();
    match first().await {
        Ok(Some(WatchEvent::Error(status))) => assert_eq!(status.code, 410, "{status:?}"),
        other => panic!("expected 410 Gone, got {other:?}"),
    }
    api.get("old").await.expect("objects themselves are untouched");
}
