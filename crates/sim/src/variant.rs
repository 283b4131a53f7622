//! What a comparison compares: an algorithm with a threshold mode and limits.

use balance::{Algorithm, Classifier, Mode};

use crate::{scenario::Limits, settings::RunSettings};

/// An algorithm with a threshold mode and limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variant {
    pub algorithm: Algorithm,
    pub mode: Mode,
    pub limits: Limits,
}

impl Variant {
    /// The variant that the settings of a scenario are, with another algorithm.
    pub fn of(settings: &RunSettings, algorithm: Algorithm) -> Self {
        Self { algorithm, mode: settings.classifier.mode, limits: settings.limits }
    }

    /// Every algorithm with every mode and all limits. What is not given is as in the settings.
    pub fn all(settings: &RunSettings, algorithms: &[Algorithm], modes: &[Mode], limits: &[Limits]) -> Vec<Self> {
        let given = Self::of(settings, settings.algorithm);
        let modes = if modes.is_empty() { &[given.mode] } else { modes };
        let limits = if limits.is_empty() { &[given.limits] } else { limits };
        let with_limits = |algorithm: Algorithm, mode: Mode| {
            limits.iter().map(move |limits| Self { algorithm, mode, limits: *limits })
        };
        let with_modes = |algorithm: &Algorithm| {
            let algorithm = *algorithm;
            modes.iter().flat_map(move |mode| with_limits(algorithm, *mode))
        };
        algorithms.iter().flat_map(with_modes).collect()
    }

    /// The settings with this variant in them.
    pub fn in_settings(&self, settings: &RunSettings) -> RunSettings {
        let classifier = Classifier::new(self.mode, settings.classifier.semantics);
        RunSettings { algorithm: self.algorithm, classifier, limits: self.limits, ..*settings }
    }
}
