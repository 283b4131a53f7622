//! The audit log tells exactly what was written, by whom, to what.

use devcluster::{Identity, own};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use serde_json::json;

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.into()), ..Default::default() }, ..Default::default() }
}

#[tokio::test]
async fn sees_exactly_the_writes_that_were_made_and_by_whom() {
    let cluster = own().await.unwrap();
    let admin = cluster.access().client().await.unwrap();
    let jane = cluster.access().client_for(&Identity::user("oracle-jane", &["system:masters"])).await.unwrap();
    let mark = cluster.audit().mark(&admin).await.unwrap();

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

    let writes = cluster.audit().writes_since(mark, &admin).await.unwrap();
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

    let all = cluster.audit().since(mark, &admin).await.unwrap();
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
