//! The operator's service account with the permissions of `config/rbac`, and no others.

use advisor::access::{self, NAMESPACE, SERVICE_ACCOUNT};
use devcluster::Identity;
use serde_json::json;

use crate::{eventually, files::rbac_documents, platform::Platform, running_operator::OPERATOR};

/// One verb on the object of a name, or on all of a kind.
#[derive(Debug, Clone)]
pub struct Permission {
    pub role: &'static str,
    pub namespace: Option<&'static str>,
    pub group: &'static str,
    /// The plural name; for a subresource followed by a slash and its name.
    pub resource: &'static str,
    pub name: Option<String>,
    pub verb: &'static str,
}

/// `patch machineconfigs 99-worker-psi-karg`
impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

/// What roles grant, one verb and one name at a time.
pub fn permissions(roles: &[access::Role]) -> Vec<Permission> {
    let mut permissions = Vec::new();
    for role in roles {
        for rule in &role.rules {
            let names: Vec<_> = match rule.names.as_slice() {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for (name, verb) in names.iter().flat_map(|name| rule.verbs.iter().map(move |verb| (name, *verb))) {
                permissions.push(Permission {
                    role: role.name,
                    namespace: role.namespace,
                    group: rule.group,
                    resource: rule.resource,
                    name: name.clone(),
                    verb,
                });
            }
        }
    }
    permissions
}

impl Platform {
    /// The operator's service account. The first call installs it.
    pub async fn operator(&self) -> Identity {
        self.account.get_or_init(|| self.install_account()).await;
        Identity::service_account(NAMESPACE, SERVICE_ACCOUNT)
    }

    async fn install_account(&self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.apply("installer", &namespace, "").await;
        for object in ["service_account.yaml", "role.yaml", "role_binding.yaml"].into_iter().flat_map(rbac_documents) {
            self.apply("installer", &object, "").await;
        }
        // The API server knows new roles with a delay.
        for role in access::operator() {
            let permission = permissions(&[role]).swap_remove(0);
            eventually("the roles are known", async || self.may(OPERATOR, &permission).await.then_some(())).await;
        }
    }

    /// Whether a user has a permission, by a SubjectAccessReview.
    pub async fn may(&self, user: &str, permission: &Permission) -> bool {
        let (resource, subresource) = permission.resource.split_once('/').unwrap_or((permission.resource, ""));
        let attributes = json!({
            "verb": permission.verb,
            "group": permission.group,
            "resource": resource,
            "subresource": subresource,
            "name": permission.name,
            "namespace": permission.namespace,
        });
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": attributes},
        });
        let uri = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        self.request("POST", uri, Some("application/json"), review).await["status"]["allowed"] == true
    }
}
