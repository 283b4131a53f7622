//! Clusters with the kinds of the machine config operator and the stand-in that plays it.

use std::time::Duration;

use devcluster::{Builder, Cluster, Identity};
use k8s_openapi::{
    api::core::v1::Node, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use standins::machine_config::{Machine, MachineConfigPool, PoolStatus, MachineConfigSettings, StandIn, names};
use serde_json::{Value, json};
use testkit::{eventually, files::third_party_definitions};
use tokio::sync::{OnceCell, oneshot};

/// What the stand-in is called in the audit log.
pub(crate) const STAND_IN: &str = "mco-stand-in-user";

pub(crate) fn settings() -> MachineConfigSettings {
    MachineConfigSettings { reboot: Duration::from_millis(100), render_delay: Duration::from_millis(20), ..MachineConfigSettings::default() }
}

/// Tests that have pools of their own share a cluster and its stand-in.
pub(crate) struct Shared {
    pub(crate) cluster: &'static Cluster,
    pub(crate) stand_in: StandIn,
}

pub(crate) async fn shared() -> &'static Shared {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    let start = async || {
        let cluster = devcluster::own().await.unwrap();
        define(cluster).await;
        let (send, receive) = oneshot::channel();
        // On a runtime of its own, which does not end with the test that comes first.
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

/// A cluster of its own, without a stand-in yet.
pub(crate) async fn own(builder: Builder) -> (Cluster, Client) {
    let (cluster, client) = blank(builder).await;
    define(&cluster).await;
    (cluster, client)
}

/// A cluster of its own, without the kinds of the machine config operator.
pub(crate) async fn blank(builder: Builder) -> (Cluster, Client) {
    let cluster = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
    let client = cluster.access().client().await.unwrap();
    (cluster, client)
}

pub(crate) async fn start_stand_in(cluster: &Cluster) -> StandIn {
    let who = Identity::user(STAND_IN, &["system:masters"]);
    StandIn::start(cluster.access().client_for(&who).await.unwrap(), settings())
}

pub(crate) async fn define(cluster: &Cluster) {
    let crds: Vec<CustomResourceDefinition> = ["machineconfig.yaml", "machineconfigpool.yaml"]
        .iter()
        .flat_map(|name| third_party_definitions(name))
        .map(|document| serde_json::from_value(document).unwrap())
        .collect();
    cluster.access().install_crds(&crds).await.unwrap();
}

/// Server-side apply of any cluster-scoped object with a regular plural.
pub(crate) async fn apply(client: &Client, object: &Value, is_status: bool) {
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

/// A pool with its first machine config and its nodes, at rest.
pub(crate) struct Pool {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) nodes: Api<Node>,
    pub(crate) pools: Api<MachineConfigPool>,
}

impl Pool {
    /// A pool that takes nodes and machine configs of the role that it is named after.
    pub(crate) async fn create(client: &Client, name: &str, nodes: usize, spec: Value) -> Pool {
        let pool = Pool::define(client, name, &[name], &[name], nodes, spec).await;
        pool.reach("at rest", |pool| is_at_rest(pool, nodes)).await;
        pool
    }

    /// A pool that takes machine configs of these roles, and nodes that have these roles.
    pub(crate) async fn define(
        client: &Client,
        name: &str,
        config_roles: &[&str],
        node_roles: &[&str],
        nodes: usize,
        spec: Value,
    ) -> Pool {
        let pool = Pool {
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

    pub(crate) fn node(&self, number: usize) -> String {
        format!("{}-{number}", self.name)
    }

    pub(crate) async fn add_node(&self, number: usize, roles: &[&str], annotations: Value) {
        let labels: serde_json::Map<_, _> =
            roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
        let node = json!({"metadata": {"name": self.node(number), "labels": labels, "annotations": annotations}});
        self.nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    }

    /// Creates or changes a machine config for the pool's own role.
    pub(crate) async fn configure(&self, config: &str, spec: Value) {
        let object = json!({
            "apiVersion": "machineconfiguration.openshift.io/v1",
            "kind": "MachineConfig",
            "metadata": {"name": config, "labels": {names::ROLE: self.name}},
            "spec": spec,
        });
        apply(&self.client, &object, false).await;
    }

    pub(crate) async fn unconfigure(&self, config: &str) {
        configs(&self.client).delete(config, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn patch(&self, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.pools.patch(&self.name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn get(&self) -> MachineConfigPool {
        self.pools.get(&self.name).await.unwrap()
    }

    /// Polls until the pool is as it should be. Errors are what an API server answers that is being restarted.
    pub(crate) async fn reach(&self, what: &str, is_reached: impl Fn(&MachineConfigPool) -> bool) -> MachineConfigPool {
        let check = async || self.pools.get(&self.name).await.ok().filter(|pool| is_reached(pool));
        eventually(format!("pool {} comes {what}", self.name), check).await
    }

    /// Waits until a machine config is part of what all nodes run, or no longer is.
    pub(crate) async fn settle(&self, config: &str, is_part: bool, nodes: usize) -> MachineConfigPool {
        self.reach("to settle", |pool| is_at_rest(pool, nodes) && is_rendered_from(pool, config) == is_part).await
    }
}

pub(crate) fn configs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("machineconfiguration.openshift.io", "v1", "MachineConfig");
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

pub(crate) fn status(pool: &MachineConfigPool) -> PoolStatus {
    pool.status.clone().unwrap_or_default()
}

/// Whether a condition is True.
pub(crate) fn is(pool: &MachineConfigPool, condition: &str) -> bool {
    status(pool).condition(condition).is_some_and(|condition| condition.status == "True")
}

pub(crate) fn message(pool: &MachineConfigPool, condition: &str) -> String {
    status(pool).condition(condition).map(|condition| condition.message.clone()).unwrap_or_default()
}

pub(crate) fn is_rendered_from(pool: &MachineConfigPool, config: &str) -> bool {
    pool.spec.configuration.source.iter().any(|source| source.name == config)
}

/// The robust wait: target and rolled-out config are the same, and the status is of this generation.
pub(crate) fn is_at_rest(pool: &MachineConfigPool, nodes: usize) -> bool {
    let status = status(pool);
    !pool.spec.configuration.name.is_empty()
        && pool.spec.configuration == status.configuration
        && is(pool, "Updated")
        && Some(status.observed_generation) == pool.metadata.generation
        && usize::try_from(status.machine_count) == Ok(nodes)
}

/// What a node's annotations and spec say, for comparison.
pub(crate) fn describe(node: &Node) -> String {
    let machine = Machine::of(node);
    let mut words = vec![machine.state().to_string()];
    if machine.current() != machine.desired() {
        words.push("told".into());
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

pub(crate) fn name(object: &impl ResourceExt) -> String {
    object.name_any()
}
