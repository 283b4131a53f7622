//! The port of the metrics of an operator that runs as a process of its own: who may read them, and what a real Prometheus reads.

mod access;
mod gathered;
mod prometheus;

use std::{net::TcpListener, path::Path};

use advisor::monitoring::SERVICE;
use base64::{Engine, prelude::BASE64_STANDARD};
use devcluster::{CertificateAndKey, Cluster};
use kube::{Client, Config};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::poll;

use crate::replica::{Replica, SHORT_LEASE, TIMEOUT, grant, prepare, request};

/// The operator's user in these tests.
const USER: &str = "operator";
const NAMESPACE: &str = "openshift-cnv";

/// A cluster, an operator that serves metrics with a certificate of a CA of ours, and accounts that ask for them.
struct Site {
    cluster: Cluster,
    client: Client,
    replica: Replica,
    /// Where the metrics are served, as `127.0.0.1:12345`.
    address: String,
    certificates: TempDir,
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Site {
    async fn start() -> Site {
        let cluster = Cluster::builder().start().await.unwrap();
        let client = prepare(&cluster, "DryRun").await;
        grant(&client, &[USER]).await;
        for (account, role) in
            [("reader", Some("metrics-reader")), ("stranger", None), ("boss", Some("log-level-editor"))]
        {
            create(&client, &format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), account, json!({})).await;
            let Some(role) = role else { continue };
            let binding = json!({
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
            });
            create(&client, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", account, binding).await;
        }
        let (certificates, ca) = (tempfile::tempdir().unwrap(), new_ca("first"));
        write_certificate(certificates.path(), &ca);
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let flags = [
            format!("--metrics-bind-address={address}"),
            format!("--metrics-cert-dir={}", certificates.path().display()),
        ];
        let flags: Vec<&str> = flags.iter().map(String::as_str).chain(SHORT_LEASE).collect();
        let replica = Replica::start(&cluster, USER, &flags).await;
        Site { cluster, client, replica, address, certificates, ca }
    }

    async fn token(&self, account: &str) -> String {
        let uri = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token");
        let answer = request(&self.client, "POST", &uri, "application/json", json!({"spec": {}})).await.unwrap();
        answer["status"]["token"].as_str().unwrap().to_owned()
    }

    /// What is answered to somebody who trusts a CA and nobody else.
    async fn ask(&self, ca: &str, who: &Credentials, method: &str, path: &str, body: &str) -> Result<Answer, String> {
        let mut config = Config::new(format!("https://{}", self.address).parse().unwrap());
        config.root_cert = Some(vec![der(ca)]);
        config.default_retry = false;
        match who {
            Credentials::Nothing => {}
            Credentials::Token(token) => config.auth_info.token = Some(token.clone().into()),
            Credentials::Certificate(pair) => {
                config.auth_info.client_certificate_data = Some(BASE64_STANDARD.encode(&pair.certificate));
                config.auth_info.client_key_data = Some(BASE64_STANDARD.encode(&pair.key).into());
            }
        }
        let client = Client::try_from(config).unwrap();
        let request = http::Request::builder().method(method).uri(path).body(body.as_bytes().to_vec().into()).unwrap();
        let answer = client.send(request).await.map_err(|error| format!("{error:?}"))?;
        let content_type = answer.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let code = answer.status().as_u16();
        let body = answer.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
        Ok(Answer { code, content_type, text: String::from_utf8_lossy(&body).into_owned() })
    }

    /// The same, when the answer is sure to come.
    async fn get(&self, who: &Credentials, path: &str) -> Answer {
        self.ask(&self.ca.pem(), who, "GET", path, "").await.unwrap()
    }

    /// Waits until the metrics of a configuration are served, and returns them.
    async fn metrics(&self, who: &Credentials, contain: &str) -> String {
        let served = async || match self.ask(&self.ca.pem(), who, "GET", "/metrics", "").await {
            Ok(answer) if answer.code == 200 && answer.text.contains(contain) => Ok(answer.text),
            answer => Err(answer),
        };
        let served = poll(TIMEOUT, served).await;
        served.unwrap_or_else(|answer| panic!("no {contain}: {answer:?}\n{}", self.replica.process.log_tail()))
    }
}

#[derive(Debug)]
struct Answer {
    code: u16,
    content_type: Option<String>,
    text: String,
}

enum Credentials {
    Nothing,
    Token(String),
    Certificate(CertificateAndKey),
}

async fn create(client: &Client, uri: &str, name: &str, mut object: Value) {
    object["metadata"] = json!({"name": name});
    request(client, "POST", uri, "application/json", object).await.unwrap();
}

fn new_ca(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Writes a certificate for loopback, as a kubelet writes the files of a Secret.
fn write_certificate(folder: &Path, ca: &CertifiedIssuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let names = vec!["127.0.0.1".to_owned(), format!("{SERVICE}.{NAMESPACE}.svc")];
    let params = CertificateParams::new(names).unwrap();
    std::fs::write(folder.join("tls.crt"), params.signed_by(&key, ca).unwrap().pem()).unwrap();
    std::fs::write(folder.join("tls.key"), key.serialize_pem()).unwrap();
}

fn der(pem: &str) -> Vec<u8> {
    let base64: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    BASE64_STANDARD.decode(base64).unwrap()
}
