//! The operator's account, with the rights that it is installed with and no others.

use advisor::access::{self, NAMESPACE, SERVICE_ACCOUNT};
use devcluster::Identity;
use serde_json::{Value, json};

use crate::{
    platform::{Platform, documents, root},
    running::{OPERATOR, eventually},
};

/// One verb on the objects of one name, or on all of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Right {
    pub(crate) role: &'static str,
    pub(crate) namespace: Option<&'static str>,
    pub(crate) group: &'static str,
    /// Its plural, and for a subresource a slash and its name.
    pub(crate) resource: &'static str,
    pub(crate) name: Option<String>,
    pub(crate) verb: &'static str,
}

/// `patch machineconfigs 99-worker-psi-karg`
impl std::fmt::Display for Right {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        self.name.as_ref().map_or(Ok(()), |name| write!(f, " {name}"))
    }
}

/// All that roles grant, taken apart.
pub(crate) fn rights(roles: &[access::Role]) -> Vec<Right> {
    let mut rights = Vec::new();
    for role in roles {
        for rule in &role.rules {
            let names: Vec<_> = match rule.names.as_slice() {
                [] => vec![None],
                names => names.iter().cloned().map(Some).collect(),
            };
            for (name, verb) in names.iter().flat_map(|name| rule.verbs.iter().map(move |verb| (name, *verb))) {
                rights.push(Right {
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
    rights
}

/// The objects in a file of `config/rbac`.
pub(crate) fn shipped(file: &str) -> Vec<Value> {
    documents(&root().join("config/rbac").join(file))
}

impl Platform {
    /// The operator's account. It is installed when it is first asked for.
    pub(crate) async fn operator(&self) -> Identity {
        self.account.get_or_init(|| self.install_account()).await;
        Identity::service_account(NAMESPACE, SERVICE_ACCOUNT)
    }

    async fn install_account(&self) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        self.apply("installer", &namespace, "").await;
        for object in ["service_account.yaml", "role.yaml", "role_binding.yaml"].into_iter().flat_map(shipped) {
            self.apply("installer", &object, "").await;
        }
        // The API server acts on roles a moment after it was told.
        for role in access::operator() {
            let right = rights(&[role]).swap_remove(0);
            eventually("the roles count", async || self.may(OPERATOR, &right).await.then_some(())).await;
        }
    }

    /// Whether somebody has a right, as the API server judges it.
    pub(crate) async fn may(&self, user: &str, right: &Right) -> bool {
        let (resource, subresource) = right.resource.split_once('/').unwrap_or((right.resource, ""));
        let attributes = json!({
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "name": right.name,
            "namespace": right.namespace,
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
