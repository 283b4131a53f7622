//! The measured clusters of both benchmarks. They are the same in every run.

use balance::{Algorithm, Buckets, Classifier, Mode, PressureModel, Scores, Semantics, Signals};

pub(crate) const SIZES: [usize; 5] = [12, 100, 1_000, 5_000, 50_000];

/// A random generator with a fixed stream: the committed instruction counts depend on it.
#[derive(Debug)]
pub(crate) struct Xorshift(u64);

impl Xorshift {
    pub(crate) fn new() -> Self {
        Xorshift(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// Demands as in the reference's measurements: CPU from 0.2 to 0.95, memory from 0.2 to 0.8.
pub(crate) fn demands(nodes: usize) -> (Vec<f64>, Vec<f64>) {
    let mut numbers = Xorshift::new();
    (0..nodes).map(|_| (0.2 + 0.75 * numbers.next(), 0.2 + 0.6 * numbers.next())).unzip()
}

pub(crate) fn cluster(nodes: usize) -> Signals {
    let (cpu, memory) = demands(nodes);
    let mut signals = Signals::new();
    PressureModel::Reference.fill(&cpu, &memory, &mut signals);
    signals
}

/// A classification as a simulator repeats it, with buffers that are reused.
#[derive(Debug)]
pub(crate) struct Classification {
    algorithm: Algorithm,
    classifier: Classifier,
    pub(crate) scores: Scores,
    pub(crate) buckets: Buckets,
}

impl Classification {
    pub(crate) fn new(algorithm: Algorithm, semantics: Semantics) -> Self {
        let classifier = Classifier::new(Mode::AsymmetricLow, semantics);
        Classification { algorithm, classifier, scores: Scores::new(), buckets: Buckets::new() }
    }

    /// Means, scores and buckets of all nodes.
    pub(crate) fn run(&mut self, signals: &Signals) {
        self.algorithm.score(signals, &mut self.scores);
        self.classifier.classify(&self.scores, &mut self.buckets);
    }
}
