//! The VM controller on a real API server, with the real scheduler, the real garbage collector and KWOK.

mod gate;
mod life;
mod limits;
mod migrations;
mod restarts;

use std::{pin::pin, time::Duration};

use api::{VirtualMachine, crd, virtual_machine::Phase};
use devcluster::{Cluster, Component, Identity, Kwok};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams},
};
use lab::kwok;
use lab_parts::{
    launcher,
    vm::{VmController, VmControllerSettings},
};
use serde_json::{Value, json};
use sim::units::Rate;
use testkit::{
    eventually,
    replay::{History, Moment, Observer, node, node_of, status},
};
use tokio::{
    sync::{Mutex, MutexGuard, OnceCell},
    time::timeout,
};

/// The user name of the controller in the audit log.
const USER: &str = "vm-controller-user";
/// How long the tests wait for requests of a controller that should send none.
const QUIET: Duration = Duration::from_secs(3);

/// These tests use one cluster one after another. Each test finds it empty.
struct Lab {
    cluster: &'static Cluster,
    client: Client,
    vms: Api<VirtualMachine>,
    /// The VMs as untyped objects, because some cannot be parsed.
    objects: Api<DynamicObject>,
    pods: Api<Pod>,
    nodes: Api<Node>,
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    async fn start(nodes: &[&str]) -> Lab {
        static CLUSTER: OnceCell<Cluster> = OnceCell::const_new();
        static TURN: Mutex<()> = Mutex::const_new(());
        let turn = TURN.lock().await;
        let start = async || {
            let stages = Kwok { stages: kwok::stages().to_owned() };
            let cluster = Cluster::builder().scheduler().controllers(&kwok::CONTROLLERS).kwok(stages).start().await;
            let cluster = cluster.unwrap_or_else(|error| panic!("{error}"));
            cluster.access().install_crds(&[crd::virtual_machine()]).await.unwrap();
            // The garbage collector looks for new kinds every half a minute and when it starts.
            cluster.kill(Component::ControllerManager).unwrap();
            cluster.start(Component::ControllerManager).await.unwrap();
            cluster
        };
        let cluster = CLUSTER.get_or_init(start).await;
        let client = cluster.access().client().await.unwrap();
        let (vms, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        let objects = Api::default_namespaced_with(client.clone(), &ApiResource::erase::<VirtualMachine>(&()));
        let lab = Lab { cluster, vms, objects, pods, nodes: Api::all(client.clone()), client, _turn: turn };
        lab.clear().await;
        for node in nodes {
            lab.add_node(node).await;
        }
        // The scheduler would put everything on the node that is ready first.
        eventually("the nodes take pods", async || lab.take_pods(nodes).await.then_some(())).await;
        lab
    }

    async fn take_pods(&self, nodes: &[&str]) -> bool {
        for name in nodes {
            let Ok(node) = self.nodes.get(name).await else { return false };
            let is_tainted = node.spec.is_some_and(|spec| spec.taints.is_some_and(|taints| !taints.is_empty()));
            let mut conditions = node.status.into_iter().flat_map(|status| status.conditions.unwrap_or_default());
            if is_tainted || !conditions.any(|it| it.type_ == "Ready" && it.status == "True") {
                return false;
            }
        }
        true
    }

    /// Removes what the previous test left behind.
    async fn clear(&self) {
        let (now, all) = (DeleteParams::default().grace_period(0), ListParams::default());
        self.objects.delete_collection(&now, &all).await.unwrap();
        self.nodes.delete_collection(&now, &all).await.unwrap();
        let pods = self.pods.list(&all).await.unwrap();
        for pod in &pods {
            self.kill_pod(&pod.name_any()).await;
        }
        let is_empty = async || {
            let left = (
                self.pods.list(&all).await.ok()?,
                self.nodes.list(&all).await.ok()?,
                self.objects.list(&all).await.ok()?,
            );
            (left.0.items.is_empty() && left.1.items.is_empty() && left.2.items.is_empty()).then_some(())
        };
        eventually("the cluster is empty", is_empty).await;
    }

    async fn add_node(&self, name: &str) {
        self.nodes.create(&PostParams::default(), &kwok::node(name, 32, 128 << 30)).await.unwrap();
    }

    async fn remove_node(&self, name: &str) {
        self.nodes.delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn client_of_controller(&self) -> Client {
        let who = Identity::user(USER, &["system:masters"]);
        self.cluster.access().client_for(&who).await.unwrap()
    }

    async fn controller(&self, settings: VmControllerSettings) -> VmController {
        VmController::start(self.client_of_controller().await, settings)
    }

    async fn create(&self, name: &str) {
        self.create_with(name, json!({})).await;
    }

    async fn create_with(&self, name: &str, annotations: Value) {
        let vm = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"resources": {"cpu": "1", "memory": "2Gi"}, "utilization": {"cpu": "0.5", "memory": "0.5"}},
        });
        self.vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.unwrap();
    }

    async fn change(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.vms.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Records an eviction request on a VM, as the webhook does. Returns the node to leave.
    async fn evict(&self, name: &str) -> String {
        let node = node(&self.vms.get(name).await.unwrap());
        let patch = Patch::Merge(json!({"status": {"evacuationNodeName": node}}));
        self.vms.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
        node
    }

    /// Deletes a pod and its finalizer.
    async fn kill_pod(&self, name: &str) {
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = self.pods.patch(name, &PatchParams::default(), &patch).await;
        let _ = self.pods.delete(name, &DeleteParams::default().grace_period(0)).await;
    }

    async fn pods_of(&self, vm: &str) -> Vec<Pod> {
        let params = ListParams::default().labels(&format!("{}={vm}", launcher::DOMAIN));
        self.pods.list(&params).await.unwrap().items
    }

    async fn reach(&self, name: &str, what: &str, is_reached: impl Fn(&VirtualMachine) -> bool) -> VirtualMachine {
        let check = async || self.vms.get(name).await.ok().filter(|vm| is_reached(vm));
        eventually(format!("VM {name} {what}"), check).await
    }

    /// Waits until both pods of a migration run, and returns the source and the target.
    async fn migrating(&self, name: &str) -> (Pod, Pod) {
        let check = async || {
            let pods = self.pods_of(name).await;
            let is_running =
                |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running");
            let (targets, sources): (Vec<Pod>, Vec<Pod>) =
                pods.into_iter().filter(is_running).partition(|pod| pod.annotations().contains_key(launcher::SOURCE));
            Some((sources.first()?.clone(), targets.first()?.clone()))
        };
        eventually(format!("both pods of VM {name} run"), check).await
    }

    /// Checks that no VM changes for a while. Returns the requests of the controller meanwhile, except watches.
    async fn requests_at_rest(&self) -> Vec<String> {
        let now = self.objects.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
        let mark = self.cluster.audit().position(&self.client).await.unwrap();
        let changes = self.objects.watch(&WatchParams::default().disable_bookmarks(), &now).await.unwrap();
        let change = timeout(QUIET, pin!(changes).next()).await;
        assert!(change.is_err(), "a VM that was at rest has changed: {change:?}");
        let requests = self.cluster.audit().since(mark, &self.client).await.unwrap();
        let asked = requests.iter().filter(|request| request.user == USER && request.verb != "watch");
        asked.map(ToString::to_string).collect()
    }

    async fn no_pod(&self, vm: &str) {
        eventually(format!("VM {vm} has no pod"), async || self.pods_of(vm).await.is_empty().then_some(())).await;
    }

    /// Waits until a VM runs as exactly one pod, without an eviction request.
    async fn settle(&self, name: &str) -> VirtualMachine {
        let check = async || {
            let vm = self.vms.get(name).await.ok()?;
            let params = ListParams::default().labels(&format!("{}={name}", launcher::DOMAIN));
            let pods = self.pods.list(&params).await.ok()?.items;
            is_settled(&vm, &pods).then_some(vm)
        };
        eventually(format!("VM {name} runs as one pod"), check).await
    }
}

fn is_settled(vm: &VirtualMachine, pods: &[Pod]) -> bool {
    let [pod] = pods else { return false };
    let status = vm.status.clone().unwrap_or_default();
    status.phase == Some(Phase::Running)
        && status.evacuation_node_name.is_none()
        && status.pod_name.as_deref() == Some(&*pod.name_any())
        && status.node_name == pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
        && vm.labels().get(launcher::NODE_NAME) == status.node_name.as_ref()
        && !pod.annotations().contains_key(launcher::EVICTION_IN_PROGRESS)
}

fn fast() -> VmControllerSettings {
    VmControllerSettings { time_scale: 20.0, ..VmControllerSettings::default() }
}

/// Copying 1 GiB takes longer than any test waits: the VM writes 0.8 of 1 Gbit/s.
fn slow() -> VmControllerSettings {
    let mut slow = VmControllerSettings::default();
    slow.migration.bandwidth = Rate(1_000_000_000);
    slow
}

fn reason(vm: &VirtualMachine, condition: &str) -> String {
    let conditions = status(vm).conditions;
    conditions.into_iter().find(|known| known.type_ == condition).map(|known| known.reason).unwrap_or_default()
}

/// The cluster at every revision.
fn moments(history: &History) -> Vec<Moment> {
    let mut moments = Vec::new();
    history.each(|step| moments.push(step.now.clone()));
    moments
}
