//! Records the requests to the real API server and its answers. One request is sent at a time, so that their order is known.

use std::sync::Arc;

use http::{Method, Request, Response, header};
use hyper::body::Bytes;
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::sync::Mutex;

#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) method: Method,
    pub(crate) uri: String,
    pub(crate) content: String,
    pub(crate) accept: String,
    pub(crate) body: Value,
    pub(crate) code: u16,
    pub(crate) answer: Value,
}

#[derive(Clone)]
pub(crate) struct Recorder {
    pub(crate) real: Client,
    recorded: Arc<Mutex<Vec<Exchange>>>,
}

impl Recorder {
    pub(crate) fn new(real: Client) -> Recorder {
        Recorder { real, recorded: Arc::default() }
    }

    pub(crate) async fn exchanges(&self) -> Vec<Exchange> {
        self.recorded.lock().await.clone()
    }

    /// A client whose requests are recorded, except watches.
    pub(crate) fn client(&self) -> Client {
        let recorder = self.clone();
        let service = tower::service_fn(move |request| {
            let recorder = recorder.clone();
            async move { recorder.pass(request).await }
        });
        Client::new(service, "default")
    }

    async fn pass(&self, request: Request<Body>) -> Result<Response<Body>, kube::Error> {
        if request.uri().query().is_some_and(|query| query.contains("watch=")) {
            return self.real.send(request).await;
        }
        let mut recorded = self.recorded.lock().await;
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
        let mut exchange = Exchange {
            method: parts.method.clone(),
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            content: text(header::CONTENT_TYPE),
            accept: text(header::ACCEPT),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            code: 0,
            answer: Value::Null,
        };
        let answer = self.real.send(Request::from_parts(parts, Body::from(body))).await?;
        let (parts, body) = answer.into_parts();
        let body: Bytes = body.collect_bytes().await?;
        exchange.code = parts.status.as_u16();
        exchange.answer =
            serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into_owned().into());
        recorded.push(exchange);
        drop(recorded);
        let body = kube::client::Body::from(body);
        Ok(Response::from_parts(parts, body))
    }

    /// Sends a request and returns the answer, also a refusal.
    pub(crate) async fn send(&self, method: Method, uri: &str, content: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let mut request = Request::builder().method(method).uri(uri);
        if !content.is_empty() {
            request = request.header(header::CONTENT_TYPE, content);
        }
        let answer = self.client().send(request.body(Body::from(body)).unwrap()).await.unwrap();
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.unwrap();
        (code, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Reads an object without recording it.
    pub(crate) async fn peek(&self, uri: &str) -> Value {
        let request = Request::get(uri).body(Vec::new()).unwrap();
        self.real.request(request).await.unwrap_or_default()
    }
}
