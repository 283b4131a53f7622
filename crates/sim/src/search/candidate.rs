//! What is searched: algorithms with parameters, threshold modes and limits, each of which an unmodified descheduler can use.

use balance::{Algorithm, Mode, Weights};
use serde::Serialize;

use crate::{scenario::Limits, settings::RunSettings, variant::Variant};

/// A score with thresholds and limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    pub variant: Variant,
}

/// A candidate as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    pub algorithm: String,
    pub parameters: Vec<(&'static str, f64)>,
    pub mode: &'static str,
    pub limits: Limits,
}

/// The limits that are tried: evictions in all and from one node, each minute.
const LIMITS: [Limits; 4] = [
    Limits { total: 1, per_node: 1 },
    Limits { total: 2, per_node: 1 },
    Limits { total: 5, per_node: 1 },
    Limits { total: 5, per_node: 2 },
];

impl Candidate {
    pub fn in_settings(&self, settings: &RunSettings) -> RunSettings {
        RunSettings { measure: false, ..self.variant.in_settings(settings) }
    }

    pub fn describe(&self) -> Described {
        let Variant { algorithm, mode, limits } = self.variant;
        let name = algorithm.name().into_owned();
        Described { algorithm: name, parameters: algorithm.parameters(), mode: mode.slug(), limits }
    }

    /// Neighbors in the space of parameters, for the last steps of the search.
    pub fn neighbors(&self) -> Vec<Self> {
        let Variant { algorithm, .. } = self.variant;
        let changed = |name: &'static str, value: f64| {
            [0.7, 0.85, 0.93, 1.07, 1.15, 1.4].into_iter().filter_map(move |factor| {
                let algorithm = algorithm.with(name, thousandths(value * factor)).ok()?;
                Some(Self { variant: Variant { algorithm, ..self.variant } })
            })
        };
        algorithm.parameters().into_iter().flat_map(|(name, value)| changed(name, value)).collect()
    }
}

fn thousandths(value: f64) -> f64 {
    libm::round(value * 1000.0) / 1000.0
}

/// The algorithms of the project, with the parameters that they ship with.
pub fn shipped() -> Vec<Candidate> {
    with_modes_and_limits(&Algorithm::all())
}

/// Scores that are searched: shapes of the shipped ones for CPU use alone, and the one that looks at the extremes.
pub fn space() -> Vec<Candidate> {
    let weights = |usage: f64| Weights { cpu_usage: usage, cpu_pressure: 0.0, memory_usage: 0.0, memory_pressure: 0.0 };
    let mut algorithms = Vec::new();
    for factor in [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0] {
        algorithms.push(Algorithm::LinearWeightedPositiveDeviation(weights(factor)));
        algorithms.push(Algorithm::WeightedAverage(weights(factor)));
        algorithms.push(Algorithm::amplified(factor));
    }
    for gap in [0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3] {
        for width in [0.0, 0.01, 0.02, 0.04, 0.08] {
            algorithms.push(Algorithm::HottestToColdest { gap, width });
        }
    }
    with_modes_and_limits(&algorithms)
}

fn with_modes_and_limits(algorithms: &[Algorithm]) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for algorithm in algorithms {
        for mode in Mode::ALL {
            let with = |limits| Candidate { variant: Variant { algorithm: *algorithm, mode, limits } };
            candidates.extend(LIMITS.map(with));
        }
    }
    candidates
}
