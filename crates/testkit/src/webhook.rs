//! A validating admission webhook on loopback, with its own certificate.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{FutureExt, future::BoxFuture};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;

use crate::{
    eventually,
    platform::{Platform, path},
    running_operator::OPERATOR,
};

/// Returns the reason why an AdmissionRequest is refused, or none.
type Handler = Arc<dyn Fn(Value) -> BoxFuture<'static, Option<String>> + Send + Sync>;

pub struct Webhook {
    port: u16,
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

    /// Serves until the runtime of the test ends.
    pub async fn handled_by(
        handler: impl Fn(Value) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> Webhook {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (handler, asked): (Handler, _) = (Arc::new(handler), Arc::<AtomicUsize>::default());
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, handler, count) = (acceptor.clone(), handler.clone(), count.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    count.fetch_add(1, Ordering::SeqCst);
                    let _ = answer(BufReader::new(stream), &handler).await;
                });
            }
        });
        Webhook { port, certificate: cert.pem(), asked }
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
                    "url": format!("https://127.0.0.1:{}/", self.port),
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

/// Reads one HTTP request and answers it.
async fn answer<S>(mut stream: BufReader<S>, handler: &Handler) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let mut review: Value = serde_json::from_slice(&body)?;
    let request = review["request"].take();
    let uid = request["uid"].clone();
    let reason = handler(request).await;
    let response = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": uid, "allowed": reason.is_none(), "status": {"message": reason}},
    })
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        response.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(response.as_bytes()).await?;
    stream.shutdown().await
}
