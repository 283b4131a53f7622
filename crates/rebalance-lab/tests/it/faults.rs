//! Every part of the lab runs as a process of its own and is killed during a migration.

use std::{collections::BTreeMap, path::Path, time::Duration};

use api::{VirtualMachine, crd};
use devcluster::{Cluster, Component, Kwok, Port};
use k8s_openapi::{
    api::core::v1::{Namespace, Node, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, EvictParams, GroupVersionKind, ListParams, PostParams},
};
use lab::kwok;
use lab_parts::{launcher, prometheus, vm};
use serde_json::json;
use standins::descheduler::names;
use tempfile::TempDir;
use testkit::{
    kube_descheduler::balancing_by_cpu,
    replay::{Observer, Seen, node, status},
    within,
};

use crate::parts::Part;

/// A migration takes some seconds, and several of them run one after another.
const TIMEOUT: Duration = Duration::from_secs(120);
const VMS: usize = 16;
const TIME_SCALE: &str = "--time-scale=20";

struct Site {
    cluster: Cluster,
    vms: Api<VirtualMachine>,
    pods: Api<Pod>,
    exporter: Port,
    folder: TempDir,
    parts: BTreeMap<&'static str, Part>,
}

#[derive(Debug)]
struct Migration {
    vm: String,
    from: String,
}

impl Site {
    async fn start() -> (Site, Client) {
        let exporter = Port::reserve().unwrap();
        let rules = prometheus::PrometheusSettings {
            time_scale: 20.0,
            ..prometheus::PrometheusSettings::new(exporter.address())
        };
        let builder = Cluster::builder().scheduler().controllers(&kwok::CONTROLLERS);
        let builder = builder.kwok(Kwok { stages: kwok::stages().to_owned() }).prometheus(rules.component(None));
        let cluster = builder.start().await.unwrap_or_else(|error| panic!("{error}"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd/third-party/kubedescheduler-5.1.yaml");
        let descheduler: CustomResourceDefinition =
            serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        cluster.access().install_crds(&[crd::virtual_machine(), descheduler]).await.unwrap();
        let client = cluster.access().client().await.unwrap();
        let (vms, pods) = (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        let folder = tempfile::tempdir().unwrap();
        (Site { cluster, vms, pods, exporter, folder, parts: BTreeMap::new() }, client)
    }

    /// Starts or restarts a part.
    async fn begin(&mut self, name: &'static str) {
        let url = format!("--prometheus=http://{}", self.cluster.address(Component::Prometheus).unwrap());
        let folder = format!("--folder={}", self.folder.path().display());
        let program = tokio::task::spawn_blocking(standins::descheduler::program).await.unwrap().unwrap();
        let program = format!("--descheduler={}", program.display());
        let (port, more): (u16, Vec<&str>) = match name {
            "exporter" => (self.exporter.number(), vec![]),
            "webhook" => (0, vec!["--reach=127.0.0.1", "--vm-controller=vm-controller"]),
            "descheduler-operator" => (0, vec![TIME_SCALE, &url, &folder, &program]),
            "soft-tainter" => (0, vec![TIME_SCALE, &url]),
            _ => (0, vec![]),
        };
        let part = Part::start_at(&self.cluster, name, port, &more).await;
        self.parts.insert(name, part);
    }

    async fn evict(&self, pod: &str) -> String {
        match self.pods.evict(pod, &EvictParams::default()).await {
            Err(kube::Error::Api(status)) => status.message.clone(),
            answer => panic!("{pod} was evicted: {answer:?}"),
        }
    }

    /// Evicts the pod of a VM until the webhook has recorded the eviction request.
    async fn move_away(&self, vm: &str) {
        let named = async || status(&self.vms.get(vm).await.unwrap()).pod_name;
        let asked = async || self.evict(&named().await?).await.contains("Eviction triggered evacuation").then_some(());
        within(TIMEOUT, "the webhook records the eviction request", asked).await;
    }

    /// Waits for a migration with this cause whose source and target both run.
    async fn under_way(&self, cause: &str) -> Migration {
        let found = async || {
            let pods = self.pods.list(&ListParams::default()).await.unwrap();
            let runs = |pod: &&Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Running");
            let runs_twice = |vm: &VirtualMachine| {
                let is_its = |pod: &&Pod| pod.labels().get(launcher::DOMAIN) == Some(&vm.name_any());
                pods.iter().filter(runs).filter(is_its).count() == 2
            };
            let vms = self.vms.list(&ListParams::default()).await.unwrap();
            let moves = vms.iter().find(|vm| eviction_cause(vm).as_deref() == Some(cause) && runs_twice(vm))?;
            Some(Migration { vm: moves.name_any(), from: node(moves) })
        };
        within(TIMEOUT, format!("a migration by {cause} is under way"), found).await
    }

    /// Kills a part during a migration.
    async fn kill(&mut self, name: &'static str, cause: &str) -> Migration {
        loop {
            let migration = self.under_way(cause).await;
            self.parts[name].kill();
            if status(&self.vms.get(&migration.vm).await.unwrap()).evacuation_node_name.is_some() {
                return migration;
            }
            // The migration ended before the part was killed, so another one is needed.
            self.begin(name).await;
        }
    }

    /// Kills a part during a migration, restarts it, and waits until the migration has succeeded.
    async fn survives_without(&mut self, name: &'static str, cause: &str) {
        let migration = self.kill(name, cause).await;
        if name == "webhook" {
            let other = self.pods.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
            assert!(self.evict(&other).await.contains("failed calling webhook"), "VMs stay protected");
        }
        self.begin(name).await;
        let ended = async || {
            let vm = self.vms.get(&migration.vm).await.unwrap();
            (status(&vm).evacuation_node_name.is_none() && node(&vm) != migration.from).then_some(vm)
        };
        let vm = within(TIMEOUT, format!("{migration:?} ends, without {name} for a while"), ended).await;
        assert_eq!(reason(&vm, "Migrated").as_deref(), Some("Succeeded"), "{name}: {migration:?}");
    }
}

fn reason(vm: &VirtualMachine, kind: &str) -> Option<String> {
    status(vm).conditions.into_iter().find(|condition| condition.type_ == kind).map(|condition| condition.reason)
}

/// The cause of the eviction request of a VM, if it has one.
fn eviction_cause(vm: &VirtualMachine) -> Option<String> {
    status(vm).evacuation_node_name?;
    reason(vm, launcher::EVICTION_REQUESTED)
}

/// Holds L7 (loop stops) and L27 (third pod after restart).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_part_is_killed_under_a_migration_and_every_vm_ends_as_one_running_pod() {
    let (mut site, client) = Site::start().await;
    let observer = Observer::start(&client).await;
    for part in ["vm-controller", "webhook", "exporter", "descheduler-operator", "soft-tainter"] {
        site.begin(part).await;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let add_node = async |name: &str| {
        nodes.create(&PostParams::default(), &kwok::node(name, 32, 256 << 30)).await.unwrap();
    };
    // All VMs start on n1 and use nine tenths of it. A copy takes five seconds, or six if two run at a time.
    add_node("n1").await;
    for number in 0..VMS {
        let rate = if number < 3 { "5000" } else { "800" };
        let vm = json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1", "kind": "VirtualMachine",
            "metadata": {"name": format!("vm-{number}"), "annotations": {launcher::DIRTY_RATE: rate}},
            "spec": {"resources": {"cpu": "2", "memory": "6Gi"}, "utilization": {"cpu": "0.9", "memory": "0.5"}},
        });
        site.vms.create(&PostParams::default(), &serde_json::from_value(vm).unwrap()).await.unwrap();
    }
    observer.until(TIMEOUT, "all VMs run", |now| now.rests(VMS)).await;
    add_node("n2").await;
    add_node("n3").await;

    for (number, part) in ["exporter", "webhook", "vm-controller"].into_iter().enumerate() {
        site.move_away(&format!("vm-{number}")).await;
        site.survives_without(part, "Eviction").await;
    }

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        json!({"metadata": {"name": names::NAMESPACE, "labels": {"openshift.io/cluster-monitoring": "true"}}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("operator.openshift.io", "v1", "KubeDescheduler"));
    let orders: Api<DynamicObject> = Api::namespaced_with(client, names::NAMESPACE, &kind);
    orders.create(&PostParams::default(), &serde_json::from_value(balancing_by_cpu()).unwrap()).await.unwrap();
    for part in ["descheduler-operator", "soft-tainter"] {
        site.survives_without(part, "Descheduler").await;
    }
    // The restarted parts continue to balance.
    site.parts["descheduler-operator"].shows("/health", r#""ready":true"#).await;
    let balanced = async || {
        let vms = site.vms.list(&ListParams::default()).await.unwrap();
        (vms.iter().filter(|vm| node(vm) == "n1").count() <= 7).then_some(())
    };
    within(TIMEOUT, "the descheduler goes on", balanced).await;
    orders.delete("cluster", &Default::default()).await.unwrap();
    observer.until(TIMEOUT, "every VM runs as one pod", |now| now.rests(VMS)).await;
    site.parts["exporter"].shows("/metrics", "node_vm_count{node=\"n1\"").await;

    let history = observer.history().await;
    history.check(&vm::VmControllerSettings::default());
    history.check_counted();
    history.each(|step| {
        if let Seen::Vm(vm) = step.seen
            && status(vm).evacuation_node_name.is_some()
        {
            let cause = eviction_cause(vm);
            let is_known = cause.as_deref().is_some_and(|cause| ["Eviction", "Descheduler"].contains(&cause));
            assert!(is_known, "{} is to move because of {cause:?}", vm.name_any());
        }
    });
    for (_, part) in site.parts {
        part.stop().await;
    }
}
