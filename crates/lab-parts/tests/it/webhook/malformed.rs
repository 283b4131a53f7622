//! Malformed admission reviews.

use super::*;

pub(super) async fn reviews_are_refused(webhook: &Webhook) {
    let mut config = kube::Config::new(format!("https://{}", webhook.address()).parse().unwrap());
    config.accept_invalid_certs = true;
    config.proxy_url = None;
    let client = Client::try_from(config).unwrap();
    let send = async |method: &str, path: &str, body: &str| {
        let request = http::Request::builder().method(method).uri(path).body(body.as_bytes().to_vec().into()).unwrap();
        let (head, body) = client.send(request).await.unwrap().into_parts();
        let body = axum::body::to_bytes(axum::body::Body::new(body), usize::MAX).await.unwrap();
        (head.status.as_u16(), String::from_utf8_lossy(&body).into_owned())
    };
    for path in ["/validate", "/mutate"] {
        for body in ["", "<html>", "{}", "[1]", r#"{"request":{"uid":""}}"#] {
            let (code, said) = send("POST", path, body).await;
            assert_eq!(code, 400, "{body}: {said}");
            let said: Value = serde_json::from_str(&said).unwrap();
            assert!(said["error"].as_str().unwrap().starts_with("this is no AdmissionReview"), "{said}");
        }
    }
    let other = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "x"}});
    let (code, said) = send("POST", "/validate", &other.to_string()).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((code, &said["response"]), (200, &json!({"uid": "x", "allowed": true})));
    assert_eq!(send("GET", "/validate", "").await.0, 405);
    assert_eq!(send("GET", "/nowhere", "").await.0, 404);
    assert_eq!(send("GET", "/health", "").await, (200, "{\"status\":\"healthy\"}\n".to_owned()));
}
