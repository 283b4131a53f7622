//! A server for tests that answers as Prometheus and the API server do.

use std::sync::{Arc, Mutex};

use axum::{
    Router,
    extract::Request,
    http::header::{AUTHORIZATION, CONTENT_TYPE},
};
use rustls::ServerConfig;
use serde_json::Value;
use tokio::task::JoinHandle;

/// What was asked for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    /// The argument of this name, if there is one.
    pub(super) query: String,
    pub(super) authorization: Option<String>,
}

/// Answers until it is dropped.
pub(super) struct TestServer {
    pub(super) url: String,
    pub(super) asked: Arc<Mutex<Vec<Asked>>>,
    task: JoinHandle<()>,
}

impl TestServer {
    pub(super) async fn start(answer: impl Fn(&Asked) -> Value + Clone + Send + Sync + 'static) -> Self {
        Self::serve(answer, None).await
    }

    /// The same behind TLS, and the certificate to trust, in PEM.
    pub(super) async fn start_secure(
        answer: impl Fn(&Asked) -> Value + Clone + Send + Sync + 'static,
    ) -> (Self, String) {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let tls =
            serving::tls_config(vec![made.cert.der().clone()], made.signing_key.serialize_der().try_into().unwrap())
                .unwrap();
        (Self::serve(answer, Some(tls)).await, made.cert.pem())
    }

    async fn serve(
        answer: impl Fn(&Asked) -> Value + Clone + Send + Sync + 'static,
        tls: Option<Arc<ServerConfig>>,
    ) -> Self {
        let listener = serving::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let router = Self::router(asked.clone(), answer);
        let task = tokio::spawn(async move {
            serving::accept(listener, move || tls.clone(), router, serving::Limits::STRANGERS).await;
        });
        TestServer { url, asked, task }
    }

    fn router(all: Arc<Mutex<Vec<Asked>>>, answer: impl Fn(&Asked) -> Value + Clone + Send + Sync + 'static) -> Router {
        Router::new().fallback(move |request: Request| {
            let arguments = request.uri().query().unwrap_or_default();
            let query = form_urlencoded::parse(arguments.as_bytes()).find(|(name, _)| name == "query");
            let header = |value: &axum::http::HeaderValue| value.to_str().unwrap().to_owned();
            let asked = Asked {
                path: request.uri().path().to_owned(),
                query: query.map(|(_, query)| query.into_owned()).unwrap_or_default(),
                authorization: request.headers().get(AUTHORIZATION).map(header),
            };
            all.lock().unwrap().push(asked.clone());
            let body = answer(&asked).to_string();
            async move { ([(CONTENT_TYPE, "application/json")], body) }
        })
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}
