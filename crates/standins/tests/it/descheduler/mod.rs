//! The stand-in for the descheduler operator with the real descheduler, Prometheus and KWOK; and the soft-tainter.

mod fake_exporter;
mod life;
mod operand;
mod staleness;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use advisor::kube_descheduler::Release;
use devcluster::{
    Cluster, Component, Identity, Kwok,
    tools::{self, Program},
};
use k8s_openapi::{
    api::core::v1::{Namespace, Node, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, ObjectMeta, Patch, PatchParams, PostParams},
};
use lab_parts::{
    prometheus,
    soft_tainter::{SoftTainter, SoftTainterSettings},
};
use serde_json::{Value, json};
use standins::descheduler::{DeschedulerSettings, StandIn, StandInState, names};
use tempfile::TempDir;
use testkit::{
    eventually,
    files::{documents, root},
    kube_descheduler::balancing_by_cpu,
};

use self::fake_exporter::FakeExporter;

const STAND_IN: &str = "descheduler-stand-in-user";
const TAINTER: &str = "soft-tainter-user";
/// A minute takes three seconds.
const TIME_SCALE: f64 = 20.0;

/// The share of CPU that each node uses.
const USE: [(&str, f64); 3] = [("cold", 0.1), ("hot", 0.9), ("mild", 0.5)];

/// A cluster with a Prometheus and three nodes of known load.
struct TestCluster {
    cluster: Cluster,
    client: Client,
    exporter: FakeExporter,
    folder: TempDir,
    prometheus: prometheus::PrometheusSettings,
}

impl TestCluster {
    async fn start() -> TestCluster {
        let exporter = FakeExporter::start(USE.map(|(node, share)| (node.to_owned(), [share, 0.0, 0.3, 0.0])));
        let prometheus = prometheus::PrometheusSettings {
            time_scale: TIME_SCALE,
            ..prometheus::PrometheusSettings::new(exporter.address().to_string())
        };
        let builder = Cluster::builder().kwok(Kwok::default()).prometheus(prometheus.component(None));
        let cluster = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
        let client = cluster.access().client().await.unwrap();
        let crd: Vec<CustomResourceDefinition> =
            documents(&root().join("config/crd/third-party/kubedescheduler-5.1.yaml"))
                .into_iter()
                .map(|document| serde_json::from_value(document).unwrap())
                .collect();
        cluster.access().install_crds(&crd).await.unwrap();
        let test = TestCluster { cluster, client, exporter, folder: tempfile::tempdir().unwrap(), prometheus };
        for (node, _) in USE {
            test.add_node(node).await;
        }
        test
    }

    async fn add_namespace(&self, labels: BTreeMap<String, String>) {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let metadata =
            ObjectMeta { name: Some(names::NAMESPACE.into()), labels: Some(labels), ..ObjectMeta::default() };
        namespaces.create(&PostParams::default(), &Namespace { metadata, ..Namespace::default() }).await.unwrap();
    }

    async fn add_node(&self, name: &str) {
        let node = json!({"metadata": {
            "name": name,
            "labels": {"kubevirt.io/schedulable": "true"},
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        }});
        self.nodes().create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
        let is_ready = async || {
            let conditions = self.nodes().get(name).await.unwrap().status?.conditions?;
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True").then_some(())
        };
        eventually(format!("node {name} is ready"), is_ready).await;
        // The node lifecycle controller, which does not run here, would do this.
        let untaint = Patch::Merge(json!({"spec": {"taints": null}}));
        self.nodes().patch(name, &PatchParams::default(), &untaint).await.unwrap();
    }

    /// A pod that may be evicted, running on a node.
    async fn add_pod(&self, name: &str, node: &str) {
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let owner = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": name, "uid": name, "controller": true,
        });
        let pod = json!({
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"nodeName": node, "containers": [{"name": "compute", "image": "none"}]},
        });
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        let is_running =
            async || (pods.get(name).await.unwrap().status?.phase.as_deref() == Some("Running")).then_some(());
        eventually(format!("pod {name} runs"), is_running).await;
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    fn prometheus_url(&self) -> String {
        format!("http://{}", self.cluster.address(Component::Prometheus).unwrap())
    }

    async fn settings(&self) -> DeschedulerSettings {
        let who = Identity::user("descheduler-user", &["system:masters"]);
        let program = tokio::task::spawn_blocking(|| tools::ensure(Program::Descheduler)).await.unwrap().unwrap();
        DeschedulerSettings {
            kubeconfig: Some(self.cluster.access().kubeconfig(&who).await.unwrap()),
            prometheus_url: Some(self.prometheus_url()),
            metrics: Some(([127, 0, 0, 1], 0).into()),
            time_scale: TIME_SCALE,
            ..DeschedulerSettings::new(program, self.folder.path().join("descheduler"))
        }
    }

    async fn stand_in(&self, settings: DeschedulerSettings) -> StandIn {
        let who = Identity::user(STAND_IN, &["system:masters"]);
        StandIn::start(self.cluster.access().client_for(&who).await.unwrap(), settings).await.unwrap()
    }

    fn tainter_settings(&self) -> SoftTainterSettings {
        SoftTainterSettings {
            release: Release::NEWEST,
            prometheus_url: self.prometheus_url(),
            time_scale: TIME_SCALE,
            policy_source: Default::default(),
        }
    }

    async fn soft_tainter(&self) -> SoftTainter {
        let who = Identity::user(TAINTER, &["system:masters"]);
        SoftTainter::start(self.cluster.access().client_for(&who).await.unwrap(), self.tainter_settings()).unwrap()
    }

    fn objects(&self) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler");
        Api::namespaced_with(self.client.clone(), names::NAMESPACE, &ApiResource::from_gvk(&kind))
    }

    async fn create_object(&self) {
        let object = serde_json::from_value(balancing_by_cpu()).unwrap();
        self.objects().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn change(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.objects().patch("cluster", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits for a status of the newest generation that satisfies `check`.
    async fn reach(&self, what: &str, check: impl Fn(&Value) -> bool) -> Value {
        let reached = async || {
            let object = self.objects().get("cluster").await.unwrap();
            let status = object.data["status"].clone();
            let is_new = status["observedGeneration"].as_i64() == object.metadata.generation;
            (is_new && check(&status)).then_some(status)
        };
        eventually(format!("status: {what}"), reached).await
    }

    async fn taints(&self) -> BTreeMap<String, Vec<String>> {
        let nodes = self.nodes().list(&Default::default()).await.unwrap();
        let taints = |node: Node| {
            let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
            let name = node.metadata.name.unwrap();
            (
                name,
                taints
                    .into_iter()
                    .map(|taint| format!("{}={}:{}", taint.key, taint.value.unwrap(), taint.effect))
                    .collect(),
            )
        };
        nodes.into_iter().map(taints).collect()
    }

    async fn expect_taints(&self, expected: &[(&str, &[&str])]) {
        let expected: BTreeMap<String, Vec<String>> = expected
            .iter()
            .map(|(node, keys)| {
                let taint =
                    |key: &&str| format!("nodeutilization.descheduler.openshift.io/{key}=true:PreferNoSchedule");
                ((*node).to_owned(), keys.iter().map(taint).collect())
            })
            .collect();
        eventually(format!("taints {expected:?}"), async || (self.taints().await == expected).then_some(())).await;
    }
}

/// A client of any HTTP server. It repeats no request.
fn http_client(url: &str) -> Client {
    let mut config = kube::Config::new(url.parse().unwrap());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

fn monitored() -> BTreeMap<String, String> {
    [("openshift.io/cluster-monitoring".to_owned(), "true".to_owned())].into()
}

async fn page(stand_in: &StandIn, path: &str) -> Result<String, kube::Error> {
    let client = http_client(&format!("http://{}", stand_in.metrics().unwrap()));
    client.request_text(http::Request::get(path).body(Vec::new()).unwrap()).await
}

fn is_ready(status: &Value) -> bool {
    status["readyReplicas"] == 1
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let conditions = status["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

/// Waits for a state of the stand-in.
async fn reach_state(stand_in: &StandIn, what: &str, check: impl Fn(&StandInState) -> bool) -> StandInState {
    let mut state = stand_in.state();
    let found = tokio::time::timeout(Duration::from_secs(100), state.wait_for(|state| check(state))).await;
    found.unwrap_or_else(|_| panic!("did not happen: {what}")).unwrap().clone()
}

async fn logged(log: &Path, text: &str) {
    let found = async || std::fs::read_to_string(log).unwrap_or_default().contains(text).then_some(());
    eventually(format!("the descheduler says {text:?}"), found).await;
}

fn command_line(pid: u32) -> Vec<String> {
    let line = std::fs::read(PathBuf::from(format!("/proc/{pid}/cmdline"))).unwrap();
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}
