//! Clusters with the kinds of the machine config operator, the stand-in, and pools of nodes.

use std::time::Duration;

use devcluster::{Builder, Cluster, Identity};
use k8s_openapi::{
    api::core::v1::Node, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use standins::machine_config::{
    DrainSettings, Machine, MachineConfigPool, MachineConfigSettings, PoolStatus, StandIn, names,
};
use testkit::{eventually, files::third_party_definitions};
use tokio::sync::{OnceCell, oneshot};

/// The user of the stand-in in the audit log.
pub(super) const STAND_IN: &str = "mco-stand-in-user";

pub(super) fn settings() -> MachineConfigSettings {
    MachineConfigSettings {
        reboot: Duration::from_millis(100),
        render_delay: Duration::from_millis(20),
        drain: DrainSettings { timeout: Duration::from_secs(60 * 60), ..DrainSettings::default().faster(100.0) },
        ..MachineConfigSettings::default()
    }
}

/// A cluster with a stand-in. Tests with pools of different names share it.
pub(super) struct Shared {
    pub(super) cluster: &'static Cluster,
    pub(super) stand_in: StandIn,
}

pub(super) async fn shared_cluster() -> &'static Shared {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    let start = async || {
        let cluster = devcluster::own().await.unwrap();
        define(cluster).await;
        let (send, receive) = oneshot::channel();
        // The stand-in has its own runtime, because that of a test ends with the test.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let started = send.send(start_stand_in(cluster).await);
                assert!(started.is_ok());
                std::future::pending::<()>().await;
            });
        });
        Shared { cluster, stand_in: receive.await.unwrap() }
    };
    SHARED.get_or_init(start).await
}

/// A new cluster with the kinds, without a stand-in.
pub(super) async fn new_cluster(builder: Builder) -> (Cluster, Client) {
    let (cluster, client) = empty_cluster(builder).await;
    define(&cluster).await;
    (cluster, client)
}

/// A new cluster without the kinds of the machine config operator.
pub(super) async fn empty_cluster(builder: Builder) -> (Cluster, Client) {
    let cluster = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
    let client = cluster.access().client().await.unwrap();
    (cluster, client)
}

pub(super) async fn start_stand_in(cluster: &Cluster) -> StandIn {
    let who = Identity::user(STAND_IN, &["system:masters"]);
    StandIn::start(cluster.access().client_for(&who).await.unwrap(), settings())
}

pub(super) async fn define(cluster: &Cluster) {
    let crds: Vec<CustomResourceDefinition> =
        ["machineconfig.yaml", "machineconfigpool.yaml", "machineconfignode.yaml"]
            .iter()
            .flat_map(|name| third_party_definitions(name))
            .map(|document| serde_json::from_value(document).unwrap())
            .collect();
    cluster.access().install_crds(&crds).await.unwrap();
}

/// Server-side apply of any cluster-scoped object with a regular plural.
pub(super) async fn apply(client: &Client, object: &Value, is_status: bool) {
    let (group, version) = object["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
    let kind = GroupVersionKind::gvk(group, version, object["kind"].as_str().unwrap());
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("installer").force();
    let answer = match is_status {
        true => api.patch_status(name, &params, &Patch::Apply(object)).await,
        false => api.patch(name, &params, &Patch::Apply(object)).await,
    };
    answer.unwrap_or_else(|error| panic!("applying {name}: {error}"));
}

/// A pool with its first machine config and its nodes.
pub(super) struct TestPool {
    pub(super) name: String,
    pub(super) client: Client,
    pub(super) nodes: Api<Node>,
    pub(super) pools: Api<MachineConfigPool>,
}

impl TestPool {
    /// A pool, at rest, that selects nodes and machine configs of the role with its name.
    pub(super) async fn create(client: &Client, name: &str, nodes: usize, spec: Value) -> TestPool {
        let pool = TestPool::define(client, name, &[name], &[name], nodes, spec).await;
        pool.reach("at rest", |pool| is_at_rest(pool, nodes)).await;
        pool
    }

    /// A pool that selects machine configs of these roles, and nodes with these roles.
    pub(super) async fn define(
        client: &Client,
        name: &str,
        config_roles: &[&str],
        node_roles: &[&str],
        nodes: usize,
        spec: Value,
    ) -> TestPool {
        let pool = TestPool {
            name: name.to_owned(),
            client: client.clone(),
            nodes: Api::all(client.clone()),
            pools: Api::all(client.clone()),
        };
        for number in 0..nodes {
            pool.add_node(number, node_roles, json!({})).await;
        }
        pool.configure(&format!("00-{name}"), json!({"kernelArguments": ["quiet"]})).await;
        let mut object = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfigPool",
            "metadata": {"name": name},
            "spec": {
                "machineConfigSelector": {"matchExpressions": [{"key": names::ROLE, "operator": "In", "values": config_roles}]},
                "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            },
        });
        object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        apply(client, &object, false).await;
        pool
    }

    pub(super) fn node(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    pub(super) async fn add_node(&self, number: usize, roles: &[&str], annotations: Value) {
        let labels: serde_json::Map<_, _> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
        let node = json!({"metadata": {"name": self.node(number), "labels": labels, "annotations": annotations}});
        self.nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }

    /// Creates or changes a machine config for the pool's own role.
    pub(super) async fn configure(&self, config: &str, spec: Value) {
        let object = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": config, "labels": {names::ROLE: self.name}},
            "spec": spec,
        });
        apply(&self.client, &object, false).await;
    }

    pub(super) async fn unconfigure(&self, config: &str) {
        configs(&self.client).delete(config, &DeleteParams::default()).await.unwrap();
    }

    pub(super) async fn patch(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.pools.patch(&self.name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(super) async fn get(&self) -> MachineConfigPool {
        self.pools.get(&self.name).await.unwrap()
    }

    /// Polls until the pool meets a condition. Errors are ignored, because the API server may be restarting.
    pub(super) async fn reach(&self, what: &str, is_reached: impl Fn(&MachineConfigPool) -> bool) -> MachineConfigPool {
        let check = async || self.pools.get(&self.name).await.ok().filter(|pool| is_reached(pool));
        eventually(format!("pool {} comes {what}", self.name), check).await
    }

    /// Waits until all nodes run a config that includes, or does not include, a machine config.
    pub(super) async fn settle(&self, config: &str, is_part: bool, nodes: usize) -> MachineConfigPool {
        self.reach("to settle", |pool| is_at_rest(pool, nodes) && is_rendered_from(pool, config) == is_part).await
    }
}

pub(super) fn configs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

pub(super) fn status(pool: &MachineConfigPool) -> PoolStatus {
    pool.status.clone().unwrap_or_default()
}

/// Whether a condition is True.
pub(super) fn is_true(pool: &MachineConfigPool, condition: &str) -> bool {
    status(pool).condition(condition).is_some_and(|condition| condition.status == "True")
}

pub(super) fn message(pool: &MachineConfigPool, condition: &str) -> String {
    status(pool).condition(condition).map(|condition| condition.message.clone()).unwrap_or_default()
}

pub(super) fn is_rendered_from(pool: &MachineConfigPool, config: &str) -> bool {
    pool.spec.configuration.source.iter().any(|source| source.name == config)
}

/// Whether all nodes run the target config, and the status is of this generation.
pub(super) fn is_at_rest(pool: &MachineConfigPool, nodes: usize) -> bool {
    let status = status(pool);
    !pool.spec.configuration.name.is_empty()
        && pool.spec.configuration == status.configuration
        && is_true(pool, "Updated")
        && Some(status.observed_generation) == pool.metadata.generation
        && usize::try_from(status.machine_count) == Ok(nodes)
}

/// The state of a node in a few words, for comparison.
pub(super) fn describe(node: &Node) -> String {
    let machine = Machine::of(node);
    let mut words = vec![machine.state().to_string()];
    if machine.current() != machine.desired() {
        words.push("outdated".into());
    }
    if machine.is_cordoned() {
        words.push("cordoned".into());
    }
    if machine.is_drained() {
        words.push("drained".into());
    }
    if machine.ready() != Some(true) {
        words.push("down".into());
    }
    words.join(" ")
}

pub(super) fn name(object: &impl ResourceExt) -> String {
    object.name_any()
}
