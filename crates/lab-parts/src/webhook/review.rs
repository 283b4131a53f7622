//! AdmissionReviews: what the webhook is asked, and the form of what it answers.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use serde::Deserialize;
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";

/// What somebody wants to do to a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    Eviction,
    Deletion,
    /// Nothing that concerns us.
    Other,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub uid: String,
    pub deed: Deed,
    pub namespace: String,
    pub pod: String,
    pub is_dry_run: bool,
    /// Who asks.
    pub user: String,
    /// On whose behalf, and why, as an Eviction may tell.
    pub requested_by: Option<String>,
    pub reason: Option<String>,
    /// The pod as it is. An eviction does not bring it along.
    pub found: Option<Box<Pod>>,
}

/// Why something is not an AdmissionReview.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no AdmissionReview of {API_VERSION}: {0}")]
pub struct Unreadable(String);

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Review {
    api_version: String,
    kind: String,
    request: Option<Asked>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Asked {
    uid: String,
    operation: String,
    resource: Resource,
    sub_resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user_info: User,
    object: Value,
    old_object: Value,
    dry_run: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Resource {
    group: String,
    resource: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct User {
    username: Option<String>,
}

impl Request {
    pub fn parse(body: &[u8]) -> Result<Request, Unreadable> {
        let review: Review = serde_json::from_slice(body).map_err(|error| Unreadable(error.to_string()))?;
        if (&*review.api_version, &*review.kind) != (API_VERSION, KIND) {
            return Err(Unreadable(format!("it says {:?} of {:?}", review.kind, review.api_version)));
        }
        let asked = review.request.ok_or_else(|| Unreadable("it has no request".into()))?;
        if asked.uid.is_empty() {
            return Err(Unreadable("its request has no uid".into()));
        }
        Ok(Request::of(asked))
    }

    fn of(asked: Asked) -> Request {
        let is_pod = asked.resource.group.is_empty() && asked.resource.resource == "pods";
        let deed = match (&*asked.operation, asked.sub_resource.as_deref().unwrap_or_default()) {
            ("CREATE", "eviction") if is_pod => Deed::Eviction,
            ("DELETE", "") if is_pod => Deed::Deletion,
            _ => Deed::Other,
        };
        let found: Option<Box<Pod>> = match deed {
            Deed::Deletion => serde_json::from_value(asked.old_object).ok().flatten(),
            Deed::Eviction | Deed::Other => None,
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).filter(|text| !text.is_empty());
        // A request to delete several pods names none of them.
        let named = asked.name.filter(|name| !name.is_empty());
        let pod = named
            .or_else(|| text(&asked.object["metadata"]["name"]))
            .or_else(|| found.as_deref().map(ResourceExt::name_any));
        // An eviction can be a dry run by itself.
        let options = &asked.object["deleteOptions"]["dryRun"];
        let is_dry_run = asked.dry_run == Some(true)
            || (deed == Deed::Eviction && options.as_array().is_some_and(|all| !all.is_empty()));
        let annotations = &asked.object["metadata"]["annotations"];
        Request {
            uid: asked.uid,
            deed,
            namespace: asked.namespace.unwrap_or_default(),
            pod: pod.unwrap_or_default(),
            is_dry_run,
            user: asked.user_info.username.unwrap_or_default(),
            requested_by: text(&annotations["requested-by"]),
            reason: text(&annotations["reason"]),
            found,
        }
    }

    /// The answer as the API server wants it. Without a refusal the request is allowed.
    pub(super) fn answer(&self, refusal: Option<&str>) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": refusal.is_none()});
        if let Some(message) = refusal {
            response["status"] = json!({
                "status": "Failure", "code": super::decide::CODE, "reason": "TooManyRequests", "message": message,
            });
        }
        json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
    }
}
