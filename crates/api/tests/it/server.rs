//! Plain requests to an API server: a method, a path and a body, and the answer as it is.

use devcluster::Access;
use http::{Method, Request};
use kube::{Client, client::Body};
use serde_json::Value;
use tokio::sync::OnceCell;
use virt_advisor_api::crd;

use crate::{
    manifest::{Change, Manifest},
    table::from_yaml,
};

const YAML: &str = "application/yaml";
const MERGE_PATCH: &str = "application/merge-patch+json";

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: u16,
    pub(crate) body: Value,
    pub(crate) warnings: Vec<String>,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }

    /// What the server says about a request that it refused.
    pub(crate) fn message(&self) -> &str {
        self.body["message"].as_str().unwrap_or_default()
    }
}

pub(crate) struct Server(pub(crate) Client);

impl Server {
    /// The server that all tests of this binary share, with all kinds installed. It may be an existing cluster: send only dry runs.
    pub(crate) async fn shared() -> Self {
        Server(Self::shared_access().await.client().await.unwrap())
    }

    pub(crate) async fn shared_access() -> &'static Access {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        let access = devcluster::target().await.unwrap_or_else(|error| panic!("{error}"));
        INSTALLED.get_or_init(async || access.install_crds(&crd::crds()).await.unwrap()).await;
        access
    }

    pub(crate) async fn send(&self, method: Method, path: &str, content: &str, body: String) -> Answer {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content);
        let response = self.0.send(request.body(Body::from(body.into_bytes())).unwrap()).await.unwrap();
        let warnings = response.headers().get_all("Warning").iter();
        let warnings = warnings.map(|warning| warning.to_str().unwrap().to_owned()).collect();
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.unwrap();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        Answer { code, body, warnings }
    }

    pub(crate) async fn create(&self, manifest: &Manifest) -> Answer {
        self.send(Method::POST, manifest.kind.path, YAML, manifest.yaml()).await
    }

    /// The result of a dry run that creates the manifest or, if it exists, replaces it. Validation is the same for both.
    pub(crate) async fn dry_run(&self, manifest: &Manifest, validation: &str) -> Answer {
        let path = manifest.kind.path;
        let query = format!("dryRun=All&fieldValidation={validation}");
        let answer = self.send(Method::POST, &format!("{path}?{query}"), YAML, manifest.yaml()).await;
        if answer.body["reason"] != "AlreadyExists" {
            return answer;
        }
        let path = format!("{path}/{}", manifest.name);
        let there = self.send(Method::GET, &path, YAML, String::new()).await.body;
        let metadata = format!("resourceVersion: {}, {}", there["metadata"]["resourceVersion"], manifest.metadata);
        let manifest = manifest.clone().with_metadata(&metadata);
        self.send(Method::PUT, &format!("{path}?{query}"), YAML, manifest.yaml()).await
    }

    /// The result of a dry run that changes an object.
    pub(crate) async fn dry_run_change(&self, change: &Change, validation: &str) -> Answer {
        let path = format!("{}?dryRun=All&fieldValidation={validation}", change.path());
        self.send(Method::PATCH, &path, MERGE_PATCH, from_yaml(&change.yaml).to_string()).await
    }
}
