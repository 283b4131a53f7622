//! Anybody can be somebody on the test cluster, and RBAC holds for them.

use devcluster::{Identity, target};
use k8s_openapi::{
    api::{
        authentication::v1::SelfSubjectReview,
        core::v1::{ConfigMap, ServiceAccount},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};

async fn who_am_i(client: kube::Client) -> (String, Vec<String>) {
    let api: Api<SelfSubjectReview> = Api::all(client);
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = review.status.unwrap().user_info.unwrap();
    (user.username.unwrap(), user.groups.unwrap_or_default())
}

#[tokio::test]
async fn a_user_has_the_name_and_the_groups_asked_for() {
    let access = target().await.unwrap();
    let jane = Identity::user("jane", &["team-a", "team-b", "auditors"]);
    let (name, mut groups) = who_am_i(access.client_for(&jane).await.unwrap()).await;
    groups.sort();
    assert_eq!(name, "jane");
    assert_eq!(groups, ["auditors", "system:authenticated", "team-a", "team-b"]);
}

#[tokio::test]
async fn a_service_account_presents_a_token_that_the_api_server_issued() {
    let access = target().await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(access.client().await.unwrap(), "default");
    let robot = ServiceAccount {
        metadata: ObjectMeta { name: Some("robot".into()), ..Default::default() },
        ..Default::default()
    };
    accounts.patch("robot", &PatchParams::apply("test").force(), &Patch::Apply(&robot)).await.unwrap();

    let (name, groups) =
        who_am_i(access.client_for(&Identity::service_account("default", "robot")).await.unwrap()).await;
    assert_eq!(name, "system:serviceaccount:default:robot");
    assert!(groups.contains(&"system:serviceaccounts:default".to_owned()), "{groups:?}");
    accounts.delete("robot", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn a_service_account_that_does_not_exist_is_a_clear_error() {
    let access = target().await.unwrap();
    let error = access.client_for(&Identity::service_account("default", "nobody")).await.err().unwrap();
    assert!(error.to_string().contains("ServiceAccount default/nobody, which must exist"), "{error}");
}

#[tokio::test]
async fn a_user_without_rights_is_refused_with_403() {
    let access = target().await.unwrap();
    let client = access.client_for(&Identity::user("stranger", &[])).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    match api.list(&ListParams::default()).await {
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 403);
            assert!(
                status.message.contains(r#"User "stranger" cannot list resource "configmaps""#),
                "{}",
                status.message
            );
        }
        other => panic!("expected 403, got {other:?}"),
    }
}

#[tokio::test]
async fn kubeconfig_files_work_with_kubectl_and_are_private() {
    use std::os::unix::fs::PermissionsExt;

    let access = target().await.unwrap();
    let who = Identity::user("kubectl-user", &["readers"]);
    let path = access.kubeconfig(&who).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);

    let output = access.kubectl(&who, &["auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"]).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "kubectl-user");
}
