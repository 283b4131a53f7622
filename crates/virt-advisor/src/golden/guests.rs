//! Three workers with guests of every class, for screens that tell what a plan does to them.

use advisor::{
    approving::Question,
    blast_radius::{
        BlastRadius, Budget, Instance, MachinePool, Node, ObservedCluster, ObservedMigration, PlanContents, Platform,
        Pod, Reading, VirtualMachine, blast_radius,
    },
};
use api::{VirtPlatformConfig, virt_platform_config::Profile};
use serde_json::{Value, json};

const NODES: [&str; 3] =
    ["wörker-0.rack-1.example.com", "wörker-1.rack-1.example.com", "wörker-2.rack-größer.example.com"];

/// A plan that reboots the workers and waits for a review.
pub(crate) fn waiting() -> VirtPlatformConfig {
    super::config(Profile::LoadAwareRebalancing, "ReviewRequired", Some(&super::plan()), |_| {})
}

/// What a plan does, as somebody sees it who may not read everything.
pub(crate) fn radius(config: &VirtPlatformConfig) -> BlastRadius {
    let status = config.status.as_ref().unwrap();
    blast_radius(PlanContents { items: &status.items, risks: &status.risks }, &observed())
}

/// Every risk of a plan, and an item that somebody has changed since.
pub(crate) fn questions(radius: &BlastRadius) -> Vec<Question> {
    let fields = ["spec.deschedulingIntervalSeconds", "spec.profileCustomizations.devEnableSoftTainter"];
    let item =
        Question::Item { name: "enable-load-aware-descheduling".into(), fields: fields.map(str::to_owned).into() };
    radius.risks.iter().cloned().map(Question::Risk).chain([item]).collect()
}

fn observed() -> ObservedCluster {
    ObservedCluster {
        namespace: None,
        topology: Reading::Read("HighlyAvailable".into()),
        nodes: read(NODES.iter().enumerate().map(|(number, name)| node(name, number)).collect(), Node::of),
        pools: read(vec![pool()], MachinePool::of),
        instances: read(guests().into_iter().map(instance).collect(), Instance::of),
        virtual_machines: read(guests().into_iter().map(machine).collect(), VirtualMachine::of),
        platform: Reading::Read(Platform::of(&json!({"spec": {}}))),
        migrations: read(Vec::new(), |object| Some(ObservedMigration::of(object))),
        budgets: read(vec![budget()], Budget::of),
        pods: read(guests().into_iter().map(launcher).collect(), Pod::of),
        reboots: Reading::NotServed,
        operations: Reading::Unreadable("forbidden (403)".into()),
    }
}

fn read<T>(objects: Vec<Value>, of: fn(&Value) -> Option<T>) -> Reading<Vec<T>> {
    Reading::Read(objects.iter().filter_map(of).collect())
}

#[derive(Clone, Copy)]
struct Guest {
    name: &'static str,
    node: usize,
    strategy: &'static str,
    /// Why it cannot be moved.
    problem: Option<(&'static str, &'static str)>,
    run_strategy: &'static str,
}

fn guests() -> Vec<Guest> {
    let disk = (
        "DisksNotLiveMigratable",
        "cannot migrate VMI: PVC daten-größer is not shared, live migration requires that all PVCs must be shared (using ReadWriteMany access mode)",
    );
    let device = ("HostDeviceNotLiveMigratable", "VMI uses a PCI host device");
    let guest = |name, node, strategy, problem, run_strategy| Guest { name, node, strategy, problem, run_strategy };
    vec![
        guest("web-1", 0, "LiveMigrate", None, "Always"),
        guest("web-東京", 1, "LiveMigrate", None, "Always"),
        guest("db-1", 0, "LiveMigrate", Some(device), "Always"),
        guest("batch", 1, "None", None, "Always"),
        guest("console-made", 2, "LiveMigrateIfPossible", Some(disk), "RerunOnFailure"),
    ]
}

fn node(name: &str, number: usize) -> Value {
    let zone = ["eu-central-1a", "eu-central-1a", "eu-central-1b"][number];
    let labels = json!({"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": zone});
    json!({
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels},
        "spec": {"providerID": "aws:///x"},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "250"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn pool() -> Value {
    let selector = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    json!({"metadata": {"name": "worker"}, "spec": {"nodeSelector": selector, "maxUnavailable": 1}})
}

fn instance(guest: Guest) -> Value {
    let (status, (reason, message)) = guest.problem.map_or(("True", ("", "")), |problem| ("False", problem));
    json!({
        "metadata": {
            "namespace": "guests", "name": guest.name, "uid": guest.name,
            "ownerReferences": [{"kind": "VirtualMachine", "name": guest.name, "controller": true}],
        },
        "spec": {"evictionStrategy": guest.strategy, "domain": {"memory": {"guest": "4Gi"}}},
        "status": {
            "phase": "Running", "nodeName": NODES[guest.node],
            "conditions": [{"type": "LiveMigratable", "status": status, "reason": reason, "message": message}],
        },
    })
}

fn machine(guest: Guest) -> Value {
    json!({"metadata": {"namespace": "guests", "name": guest.name}, "spec": {"runStrategy": guest.run_strategy}})
}

fn launcher(guest: Guest) -> Value {
    let labels = json!({"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": guest.name, "app": guest.name});
    json!({
        "metadata": {"namespace": "guests", "name": format!("virt-launcher-{}", guest.name), "labels": labels},
        "spec": {
            "nodeName": NODES[guest.node],
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}],
        },
        "status": {"phase": "Running"},
    })
}

/// Allows no disruption now.
fn budget() -> Value {
    json!({
        "metadata": {"namespace": "guests", "name": "batch-must-run"},
        "spec": {"selector": {"matchLabels": {"app": "batch"}}},
        "status": {"disruptionsAllowed": 0},
    })
}
