//! A cluster that looks like OpenShift Virtualization to the operator: the definitions and objects of third parties.

use advisor::{Plan, profiles, writing::Lock};
use api::virt_platform_config::Options;
use devcluster::{Cluster, Identity};
use kube::Client;
use kube_io::ApiServer;
use operator::{PlanError, make_plan, write};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::{
    files::{sample_documents, third_party_definitions},
    shared::ReusableCluster,
};

/// How often a request is sent whose connection is lost.
const TRIES: usize = 3;

pub const LOAD_AWARE: &str = "load-aware-rebalancing";
pub const DENSITY: &str = "virt-higher-density";

pub struct Platform {
    pub cluster: ReusableCluster,
    pub client: Client,
    /// Set when the operator's service account is installed.
    pub(crate) account: OnceCell<()>,
}

impl Platform {
    /// A new cluster with all third-party definitions and objects, except a KubeDescheduler.
    pub async fn at_rest() -> Platform {
        let platform = Platform::with(&[
            "kubedescheduler-5.1.yaml",
            "machineconfig.yaml",
            "machineconfigpool.yaml",
            "machineconfiguration.yaml",
            "hyperconverged-v1beta1.yaml",
        ])
        .await;
        platform.populate().await;
        platform
    }

    /// A new cluster with these definitions from `config/crd/third-party`, and no objects.
    pub async fn with(definitions: &[&str]) -> Platform {
        let platform = Platform::on(Cluster::builder().start().await.unwrap()).await;
        for definition in definitions {
            platform.define(definition).await;
        }
        platform
    }

    pub async fn on(cluster: Cluster) -> Platform {
        let client = cluster.access().client().await.unwrap();
        Platform { cluster: ReusableCluster::owned(cluster), client, account: OnceCell::new() }
    }

    pub async fn define(&self, definition: &str) {
        let documents = third_party_definitions(definition).into_iter();
        let crds: Vec<_> = documents.map(|document| serde_json::from_value(document).unwrap()).collect();
        self.cluster.access().install_crds(&crds).await.unwrap();
    }

    /// Creates the objects of third parties, with the status that their controllers would write.
    pub async fn populate(&self) {
        for sample in ["namespaces", "hyperconverged", "machineconfigs", "machineconfigpools", "machineconfiguration"] {
            for object in sample_documents(sample) {
                self.apply("installer", &object, "").await;
            }
        }
        for object in sample_documents("status") {
            self.apply("controllers", &object, "/status").await;
        }
    }

    /// Installs our own definitions.
    pub async fn install(&self) {
        self.cluster.access().install_crds(&api::crd::crds()).await.unwrap();
    }

    /// The API server with the permissions of the operator.
    pub async fn kubernetes(&self) -> ApiServer {
        self.kubernetes_as(&self.operator().await).await
    }

    pub async fn kubernetes_as(&self, who: &Identity) -> ApiServer {
        ApiServer::new(self.cluster.access().config(who).await.unwrap(), "test").unwrap()
    }

    pub async fn plan(&self, profile: &str) -> Plan {
        self.plan_with(profile, Value::Null).await
    }

    pub async fn plan_with(&self, profile: &str, options: Value) -> Plan {
        self.try_plan(profile, options).await.unwrap_or_else(|error| panic!("{profile}: {error}"))
    }

    pub async fn try_plan(&self, profile: &str, options: Value) -> Result<Plan, PlanError> {
        let options: Option<Options> = serde_json::from_value(options).unwrap();
        make_plan(&self.kubernetes().await, profiles::find(profile).unwrap(), options.as_ref()).await
    }

    /// Writes every item of a plan.
    pub async fn carry_out(&self, plan: &Plan) {
        let kubernetes = self.kubernetes().await;
        for planned in &plan.items {
            let written = write(&kubernetes, planned, Lock::Compare).await;
            written.unwrap_or_else(|error| panic!("{}: {error}", planned.item.name));
        }
    }

    /// Server-side apply, by force.
    pub async fn apply(&self, manager: &str, object: &Value, subresource: &str) -> Value {
        let uri = format!("{}{subresource}?fieldManager={manager}&force=true", path(object));
        self.request("PATCH", &uri, Some("application/apply-patch+yaml"), object.clone()).await
    }

    /// An ordinary merge patch, as `kubectl patch` sends it.
    pub async fn patch(&self, manager: &str, object: &Value) -> Value {
        let uri = format!("{}?fieldManager={manager}", path(object));
        self.request("PATCH", &uri, Some("application/merge-patch+json"), object.clone()).await
    }

    pub async fn delete(&self, object: &Value) {
        let _ = self.send("DELETE", &path(object), None, &[]).await;
    }

    pub async fn get(&self, object: &Value) -> Value {
        self.request("GET", &path(object), None, Value::Null).await
    }

    pub async fn find(&self, object: &Value) -> Option<Value> {
        self.send("GET", &path(object), None, &[]).await.ok()
    }

    pub async fn request(&self, method: &str, uri: &str, content: Option<&str>, body: Value) -> Value {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.send(method, uri, content, &body).await;
        answer.unwrap_or_else(|error| panic!("{method} {uri}: {error}"))
    }

    /// A request whose connection is lost is sent again, unless it is a POST: that would not be the same as one.
    async fn send(&self, method: &str, uri: &str, content: Option<&str>, body: &[u8]) -> Result<Value, kube::Error> {
        let mut tries = 1;
        loop {
            let mut request = http::Request::builder().method(method).uri(uri);
            if let Some(content) = content {
                request = request.header("content-type", content);
            }
            match self.client.request(request.body(body.to_vec()).unwrap()).await {
                Err(kube::Error::Service(_) | kube::Error::HyperError(_)) if method != "POST" && tries < TRIES => {
                    tries += 1;
                }
                answer => return answer,
            }
        }
    }
}

/// The path of an object. All kinds here have regular plurals.
pub fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").unwrap();
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace =
        text("/metadata/namespace").map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    let plural = format!("{}s", text("/kind").unwrap().to_lowercase());
    format!("{root}/{version}{namespace}/{plural}/{}", text("/metadata/name").unwrap())
}

pub fn descheduler(spec: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
        "spec": spec,
    })
}

pub fn hyper_converged(spec: Value) -> Value {
    json!({
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": spec,
    })
}

pub fn machine_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": spec,
    })
}
