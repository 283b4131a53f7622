//! How long a scrape takes, from the index to the text: `cargo bench -p lab-parts --bench exporter`.

mod synthetic;

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lab_parts::{
    exporter::{ObservedPod, PodPhase, Renderer},
    launcher::Load,
};
use synthetic::{VMS_PER_NODE, index};

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
            let pod = ObservedPod { namespace, name, vm, node, phase: PodPhase::Running, load };
            index.apply_pod(&pod, Duration::from_millis(turn.into()));
        });
    });
}

criterion_group!(benches, scrape, change);
criterion_main!(benches);
