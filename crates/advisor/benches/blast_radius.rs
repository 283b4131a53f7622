//! What the blast radius of a large cluster costs, apart from reading it: `cargo bench -p advisor --bench blast_radius`.
//!
//! Sizes grow tenfold, so that the cost per virtual machine shows whether it grows with the cluster.

use std::{hint::black_box, time::Duration};

use advisor::blast_radius::{
    Budget, Instance, MachinePool, Node, ObservedCluster, PlanContents, Platform, Pod, Reading, VirtualMachine,
    blast_radius,
};
use api::virt_platform_config::{ImpactDetail, Item, PoolImpact};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::{Value, json};

const PODS_PER_NODE: usize = 30;
/// Each application has a budget, and every other one of them is at its limit.
const APPS_PER_NODE: usize = 3;

fn node(number: usize) -> Value {
    let zone = format!("zone-{}", number % 3);
    json!({
        "metadata": {
            "name": format!("worker-{number}"), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"node-role.kubernetes.io/worker": "", "topology.kubernetes.io/zone": zone},
        },
        "status": {
            "allocatable": {"cpu": "128", "memory": "512Gi", "pods": "500"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}

fn instance(number: usize, nodes: usize) -> Value {
    let strategy = ["LiveMigrate", "LiveMigrate", "LiveMigrate", "LiveMigrateIfPossible", "None"][number % 5];
    let status = if number.is_multiple_of(50) { "False" } else { "True" };
    json!({
        "metadata": {
            "namespace": "guests", "name": format!("vm-{number}"), "uid": format!("uid-{number}"),
            "ownerReferences": [{"kind": "VirtualMachine", "name": format!("vm-{number}"), "controller": true}],
        },
        "spec": {"evictionStrategy": strategy, "domain": {"memory": {"guest": "8Gi"}}},
        "status": {
            "phase": "Running", "nodeName": format!("worker-{}", number % nodes),
            "conditions": [{"type": "LiveMigratable", "status": status, "reason": "DisksNotLiveMigratable"}],
        },
    })
}

fn machine(number: usize) -> Value {
    json!({"metadata": {"namespace": "guests", "name": format!("vm-{number}")}, "spec": {"runStrategy": "Always"}})
}

fn budget(number: usize) -> Value {
    json!({
        "metadata": {"namespace": "guests", "name": format!("app-{number}")},
        "spec": {"selector": {"matchLabels": {"app": format!("app-{number}")}}},
        "status": {"disruptionsAllowed": number % 2},
    })
}

fn pod(name: String, node: usize, labels: &Value, memory: &str) -> Value {
    json!({
        "metadata": {"namespace": "guests", "name": name, "labels": labels},
        "spec": {
            "nodeName": format!("worker-{node}"),
            "containers": [{"resources": {"requests": {"cpu": "500m", "memory": memory}}}],
        },
    })
}

fn read<T>(count: usize, object: impl Fn(usize) -> Value, of: fn(&Value) -> Option<T>) -> Reading<Vec<T>> {
    Reading::Read((0..count).filter_map(|number| of(&object(number))).collect())
}

fn cluster(nodes: usize, guests: usize) -> ObservedCluster {
    let apps = nodes * APPS_PER_NODE;
    let other = |number: usize| {
        let labels = json!({"app": format!("app-{}", number % apps)});
        pod(format!("pod-{number}"), number % nodes, &labels, "256Mi")
    };
    let launcher = |number: usize| {
        let labels = json!({"kubevirt.io": "virt-launcher", "kubevirt.io/created-by": format!("uid-{number}")});
        pod(format!("virt-launcher-vm-{number}"), number % nodes, &labels, "8448Mi")
    };
    let all = |number: usize| if number < guests { launcher(number) } else { other(number) };
    let selector = json!({"matchLabels": {"node-role.kubernetes.io/worker": ""}});
    let pool = json!({"metadata": {"name": "worker"}, "spec": {"nodeSelector": selector, "maxUnavailable": "2%"}});
    ObservedCluster {
        namespace: None,
        topology: Reading::Read("HighlyAvailable".into()),
        nodes: read(nodes, node, Node::of),
        pools: Reading::Read(MachinePool::of(&pool).into_iter().collect()),
        instances: read(guests, |number| instance(number, nodes), Instance::of),
        virtual_machines: read(guests, machine, VirtualMachine::of),
        platform: Reading::Read(Platform::of(&json!({}))),
        migrations: Reading::Read(Vec::new()),
        budgets: read(apps, budget, Budget::of),
        pods: read(guests + nodes * PODS_PER_NODE, all, Pod::of),
        reboots: Reading::Read(Vec::new()),
        operations: Reading::NotServed,
    }
}

fn plan() -> Vec<Item> {
    let pools = vec![PoolImpact { name: "worker".into(), ..PoolImpact::default() }];
    vec![Item { name: "psi".into(), impact_detail: Some(ImpactDetail { reboot: true, pools }), ..Item::default() }]
}

/// In MiB, where Linux tells.
fn resident_memory() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? / 1024)
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blast radius");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    let items = plan();
    for (nodes, guests) in [(5, 100), (50, 1_000), (500, 10_000)] {
        let before = resident_memory();
        let observed = cluster(nodes, guests);
        if let Some((before, after)) = before.zip(resident_memory()) {
            println!("what is kept of {nodes} nodes with {guests} guests: {} MiB", after.saturating_sub(before));
        }
        group.throughput(Throughput::Elements(guests as u64));
        group.bench_with_input(BenchmarkId::new(format!("{nodes} nodes"), guests), &observed, |bencher, observed| {
            bencher.iter(|| blast_radius(PlanContents { items: &items, risks: &[] }, black_box(observed)));
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
