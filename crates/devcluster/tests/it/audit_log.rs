//! The audit log tells exactly what was written, by whom, to what.

use std::pin::pin;

use devcluster::{AuditedRequest, Cluster, Component, Identity, own};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::json;
use tokio::task::JoinHandle;

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, ..Default::default() }
}

#[tokio::test]
async fn sees_exactly_the_writes_that_were_made_and_by_whom() {
    let cluster = own().await.unwrap();
    let admin = cluster.access().client().await.unwrap();
    let jane = cluster.access().client_for(&Identity::user("oracle-jane", &["system:masters"])).await.unwrap();
    let position = cluster.audit().position(&admin).await.unwrap();

    let mine: Api<ConfigMap> = Api::namespaced(admin.clone(), "default");
    let hers: Api<ConfigMap> = Api::namespaced(jane, "default");
    mine.create(&PostParams::default(), &config_map("oracle")).await.unwrap();
    mine.get("oracle").await.unwrap();
    let apply = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}));
    hers.patch("oracle", &PatchParams::apply("her-tool").dry_run(), &apply).await.unwrap();
    hers.patch("oracle", &PatchParams::apply("her-tool"), &apply).await.unwrap();
    hers.list(&ListParams::default()).await.unwrap();
    hers.create(&PostParams::default(), &config_map("oracle")).await.expect_err("exists already");
    mine.delete("oracle", &DeleteParams::default()).await.unwrap();

    let writes = cluster.audit().writes_since(position, &admin).await.unwrap();
    let writes: Vec<_> = writes.into_iter().filter(|request| request.name == "oracle").collect();
    let lines: Vec<_> = writes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "create configmaps default/oracle by admin: 201",
            "patch configmaps default/oracle by oracle-jane: 200",
            "create configmaps default/oracle by oracle-jane: 409",
            "delete configmaps default/oracle by admin: 200",
        ]
    );
    assert_eq!(writes[1].field_manager.as_deref(), Some("her-tool"));

    let all = cluster.audit().since(position, &admin).await.unwrap();
    let reads: Vec<_> = all
        .iter()
        .filter(|request| request.uri.contains("/oracle") && !request.is_write())
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        reads,
        [
            "get configmaps default/oracle by admin: 200",
            "patch configmaps default/oracle (dry run) by oracle-jane: 200"
        ]
    );
}

/// Deletes many objects with one request, and returns when a watch tells of the first: long before the request is answered.
async fn begin_long_deletion(client: &Client) -> JoinHandle<()> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let all = ListParams::default().labels("many=yes");
    for number in 0..100 {
        let mut map = config_map(&format!("many-{number}"));
        map.metadata.labels = Some([("many".to_owned(), "yes".to_owned())].into());
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let version = maps.list(&all).await.unwrap().metadata.resource_version.unwrap();
    let mut events = pin!(maps.watch(&WatchParams::default().labels("many=yes"), &version).await.unwrap());
    let everywhere = maps.clone();
    let deletion =
        tokio::spawn(async move { drop(everywhere.delete_collection(&DeleteParams::default(), &all).await) });
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Deleted(_)))));
    deletion
}

fn deletions(requests: &[AuditedRequest]) -> Vec<String> {
    requests.iter().filter(|request| request.verb == "deletecollection").map(ToString::to_string).collect()
}

#[tokio::test]
async fn what_a_watch_told_is_waited_for_and_lies_on_the_right_side_of_a_position() {
    let cluster = own().await.unwrap();
    let admin = cluster.access().client().await.unwrap();
    let before = cluster.audit().position(&admin).await.unwrap();
    let deletion = begin_long_deletion(&admin).await;
    let after = cluster.audit().position(&admin).await.unwrap();
    for (position, expected) in [(before, vec!["deletecollection configmaps default by admin: 200"]), (after, vec![])] {
        assert_eq!(deletions(&cluster.audit().writes_since(position, &admin).await.unwrap()), expected);
    }
    deletion.await.unwrap();
}

#[tokio::test]
async fn what_a_dead_api_server_left_unanswered_is_not_waited_for() {
    let cluster = Cluster::builder().start().await.unwrap();
    let admin = cluster.access().client().await.unwrap();
    let position = cluster.audit().position(&admin).await.unwrap();
    let deletion = begin_long_deletion(&admin).await;
    cluster.kill(Component::ApiServer).unwrap();
    cluster.start(Component::ApiServer).await.unwrap();
    cluster.audit().writes_since(position, &admin).await.expect("only what can still be answered is waited for");
    deletion.abort();
}
