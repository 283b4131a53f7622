//! How long a scrape takes, from the index to the text: `cargo bench -p lab --bench exporter`.

use std::{hint::black_box, time::Duration};

use balance::{Capacity, PressureModel};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lab::{
    exporter::{Index, NodeSeen, PodSeen, Renderer, Stage, VmSeen},
    launcher::Load,
};

const VMS_PER_NODE: u32 = 50;

fn index(nodes: u32) -> Index {
    let mut index = Index::new(PressureModel::Reference);
    for node in 0..nodes {
        let name = format!("kwok-node-{node}");
        let seen = NodeSeen { name: name.clone(), capacity: Some(Capacity::REFERENCE) };
        index.apply_node(&seen, Duration::ZERO);
        for number in 0..VMS_PER_NODE {
            let vm = format!("vm-{node}-{number}");
            let pod = format!("virt-launcher-{vm}-abcde");
            let share = f64::from((node * 7919 + number * 104_729) % 1000) / 1000.0;
            let load = Some(Load { cpu_cores: share, memory_bytes: 4e9 * (1.0 - share) });
            let (namespace, stage) = ("default".to_owned(), Stage::Running);
            index.apply_vm(
                &VmSeen { namespace: namespace.clone(), name: vm.clone(), pod: Some(pod.clone()) },
                Duration::ZERO,
            );
            index.apply_pod(
                &PodSeen { namespace, name: pod, vm, node: Some(name.clone()), stage, load },
                Duration::ZERO,
            );
        }
    }
    index
}

fn scrape(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scrape");
    group.sample_size(20);
    for nodes in [500, 5_000] {
        let index = index(nodes);
        let mut renderer = Renderer::default();
        let bytes = renderer.render(&index.snapshot(Duration::from_secs(1))).len();
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{nodes}x{VMS_PER_NODE}")), |bencher| {
            bencher.iter(|| renderer.render(&black_box(&index).snapshot(Duration::from_secs(1_000))));
        });
    }
}

fn change(criterion: &mut Criterion) {
    let mut index = index(5_000);
    let mut group = criterion.benchmark_group("change");
    let mut turn = 0_u32;
    group.bench_function("one pod of 5000x50", |bencher| {
        bencher.iter(|| {
            turn += 1;
            let vm = "vm-42-7".to_owned();
            let load = Some(Load { cpu_cores: f64::from(turn % 2), memory_bytes: 1e9 });
            let (namespace, name) = ("default".to_owned(), format!("virt-launcher-{vm}-abcde"));
            let node = Some("kwok-node-42".to_owned());
            let pod = PodSeen { namespace, name, vm, node, stage: Stage::Running, load };
            index.apply_pod(&pod, Duration::from_millis(turn.into()));
        });
    });
}

criterion_group!(benches, scrape, change);
criterion_main!(benches);
