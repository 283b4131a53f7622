//! A random cluster with everything that takes part in a rollout: a scheduler, the operator, and stand-ins for the machine config
//! operator and KubeVirt, whose time is simulated.

use std::time::Duration;

use devcluster::{Cluster, Identity};
use jiff::{Timestamp, ToSpan};
use k8s_openapi::api::core::v1::Node;
use kube::{Api, api::ListParams};
use serde_json::{Value, json};
use standins::{
    Simulation,
    kubevirt::{KubeVirt, KubeVirtSettings},
    machine_config::{Machine, MachineConfigSettings, StandIn},
};
use testkit::{
    eventually,
    platform::{LOAD_AWARE, Platform},
    running_operator::RunningOperator,
};

use super::{
    guest::NAMESPACE,
    random_cluster::{GUARDED, RandomCluster},
};
use crate::support::{program, run_as, text};

/// What is known about times before the rollout, in seconds, and what they are in it.
const MIGRATIONS: [i64; 2] = [100, 140];
const MIGRATION: f64 = 120.0;
const REBOOTS: [i64; 2] = [60, 80];
const REBOOT: f64 = 70.0;
const APPLY: f64 = 90.0;

pub(super) struct Site {
    pub(super) platform: Platform,
    pub(super) operator: RunningOperator,
    simulation: Simulation,
    _machine_config: StandIn,
    kubevirt: KubeVirt,
}

impl Site {
    /// Ends when the plan waits for its review. Migrations and reboots take so many times as long as is known about them.
    pub(super) async fn start(cluster: &RandomCluster, slowness: f64) -> Site {
        let control_plane = Cluster::builder().scheduler().start().await.unwrap();
        let platform = Platform::on(control_plane).await;
        for kind in [
            "kubedescheduler-5.1",
            "machineconfig",
            "machineconfigpool",
            "machineconfignode",
            "machineconfiguration",
            "hyperconverged-v1beta1",
            "kubevirt",
            "virtualmachine",
            "virtualmachinepool",
            "virtualmachineinstancereplicaset",
            "virtualmachineinstance",
            "virtualmachineinstancemigration",
        ] {
            platform.define(&format!("{kind}.yaml")).await;
        }
        platform.populate().await;
        platform.install().await;
        create_past(&platform).await;
        create_nodes(&platform, cluster).await;
        create_guests(&platform, cluster).await;
        let slower = |seconds: f64| Duration::from_secs_f64(seconds * slowness);
        let settings = MachineConfigSettings {
            apply: slower(APPLY),
            reboot: slower(REBOOT),
            machine_config_nodes: true,
            ..MachineConfigSettings::default()
        };
        let client = || platform.client.clone();
        let simulation = Simulation::start(client(), Timestamp::now());
        let machine_config = StandIn::start_in(client(), settings, simulation.time());
        let failing = cluster.failing.iter().map(|it| (it.guest.clone(), it.times.unwrap_or(u32::MAX)));
        let settings = KubeVirtSettings {
            migration: slower(MIGRATION),
            shutdown: Duration::from_secs_f64(cluster.shutdown),
            failing: failing.collect(),
            ..KubeVirtSettings::default()
        };
        let kubevirt = KubeVirt::start_in(client(), settings, simulation.time()).await.unwrap();
        let operator = RunningOperator::start(&platform).await;
        let site = Site { platform, operator, simulation, _machine_config: machine_config, kubevirt };
        site.settle(cluster).await;
        site
    }

    /// Waits until all nodes are at rest, every guest has its pod, and the webhook answers.
    async fn settle(&self, cluster: &RandomCluster) {
        let nodes: Api<Node> = Api::all(self.platform.client.clone());
        eventually("all nodes are at rest", async || {
            let nodes = nodes.list(&ListParams::default()).await.unwrap();
            nodes.iter().map(Machine::of).all(|node| node.is_done() && node.is_in_service()).then_some(())
        })
        .await;
        let expected = cluster.guests.len() + usize::from(cluster.guarded.is_some());
        eventually("all pods are there", async || (self.list("pods").await.len() == expected).then_some(())).await;
        self.platform.configure(LOAD_AWARE, json!({"action": "DryRun"})).await;
        self.platform.until_phase(LOAD_AWARE, "ReviewRequired").await;
        eventually("KubeVirt itself says the same about every guest", async || {
            let report = self.report(&["--probe"]).await;
            let answers = report["probe"].as_array().unwrap();
            assert_eq!(answers.len(), cluster.guests.len(), "{report:#}");
            answers.iter().all(|answer| answer["agrees"] == true).then_some(())
        })
        .await;
    }

    /// The time of the stand-ins.
    pub(super) fn now(&self) -> Timestamp {
        self.simulation.time().now()
    }

    /// All objects of a kind in the namespace of the guests.
    pub(super) async fn list(&self, plural: &str) -> Vec<Value> {
        let group = if plural == "pods" { "/api/v1" } else { "/apis/kubevirt.io/v1" };
        let uri = format!("{group}/namespaces/{NAMESPACE}/{plural}");
        self.platform.request("GET", &uri, None, Value::Null).await["items"].as_array().unwrap().clone()
    }

    /// What `virt-advisor impact` says.
    pub(super) async fn impact(&self) -> Value {
        self.report(&[]).await["impact"].clone()
    }

    async fn report(&self, args: &[&str]) -> Value {
        self.run(&[&["impact", LOAD_AWARE, "-o", "json"], args].concat()).await["plans"][0].clone()
    }

    /// The virtual machines of which `virt-advisor status` says that they hold a node.
    pub(super) async fn holding(&self) -> Vec<Value> {
        let report = self.run(&["status", LOAD_AWARE, "-o", "json"]).await;
        report["configurations"][0]["guests"].as_array().unwrap().clone()
    }

    async fn run(&self, args: &[&str]) -> Value {
        let output = run_as(self.platform.cluster.access(), &Identity::Admin, &program(), args, &[]).await;
        assert!(output.status.success(), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Somebody shuts a guest down for good. Returns when it is gone.
    pub(super) async fn stop(&self, guest: &str) {
        self.platform
            .patch(
                "jane",
                &json!({
                    "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
                    "metadata": {"name": guest, "namespace": NAMESPACE}, "spec": {"runStrategy": "Halted"},
                }),
            )
            .await;
        eventually(format!("{guest} is off"), async || {
            let guests = self.list("virtualmachineinstances").await;
            let pods = self.list("pods").await;
            let is_gone = guests.iter().all(|it| it["metadata"]["name"] != guest);
            (is_gone && pods.iter().all(|pod| pod["metadata"]["annotations"]["kubevirt.io/domain"] != guest))
                .then_some(())
        })
        .await;
    }

    /// From now on migrations of this guest succeed.
    pub(super) fn mend(&self, guest: &str) {
        self.kubevirt.change(|settings| {
            settings.failing.remove(guest);
        });
    }

    pub(super) async fn remove_budget(&self) {
        self.platform.delete(&budget()).await;
    }
}

fn budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": GUARDED, "namespace": NAMESPACE},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": GUARDED}}},
    })
}

/// Migrations and reboots that were seen here.
async fn create_past(platform: &Platform) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE},
    });
    for object in [namespace, account] {
        platform.apply("installer", &object, "").await;
    }
    let start: Timestamp = "2026-01-10T08:00:00Z".parse().unwrap();
    let at = |seconds: i64| start.checked_add(seconds.seconds()).unwrap().to_string();
    for seconds in MIGRATIONS {
        let mut migration = json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstanceMigration",
            "metadata": {"name": format!("past-{seconds}"), "namespace": NAMESPACE}, "spec": {"vmiName": "past"},
        });
        platform.apply("installer", &migration, "").await;
        let phase = |phase: &str, time: String| json!({"phase": phase, "phaseTransitionTimestamp": time});
        let transitions = json!([phase("Scheduling", at(0)), phase("Succeeded", at(seconds))]);
        migration["status"] = json!({"phase": "Succeeded", "phaseTransitionTimestamps": transitions});
        platform.apply("installer", &migration, "/status").await;
    }
    for seconds in REBOOTS {
        for (reason, time) in [("Reboot", at(0)), ("NodeReady", at(seconds))] {
            let node = format!("past-{seconds}");
            let event = json!({
                "apiVersion": "v1", "kind": "Event", "reason": reason, "lastTimestamp": time,
                "metadata": {"name": format!("{node}.{}", reason.to_lowercase()), "namespace": "default"},
                "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": node},
            });
            platform.apply("installer", &event, "").await;
        }
    }
}

async fn create_nodes(platform: &Platform, cluster: &RandomCluster) {
    for (name, zone) in &cluster.nodes {
        let mut labels = json!({"node-role.kubernetes.io/worker": "", "kubernetes.io/hostname": name});
        if let Some(zone) = zone {
            labels["topology.kubernetes.io/zone"] = (*zone).into();
        }
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        platform.apply("installer", &node, "").await;
        let resources = json!({"cpu": "32", "memory": "64Gi", "pods": "250"});
        let ready = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is"}]);
        let status = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"capacity": resources, "allocatable": resources, "conditions": ready},
        });
        platform.apply("kubelet", &status, "/status").await;
        // The API server taints new nodes, and no controller is here to take the taint off.
        let untainted =
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"taints": null}});
        platform.patch("installer", &untainted).await;
    }
    let pool = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "worker"}, "spec": {"maxUnavailable": cluster.max_unavailable},
    });
    platform.patch("installer", &pool).await;
}

async fn create_guests(platform: &Platform, cluster: &RandomCluster) {
    let mut kubevirt = json!({
        "apiVersion": "kubevirt.io/v1", "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "openshift-cnv"},
        "spec": {"configuration": {
            "migrations": {"parallelOutboundMigrationsPerNode": cluster.migrations_per_node},
        }},
    });
    if let Some(strategy) = cluster.strategy {
        kubevirt["spec"]["configuration"]["evictionStrategy"] = strategy.into();
    }
    platform.apply("installer", &kubevirt, "").await;
    for guest in &cluster.guests {
        guest.create(platform).await;
    }
    let Some(node) = &cluster.guarded else { return };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": GUARDED, "namespace": NAMESPACE, "labels": {"app": GUARDED}},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "none"}]},
    });
    platform.apply("installer", &pod, "").await;
    // A budget does not protect pods that do not run yet.
    pod["status"] = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    platform.apply("kubelet", &pod, "/status").await;
    let mut budget = budget();
    platform.apply("installer", &budget, "").await;
    budget["status"] = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    });
    platform.apply("controllers", &budget, "/status").await;
}
