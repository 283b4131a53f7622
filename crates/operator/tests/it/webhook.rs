//! An admission webhook that refuses everything, on loopback with a certificate of its own.

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

pub(crate) struct Webhook {
    port: u16,
    certificate: String,
}

impl Webhook {
    /// Serves until the runtime of the test ends.
    pub(crate) async fn start(reason: &'static str) -> Webhook {
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
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = refuse(BufReader::new(stream), reason).await;
                });
            }
        });
        Webhook { port, certificate: cert.pem() }
    }

    pub(crate) fn configuration(&self, plural: &str, group: &str) -> Value {
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
                "rules": [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["*"], "resources": [plural], "scope": "*"}],
            }],
        })
    }
}

/// Reads one HTTP request and answers it.
async fn refuse<S>(mut stream: BufReader<S>, reason: &str) -> std::io::Result<()>
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
    let review: Value = serde_json::from_slice(&body)?;
    let response = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": review["request"]["uid"], "allowed": false, "status": {"message": reason}},
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
