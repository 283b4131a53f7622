//! A cluster that looks like OpenShift Virtualization to a plan: the third parties' definitions and objects at rest.

use std::path::{Path, PathBuf};

use advisor::{Plan, profiles};
use api::virt_platform_config::Options;
use devcluster::{Cluster, Identity};
use kube::Client;
use operator::{DrawUpError, Kubernetes, Lock, draw_up};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::stage::Loan;

pub(crate) const LOAD_AWARE: &str = "load-aware-rebalancing";
pub(crate) const DENSITY: &str = "virt-higher-density";

pub(crate) struct Platform {
    pub(crate) cluster: Loan,
    pub(crate) client: Client,
    /// Whether the operator's account is installed.
    pub(crate) account: OnceCell<()>,
}

impl Platform {
    /// Everything installed, no descheduler configured yet.
    pub(crate) async fn at_rest() -> Platform {
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

    /// Just these definitions from `config/crd/third-party`.
    pub(crate) async fn with(definitions: &[&str]) -> Platform {
        let platform = Platform::on(Cluster::builder().start().await.unwrap()).await;
        for definition in definitions {
            platform.define(definition).await;
        }
        platform
    }

    pub(crate) async fn on(cluster: Cluster) -> Platform {
        let client = cluster.access().client().await.unwrap();
        Platform { cluster: Loan::own(cluster), client, account: OnceCell::new() }
    }

    pub(crate) async fn define(&self, definition: &str) {
        let crds: Vec<_> = documents(&root().join("config/crd/third-party").join(definition))
            .into_iter()
            .map(|document| serde_json::from_value(document).unwrap())
            .collect();
        self.cluster.access().install_crds(&crds).await.unwrap();
    }

    /// The objects of a cluster at rest, with the status that their controllers would write.
    pub(crate) async fn populate(&self) {
        for sample in ["namespaces", "hyperconverged", "machineconfigs", "machineconfigpools", "machineconfiguration"] {
            for object in sample_documents(sample) {
                self.apply("installer", &object, "").await;
            }
        }
        for object in sample_documents("status") {
            self.apply("controllers", &object, "/status").await;
        }
    }

    /// Our own definitions.
    pub(crate) async fn install(&self) {
        self.cluster.access().install_crds(&api::crd::crds()).await.unwrap();
    }

    /// The API server as the operator reaches it.
    pub(crate) async fn kubernetes(&self) -> Kubernetes {
        self.kubernetes_as(&self.operator().await).await
    }

    pub(crate) async fn kubernetes_as(&self, who: &Identity) -> Kubernetes {
        Kubernetes::new(self.cluster.access().config(who).await.unwrap(), "test").unwrap()
    }

    pub(crate) async fn plan(&self, profile: &str) -> Plan {
        self.plan_with(profile, Value::Null).await
    }

    pub(crate) async fn plan_with(&self, profile: &str, options: Value) -> Plan {
        self.try_plan(profile, options).await.unwrap_or_else(|error| panic!("{profile}: {error}"))
    }

    pub(crate) async fn try_plan(&self, profile: &str, options: Value) -> Result<Plan, DrawUpError> {
        let options: Option<Options> = serde_json::from_value(options).unwrap();
        draw_up(&self.kubernetes().await, profiles::find(profile).unwrap(), options.as_ref()).await
    }

    /// Does what a plan says.
    pub(crate) async fn carry_out(&self, plan: &Plan) {
        let kubernetes = self.kubernetes().await;
        for planned in &plan.items {
            let written = kubernetes.write(planned, Lock::Compare).await;
            written.unwrap_or_else(|error| panic!("{}: {error}", planned.item.name));
        }
    }

    /// Server-side apply, by force.
    pub(crate) async fn apply(&self, manager: &str, object: &Value, subresource: &str) -> Value {
        let uri = format!("{}{subresource}?fieldManager={manager}&force=true", path(object));
        self.request("PATCH", &uri, Some("application/apply-patch+yaml"), object.clone()).await
    }

    /// An ordinary merge patch, as `kubectl patch` sends it.
    pub(crate) async fn patch(&self, manager: &str, object: &Value) -> Value {
        let uri = format!("{}?fieldManager={manager}", path(object));
        self.request("PATCH", &uri, Some("application/merge-patch+json"), object.clone()).await
    }

    pub(crate) async fn delete(&self, object: &Value) {
        let request = http::Request::delete(path(object)).body(Vec::new()).unwrap();
        let _: Result<Value, _> = self.client.request(request).await;
    }

    pub(crate) async fn get(&self, object: &Value) -> Value {
        self.request("GET", &path(object), None, Value::Null).await
    }

    pub(crate) async fn find(&self, object: &Value) -> Option<Value> {
        let request = http::Request::get(path(object)).body(Vec::new()).unwrap();
        self.client.request(request).await.ok()
    }

    pub(crate) async fn request(&self, method: &str, uri: &str, content: Option<&str>, body: Value) -> Value {
        let mut request = http::Request::builder().method(method).uri(uri);
        if let Some(content) = content {
            request = request.header("content-type", content);
        }
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.client.request(request.body(body).unwrap()).await;
        answer.unwrap_or_else(|error| panic!("{method} {uri}: {error}"))
    }
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn sample_documents(name: &str) -> Vec<Value> {
    documents(&root().join("config/samples/third-party").join(format!("{name}.yaml")))
}

/// The path of an object; plurals are regular here.
pub(crate) fn path(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").unwrap();
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let namespace =
        text("/metadata/namespace").map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    let plural = format!("{}s", text("/kind").unwrap().to_lowercase());
    format!("{root}/{version}{namespace}/{plural}/{}", text("/metadata/name").unwrap())
}

pub(crate) fn descheduler(spec: Value) -> Value {
    json!({
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeDescheduler",
        "metadata": {"name": "cluster", "namespace": "openshift-kube-descheduler-operator"},
        "spec": spec,
    })
}

pub(crate) fn hyper_converged(spec: Value) -> Value {
    json!({
        "apiVersion": "hco.kubevirt.io/v1beta1",
        "kind": "HyperConverged",
        "metadata": {"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"},
        "spec": spec,
    })
}

pub(crate) fn machine_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "machineconfiguration.openshift.io/v1",
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": spec,
    })
}
