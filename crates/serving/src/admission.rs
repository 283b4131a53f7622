//! AdmissionReviews: reading the request, having it handled, and writing the response for the API server.

use axum::{
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::{MethodRouter, post},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

const API_VERSION: &str = "admission.k8s.io/v1";
const KIND: &str = "AdmissionReview";
/// Twice the size of the largest object.
const LARGEST_BODY: usize = 4 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no AdmissionReview of {API_VERSION}: {0}")]
pub struct InvalidReview(String);

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Review {
    api_version: String,
    kind: String,
    request: Value,
}

/// The uid of a request, and the request.
pub fn parse<R: DeserializeOwned>(body: &[u8]) -> Result<(String, R), InvalidReview> {
    let unreadable = |error: serde_json::Error| InvalidReview(error.to_string());
    let Review { api_version, kind, request } = serde_json::from_slice(body).map_err(unreadable)?;
    if (&*api_version, &*kind) != (API_VERSION, KIND) {
        return Err(InvalidReview(format!("it says {kind:?} of {api_version:?}")));
    }
    if request.is_null() {
        return Err(InvalidReview("it has no request".into()));
    }
    let uid = request["uid"].as_str().filter(|uid| !uid.is_empty()).map(str::to_owned);
    let uid = uid.ok_or_else(|| InvalidReview("its request has no uid".into()))?;
    Ok((uid, serde_json::from_value(request).map_err(unreadable)?))
}

/// The route of a webhook. `handler` returns the Status of a denial, or none if the request is allowed.
pub fn reviewed_by<R, H, F>(handler: H) -> MethodRouter
where
    R: DeserializeOwned + Send + 'static,
    H: Fn(R) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Option<Value>> + Send + 'static,
{
    let review = move |body: Bytes| async move {
        match parse(&body) {
            Ok((uid, request)) => page(StatusCode::OK, &response(&uid, handler(request).await)),
            Err(problem) => page(StatusCode::BAD_REQUEST, &json!({"error": problem.to_string()})),
        }
    };
    post(review).layer(DefaultBodyLimit::max(LARGEST_BODY))
}

/// The Status of a denial that lets the client try again later.
pub fn too_many_requests(message: String) -> Value {
    json!({"status": "Failure", "code": 429, "reason": "TooManyRequests", "message": message})
}

fn response(uid: &str, denial: Option<Value>) -> Value {
    let mut response = json!({"uid": uid, "allowed": denial.is_none()});
    if let Some(status) = denial {
        response["status"] = status;
    }
    json!({"apiVersion": API_VERSION, "kind": KIND, "response": response})
}

fn page(code: StatusCode, body: &Value) -> Response {
    (code, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn review(request: Value) -> String {
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
    }

    /// L32 (HTML for a bad review): a malformed review was answered with a page of HTML.
    #[test]
    fn what_is_no_review_is_not_read_as_one() {
        let old = json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "1"}});
        for body in [
            String::new(),
            "<html>".into(),
            "null".into(),
            "[]".into(),
            "{}".into(),
            "{\"request\":".into(),
            review(json!(null)),
            review(json!({})),
            review(json!({"uid": 5})),
            review(json!({"uid": ""})),
            old.to_string(),
        ] {
            let problem = parse::<Value>(body.as_bytes()).unwrap_err().to_string();
            assert!(problem.starts_with("this is no AdmissionReview of admission.k8s.io/v1: "), "{body}: {problem}");
        }
        let (uid, request) = parse::<Value>(review(json!({"uid": "1"})).as_bytes()).unwrap();
        assert_eq!((uid.as_str(), request), ("1", json!({"uid": "1"})));
    }

    #[test]
    fn responses_have_the_form_that_the_api_server_wants() {
        assert_eq!(
            response("1", Some(too_many_requests("no".into()))),
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
                "uid": "1", "allowed": false,
                "status": {"status": "Failure", "code": 429, "reason": "TooManyRequests", "message": "no"},
            }})
        );
        assert_eq!(response("1", None)["response"], json!({"uid": "1", "allowed": true}));
    }
}
