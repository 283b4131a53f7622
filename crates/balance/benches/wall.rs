//! The duration of classifications: `cargo bench -p balance --bench wall [-- <filter>]`.

mod cases;

use std::{hint::black_box, time::Duration};

use balance::{Algorithm, Classifier, Means, Mode, PressureModel, Semantics, Signals, pareto};
use cases::{Classification, SIZES, Xorshift, cluster, demands};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Every algorithm, from signals to buckets, as the real descheduler compares.
fn classify(criterion: &mut Criterion) {
    for algorithm in Algorithm::all() {
        let mut group = criterion.benchmark_group(format!("classify {}", algorithm.slug().replace(':', " ")));
        for nodes in SIZES {
            let signals = cluster(nodes);
            let mut classification = Classification::new(algorithm, Semantics::Descheduler);
            group.throughput(Throughput::Elements(nodes as u64));
            group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| {
                bencher.iter(|| classification.run(black_box(&signals)));
            });
        }
    }
}

/// A step of a simulator in which the load of few nodes changes: their blocks of the means, all scores and buckets.
fn step(criterion: &mut Criterion) {
    const CHANGED: usize = 10;
    for semantics in Semantics::ALL {
        let mut group = criterion.benchmark_group(format!("step k3 {}", semantics.slug()));
        for nodes in SIZES {
            let mut signals = cluster(nodes);
            let mut means = Means::of(&signals);
            let mut numbers = Xorshift::new();
            let mut kept = Classification::new(Algorithm::amplified(3.0), semantics);
            let classifier = Classifier::new(Mode::AsymmetricLow, semantics);
            group.throughput(Throughput::Elements(nodes as u64));
            group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| {
                bencher.iter(|| {
                    for _ in 0..CHANGED {
                        let node = (numbers.next() * nodes as f64) as usize;
                        signals.set(node, PressureModel::Reference.signals(numbers.next(), numbers.next()));
                        means.update(&signals, node);
                    }
                    Algorithm::amplified(3.0).score_with(&signals, &means, &mut kept.scores);
                    classifier.classify(&kept.scores, &mut kept.buckets);
                });
            });
        }
    }
}

/// The four signals of all nodes from their demands.
fn pressures(criterion: &mut Criterion) {
    for model in PressureModel::ALL {
        let mut group = criterion.benchmark_group(format!("pressures {}", model.slug()));
        let (cpu, memory) = demands(5_000);
        let mut signals = Signals::new();
        group.throughput(Throughput::Elements(5_000));
        group.bench_function(BenchmarkId::from_parameter(5_000), |bencher| {
            bencher.iter(|| model.fill(black_box(&cpu), &memory, &mut signals));
        });
    }
}

/// The ranking alone, on points that make simpler algorithms quadratic.
fn fronts(criterion: &mut Criterion) {
    type Shape = (&'static str, fn(&mut Xorshift, f64) -> [f64; 4]);
    let shapes: [Shape; 4] = [
        ("random", |numbers, _| [numbers.next(), numbers.next(), numbers.next(), numbers.next()]),
        ("chain", |_, at| [at; 4]),
        ("one front", |_, at| [at, 1.0 - at, at, 1.0 - at]),
        ("one front in space", |numbers, _| {
            let [a, b, c] = [0; 3].map(|_| numbers.next() / 3.0);
            [a, b, c, 1.0 - a - b - c]
        }),
    ];
    for (name, shape) in shapes {
        let mut group = criterion.benchmark_group(format!("fronts {name}"));
        for nodes in [5_000_u32, 50_000] {
            let mut numbers = Xorshift::new();
            let signals: Signals = (0..nodes).map(|at| shape(&mut numbers, f64::from(at) / f64::from(nodes))).collect();
            group.bench_function(BenchmarkId::from_parameter(nodes), |bencher| {
                bencher.iter(|| pareto::fronts(black_box(&signals)));
            });
        }
    }
}

fn quick() -> Criterion {
    Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
}

criterion_group!(name = all; config = quick(); targets = classify, step, pressures, fronts);
criterion_main!(all);
