//! The approval policy on a real API server: what it refuses to whom and in which words, and how the operator keeps it.

mod edits;
mod keeping;
mod life;
mod page;
mod race;
mod requests;
mod timing;

use advisor::admission;
use devcluster::Identity;
use kube::{Client, core::Status};
use serde_json::{Value, json};
use testkit::{
    configs::config,
    eventually,
    files::{documents, rbac_documents, root},
    platform::{LOAD_AWARE, Platform, path},
};

const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// Two digests of plans.
fn plan_a() -> String {
    "a".repeat(64)
}

fn plan_b() -> String {
    "b".repeat(64)
}

/// Somebody who has the role of that name.
fn person(name: &str) -> Identity {
    Identity::user(name, &[])
}

/// Somebody who may do everything that RBAC can allow.
fn boss() -> Identity {
    Identity::user("boss", &["system:masters"])
}

/// The operator of an installation, as the policy of `config/admission` knows it.
fn writer() -> Identity {
    Identity::user(&admission::installed_operator(), &["system:masters"])
}

/// An approval as its author would write it.
fn approved(who: &str, plan: &str) -> Value {
    json!({"action": "Apply", "approval": {"planDigest": plan, "approvedBy": who}})
}

/// A cluster with our definition and the roles for people.
async fn cluster() -> Platform {
    let platform = Platform::with(&[]).await;
    platform.install().await;
    install_people(&platform).await;
    platform
}

/// Installs the roles for people, each bound to a user of its name.
async fn install_people(platform: &Platform) {
    let mut roles = rbac_documents("user_roles.yaml");
    // Approves the plans of one profile only.
    let mut one = roles[2].clone();
    one["metadata"]["name"] = "virtplatformconfig-density-approver-role".into();
    one["rules"][0]["verbs"] = json!(["approve"]);
    one["rules"][0]["resourceNames"] = json!(["virt-higher-density"]);
    roles.push(one);
    for role in roles {
        platform.apply("installer", &role, "").await;
        let name = role["metadata"]["name"].as_str().unwrap();
        let user = name.trim_start_matches("virtplatformconfig-").trim_end_matches("-role");
        bind(platform, name, user).await;
    }
    bind(platform, "virtplatformconfig-editor-role", "density-approver").await;
    for (user, name) in [("approver", LOAD_AWARE), ("admin", LOAD_AWARE), ("density-approver", "virt-higher-density")] {
        eventually("the roles count", async || can_approve(platform, user, name).await.then_some(())).await;
    }
}

async fn bind(platform: &Platform, role: &str, user: &str) {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": format!("{role}-{user}")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    });
    platform.apply("installer", &binding, "").await;
}

/// What `kubectl auth can-i` answers.
async fn can_approve(platform: &Platform, user: &str, profile: &str) -> bool {
    let object = format!("virtplatformconfigs.advisor.kubevirt.io/{profile}");
    let access = platform.cluster.access();
    let output = access.kubectl(&person(user), &["auth", "can-i", "approve", &object]).await.unwrap();
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(!warning.contains("is not a known verb"), "{warning}");
    String::from_utf8_lossy(&output.stdout).trim() == "yes"
}

/// Installs what `config/admission` ships.
async fn install_policies(platform: &Platform) {
    for object in ["policies.yaml", "bindings.yaml"].into_iter().flat_map(shipped) {
        put(platform, &object).await;
    }
    until_enforced(platform).await;
}

fn shipped(file: &str) -> Vec<Value> {
    documents(&root().join("config/admission").join(file))
}

/// Applies a policy or a binding.
async fn put(platform: &Platform, object: &Value) {
    let uri = format!("{}?fieldManager=installer&force=true&fieldValidation=Strict", admission::path(object));
    platform.request("PATCH", &uri, Some(APPLY), object.clone()).await;
}

/// Waits until both policies are in effect: an API server takes them over with a delay.
async fn until_enforced(platform: &Platform) {
    let boss = Person::new(platform, &boss()).await;
    let is_refusal = |status: &Status| status.code == 403;
    let probe = config("example-profile", json!({"action": "Apply"}));
    eventually("unread plans are refused", async || {
        boss.try_out(&probe).await.err().filter(|status| is_refusal(status))
    })
    .await;
    // An operator that runs may have created it, and would create it again.
    let created = boss.create(&config("example-profile", json!({"action": "Ignore"}))).await;
    let status = json!({"status": {"phase": "Ignored"}});
    eventually("forged statuses are refused", async || {
        boss.patch_status(&probe, &status, "?dryRun=All").await.err().filter(|status| is_refusal(status))
    })
    .await;
    if created.is_ok() {
        platform.delete(&probe).await;
    }
}

/// A client of somebody.
struct Person {
    client: Client,
}

impl Person {
    async fn new(platform: &Platform, who: &Identity) -> Person {
        Person { client: platform.cluster.access().client_for(who).await.unwrap() }
    }

    async fn send(&self, method: &str, uri: &str, content: &str, body: &Value) -> Result<Value, Box<Status>> {
        let request = http::Request::builder().method(method).uri(uri).header("content-type", content);
        match self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await {
            Ok(answer) => Ok(answer),
            Err(kube::Error::Api(status)) => Err(status),
            Err(error) => panic!("{method} {uri}: {error}"),
        }
    }

    async fn create(&self, object: &Value) -> Result<Value, Box<Status>> {
        let collection = path(object);
        let (collection, _) = collection.rsplit_once('/').unwrap();
        self.send("POST", collection, JSON, object).await
    }

    /// A creation that is a dry run.
    async fn try_out(&self, object: &Value) -> Result<Value, Box<Status>> {
        let collection = path(object);
        let (collection, _) = collection.rsplit_once('/').unwrap();
        self.send("POST", &format!("{collection}?dryRun=All"), JSON, object).await
    }

    async fn patch(&self, object: &Value, patch: &Value) -> Result<Value, Box<Status>> {
        self.send("PATCH", &path(object), MERGE, patch).await
    }

    async fn patch_status(&self, object: &Value, patch: &Value, query: &str) -> Result<Value, Box<Status>> {
        self.send("PATCH", &format!("{}/status{query}", path(object)), MERGE, patch).await
    }
}

/// A status with a plan, as far as approvals need it.
fn planned(digest: &str) -> Value {
    json!({"status": {"phase": "ReviewRequired", "planDigest": digest}})
}
