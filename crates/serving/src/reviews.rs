//! Asks the API server who has a token, and what that user may do.

use std::time::Duration;

use axum::http::Method;
use kube_io::ApiServer;
use serde_json::{Value, json};

use crate::authorize::{Reviews, User};

/// Prometheus waits ten seconds for an answer by default.
const DEADLINE: Duration = Duration::from_secs(4);

#[derive(Debug)]
pub(crate) struct ApiReviews(ApiServer);

impl ApiReviews {
    pub(crate) fn new(api_server: &ApiServer) -> Self {
        // A slow authenticator behind the API server must not slow down the lease and the reconcilers.
        ApiReviews(api_server.detached().with_deadline(DEADLINE))
    }

    async fn post(&self, group: &str, plural: &str, review: &Value, doing: &str) -> Result<Value, String> {
        let uri = format!("/apis/{group}/v1/{plural}");
        let answer = self.0.send_body(Method::POST, uri, "application/json", review, doing.to_owned()).await;
        answer.map(|mut answer| answer["status"].take()).map_err(|error| error.to_string())
    }
}

impl Reviews for ApiReviews {
    async fn token(&self, token: &str) -> Result<Option<User>, String> {
        let group = "authentication.k8s.io";
        let review = json!({"apiVersion": format!("{group}/v1"), "kind": "TokenReview", "spec": {"token": token}});
        let status = self.post(group, "tokenreviews", &review, "reviewing a token").await?;
        Ok(user(&status))
    }

    async fn access(&self, user: &User, path: &str, verb: &str) -> Result<bool, String> {
        let group = "authorization.k8s.io";
        let mut spec = user.review.clone();
        spec["nonResourceAttributes"] = json!({"path": path, "verb": verb});
        let review = json!({"apiVersion": format!("{group}/v1"), "kind": "SubjectAccessReview", "spec": spec});
        let doing = format!("asking whether {} may {verb} {path}", user.name);
        let status = self.post(group, "subjectaccessreviews", &review, &doing).await?;
        Ok(status["allowed"] == true)
    }
}

/// The user of a token, from the status of its review.
fn user(status: &Value) -> Option<User> {
    let found = &status["user"];
    let name = found["username"].as_str().filter(|name| !name.is_empty() && status["authenticated"] == true)?;
    let mut review = json!({"user": name});
    for field in ["uid", "groups", "extra"] {
        if !found[field].is_null() {
            review[field] = found[field].clone();
        }
    }
    Some(User { name: name.to_owned(), review })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_authenticated_user_with_a_name_is_one() {
        let known = json!({"username": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}});
        let review = json!({"user": "u", "uid": "1", "groups": ["g"], "extra": {"k": ["v"]}});
        let cases = [
            (json!({"authenticated": true, "user": known}), Some(review)),
            (json!({"authenticated": true, "user": {"username": "u"}}), Some(json!({"user": "u"}))),
            (json!({"authenticated": false, "user": known}), None),
            (json!({"user": known}), None),
            (json!({"authenticated": true, "user": {"username": ""}}), None),
            (json!({"authenticated": true}), None),
            (json!({"error": "invalid bearer token"}), None),
            (Value::Null, None),
        ];
        for (status, expected) in cases {
            assert_eq!(user(&status).map(|user| user.review), expected, "{status}");
        }
    }
}
