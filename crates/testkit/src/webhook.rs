//! A validating admission webhook on loopback, with its own certificate.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::Router;
use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use serving::{LoopbackServer, admission::reviewed_by};
use tokio::sync::Semaphore;

use crate::{
    eventually,
    platform::{Platform, path},
    running_operator::OPERATOR,
};

pub struct Webhook {
    url: String,
    certificate: String,
    asked: Arc<AtomicUsize>,
}

impl Webhook {
    /// Refuses everything.
    pub async fn start(reason: &'static str) -> Webhook {
        Webhook::handled_by(move |_| async move { Some(reason.to_owned()) }.boxed()).await
    }

    /// Refuses the writes of the operator. Dry runs pass.
    pub async fn against_writes(reason: &'static str) -> Webhook {
        Webhook::handled_by(move |request| {
            let refused = is_write_of_operator(&request);
            async move { refused.then(|| reason.to_owned()) }.boxed()
        })
        .await
    }

    /// `handler` returns the reason why an AdmissionRequest is refused, or none. Serves until the runtime of the test ends.
    pub async fn handled_by(
        handler: impl Fn(Value) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> Webhook {
        let server = LoopbackServer::bind().await.unwrap();
        let (handler, asked) = (Arc::new(handler), Arc::<AtomicUsize>::default());
        let (url, certificate, count) = (server.url("/"), server.certificate().to_owned(), asked.clone());
        let review = reviewed_by(move |request: Value| {
            count.fetch_add(1, Ordering::SeqCst);
            handler(request).map(|reason| reason.map(|reason| json!({"message": reason})))
        });
        tokio::spawn(server.run(Router::new().route("/", review)));
        Webhook { url, certificate, asked }
    }

    /// Installs the webhook for the kind of an object, and waits until the API server calls it.
    pub async fn protect(&self, platform: &Platform, object: &Value) {
        let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
        let plural = format!("{}s", object["kind"].as_str().unwrap().to_lowercase());
        platform.apply("admin", &self.configuration(&plural, group), "").await;
        eventually("the webhook is asked", async || self.is_asked(platform, object).await.then_some(())).await;
    }

    /// Removes the webhook, and waits until the API server no longer calls it.
    pub async fn lift(&self, platform: &Platform, object: &Value) {
        platform.delete(&self.configuration("", "")).await;
        let probe = async || (!self.is_asked(platform, object).await).then_some(());
        eventually("the webhook is no longer asked", probe).await;
    }

    async fn is_asked(&self, platform: &Platform, object: &Value) -> bool {
        let before = self.asked.load(Ordering::SeqCst);
        let uri = format!("{}?fieldManager=probe&force=true&dryRun=All", path(object));
        let probe = http::Request::patch(uri).header("content-type", "application/apply-patch+yaml");
        let probe = probe.body(object.to_string().into_bytes()).unwrap();
        let _: Result<Value, _> = platform.client.request(probe).await;
        self.asked.load(Ordering::SeqCst) > before
    }

    pub fn configuration(&self, plural: &str, group: &str) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "frozen"},
            "webhooks": [{
                "name": "frozen.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "namespaceSelector": {},
                "objectSelector": {},
                "timeoutSeconds": 10,
                "clientConfig": {
                    "url": self.url,
                    "caBundle": BASE64_STANDARD.encode(&self.certificate),
                },
                "rules": [{
                    "apiGroups": [group],
                    "apiVersions": ["*"],
                    "operations": ["*"],
                    "resources": [plural],
                    "scope": "*",
                }],
            }],
        })
    }
}

/// Lets dry runs pass, and holds the writes of the operator until it is opened.
pub struct Gate {
    pub webhook: Webhook,
    held: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub async fn closed() -> Gate {
        let (held, open) = (Arc::<AtomicUsize>::default(), Arc::new(Semaphore::new(0)));
        let (count, entrance) = (held.clone(), open.clone());
        let webhook = Webhook::handled_by(move |request| {
            let (count, entrance) = (count.clone(), entrance.clone());
            async move {
                if is_write_of_operator(&request) {
                    count.fetch_add(1, Ordering::SeqCst);
                    let _permit = entrance.acquire().await;
                }
                None
            }
            .boxed()
        })
        .await;
        Gate { webhook, held, open }
    }

    /// Waits until a write of the operator is held.
    pub async fn reached(&self) {
        let probe = async || (self.held.load(Ordering::SeqCst) > 0).then_some(());
        eventually("the operator writes", probe).await;
    }

    pub fn open(&self) {
        self.open.add_permits(1);
    }
}

fn is_write_of_operator(request: &Value) -> bool {
    request["userInfo"]["username"] == OPERATOR && request["dryRun"] != true
}
