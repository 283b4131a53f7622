//! The 20 algorithms by name, with their parameters: the 19 of the reference, and one that was searched for. Their definitions are in
//! the submodules, by family.

mod deviation;
mod distance;
mod extremes;
mod simple;

use std::{borrow::Cow, fmt, str::FromStr};

use crate::{
    error::{ParameterError, Unknown, fold},
    expression::{Formula, Op},
    signals::Signal,
};

/// The weights of the four signals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights {
    pub cpu_usage: f64,
    pub cpu_pressure: f64,
    pub memory_usage: f64,
    pub memory_pressure: f64,
}

impl Weights {
    const fn of(usage: f64, pressure: f64) -> Self {
        Weights { cpu_usage: usage, cpu_pressure: pressure, memory_usage: usage, memory_pressure: pressure }
    }

    fn sum(&self) -> f64 {
        self.cpu_usage + self.cpu_pressure + self.memory_usage + self.memory_pressure
    }
}

/// The weights of use and pressure of one resource.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Focus {
    pub usage: f64,
    pub pressure: f64,
}

/// A way to score nodes by their load, with its parameters. Every score is from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Algorithm {
    WeightedAverage(Weights),
    MaxMetric,
    EuclideanDistance,
    PressureFocused { pressure_multiplier: f64 },
    WeightedRmsPositiveDeviation(Weights),
    WeightedMeanSquarePositiveDeviation(Weights),
    LinearWeightedPositiveDeviation(Weights),
    ParetoFront,
    CentroidDistance,
    DirectionalCentroidDistance,
    VarianceMinimization(Weights),
    DirectionalVarianceMinimization(Weights),
    CriticalDimensionFocus,
    IdealPointPositiveDistance,
    LinearAmplifiedIdealPointPositiveDistance { sensitivity: f64 },
    CpuFocused(Focus),
    MemoryFocused(Focus),
    HottestToColdest { gap: f64, width: f64 },
}

/// Receives an algorithm's definition. Every use of the definitions is a visitor.
pub(crate) trait Visitor {
    type Output;

    /// The expression is the score.
    fn plain(self, expression: impl Op) -> Self::Output;

    /// The score is the expression divided by its greatest value of any node.
    fn normalized(self, expression: impl Op) -> Self::Output;

    /// The score is no expression: it compares nodes with each other.
    fn pareto_front(self) -> Self::Output;
}

use Algorithm::*;

impl Algorithm {
    /// All 20: those of the reference, and then the one that a search found with the simulator.
    pub const fn all() -> [Algorithm; 20] {
        let mut all = [HottestToColdest { gap: 0.093, width: 0.0 }; 20];
        let reference = Algorithm::of_the_reference();
        let mut at = 0;
        while at < reference.len() {
            all[at] = reference[at];
            at += 1;
        }
        all
    }

    /// The 19 in the reference's order, with the reference's parameters.
    pub const fn of_the_reference() -> [Algorithm; 19] {
        [
            WeightedAverage(Weights::of(0.25, 0.25)),
            MaxMetric,
            EuclideanDistance,
            PressureFocused { pressure_multiplier: 2.0 },
            WeightedRmsPositiveDeviation(Weights::of(0.15, 0.35)),
            WeightedMeanSquarePositiveDeviation(Weights::of(0.15, 0.35)),
            LinearWeightedPositiveDeviation(Weights::of(0.15, 0.35)),
            ParetoFront,
            CentroidDistance,
            DirectionalCentroidDistance,
            VarianceMinimization(Weights::of(1.0, 2.0)),
            DirectionalVarianceMinimization(Weights::of(1.0, 2.0)),
            CriticalDimensionFocus,
            IdealPointPositiveDistance,
            Algorithm::amplified(1.0),
            Algorithm::amplified(3.0),
            Algorithm::amplified(5.0),
            CpuFocused(Focus { usage: 0.7, pressure: 0.3 }),
            MemoryFocused(Focus { usage: 0.7, pressure: 0.3 }),
        ]
    }

    /// Linear Amplified Ideal Point Positive Distance with sensitivity `k`. The lab of the requirements uses `k` = 3.
    pub const fn amplified(k: f64) -> Algorithm {
        LinearAmplifiedIdealPointPositiveDistance { sensitivity: k }
    }

    /// Passes the definition to `visitor`. Scores, formulas and PromQL are all derived from it.
    pub(crate) fn define<V: Visitor>(&self, visitor: V) -> V::Output {
        match *self {
            WeightedAverage(weights) => visitor.plain(simple::weighted_average(weights)),
            MaxMetric => visitor.plain(simple::max_metric()),
            EuclideanDistance => visitor.plain(distance::euclidean()),
            PressureFocused { pressure_multiplier } => visitor.plain(simple::pressure_focused(pressure_multiplier)),
            WeightedRmsPositiveDeviation(weights) => visitor.plain(deviation::weighted_rms(weights)),
            WeightedMeanSquarePositiveDeviation(weights) => visitor.plain(deviation::weighted_mean_square(weights)),
            LinearWeightedPositiveDeviation(weights) => visitor.plain(deviation::linear_weighted(weights)),
            ParetoFront => visitor.pareto_front(),
            CentroidDistance => visitor.normalized(distance::centroid()),
            DirectionalCentroidDistance => visitor.normalized(distance::directional_centroid()),
            VarianceMinimization(weights) => visitor.normalized(deviation::variance(weights)),
            DirectionalVarianceMinimization(weights) => visitor.normalized(deviation::directional_variance(weights)),
            CriticalDimensionFocus => visitor.normalized(deviation::critical_dimension()),
            IdealPointPositiveDistance => visitor.plain(distance::ideal_point()),
            LinearAmplifiedIdealPointPositiveDistance { sensitivity } => {
                visitor.plain(distance::amplified_ideal_point(sensitivity))
            }
            CpuFocused(focus) => visitor.plain(simple::cpu_focused(focus)),
            MemoryFocused(focus) => visitor.plain(simple::memory_focused(focus)),
            HottestToColdest { gap, width } => visitor.plain(extremes::hottest_to_coldest(gap, width)),
        }
    }

    /// The name as the reference prints it.
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            LinearAmplifiedIdealPointPositiveDistance { sensitivity } => {
                format!("{} (k={sensitivity:?})", self.family()).into()
            }
            _ => self.family().into(),
        }
    }

    /// The name without parameters.
    fn family(&self) -> &'static str {
        match self {
            WeightedAverage(_) => "Weighted Average",
            MaxMetric => "Max Metric",
            EuclideanDistance => "Euclidean Distance",
            PressureFocused { .. } => "Pressure Focused",
            WeightedRmsPositiveDeviation(_) => "Weighted RMS Positive Deviation",
            WeightedMeanSquarePositiveDeviation(_) => "Weighted Mean Square Positive Deviation",
            LinearWeightedPositiveDeviation(_) => "Linear Weighted Positive Deviation",
            ParetoFront => "Pareto Front (NSGA-II)",
            CentroidDistance => "Centroid Distance",
            DirectionalCentroidDistance => "Directional Centroid Distance",
            VarianceMinimization(_) => "Variance Minimization",
            DirectionalVarianceMinimization(_) => "Directional Variance Minimization",
            CriticalDimensionFocus => "Critical Dimension Focus",
            IdealPointPositiveDistance => "Ideal Point Positive Distance",
            LinearAmplifiedIdealPointPositiveDistance { .. } => "Linear Amplified Ideal Point Positive Distance",
            CpuFocused(_) => "CPU Focused",
            MemoryFocused(_) => "MEMORY Focused",
            HottestToColdest { .. } => "Hottest To Coldest",
        }
    }

    /// The name in series and on command lines: `linear_amplified_ideal_point_positive_distance:k3`.
    pub fn slug(&self) -> String {
        match self {
            ParetoFront => "pareto_front".to_owned(),
            LinearAmplifiedIdealPointPositiveDistance { sensitivity } => {
                format!("{}:k{}", snake(self.family()), sensitivity.to_string().replace('.', "_"))
            }
            _ => snake(self.family()),
        }
    }

    /// The definition as data.
    pub fn formula(&self) -> Formula {
        struct AsFormula;
        impl Visitor for AsFormula {
            type Output = Formula;

            fn plain(self, expression: impl Op) -> Formula {
                expression.formula()
            }

            fn normalized(self, expression: impl Op) -> Formula {
                Formula::Normalized(Box::new(expression.formula()))
            }

            fn pareto_front(self) -> Formula {
                Formula::ParetoFront
            }
        }
        self.define(AsFormula)
    }

    /// Whether a node's score depends on the other nodes.
    pub fn is_relative(&self) -> bool {
        fn relative(formula: &Formula) -> bool {
            match formula {
                Formula::Deviation(_) | Formula::Excess(_) | Formula::Critical | Formula::ParetoFront => true,
                Formula::Normalized(_) | Formula::AboveLowest(_) | Formula::BelowHighest(_) => true,
                other => other.parts().into_iter().any(relative),
            }
        }
        relative(&self.formula())
    }

    /// Whether the score compares this signal with the lowest and the highest of all nodes.
    pub(crate) fn uses_extremes(&self, signal: Signal) -> bool {
        fn uses(formula: &Formula, signal: Signal) -> bool {
            match formula {
                Formula::AboveLowest(of) | Formula::BelowHighest(of) => *of == signal,
                other => other.parts().into_iter().any(|part| uses(part, signal)),
            }
        }
        uses(&self.formula(), signal)
    }

    /// The parameters by name, with their values.
    pub fn parameters(&self) -> Vec<(&'static str, f64)> {
        let mut copy = *self;
        copy.slots().into_iter().map(|(name, value)| (name, *value)).collect()
    }

    /// The same algorithm with one parameter changed.
    pub fn with(mut self, parameter: &str, value: f64) -> Result<Self, ParameterError> {
        let (algorithm, before) = (self.name().into_owned(), self);
        let mut slots = self.slots();
        let known = slots.iter().map(|(name, _)| *name).collect();
        let Some((parameter, slot)) = slots.iter_mut().find(|(name, _)| *name == parameter) else {
            return Err(ParameterError::Unknown { algorithm, given: parameter.to_owned(), known });
        };
        let wrong = |expected| Err(ParameterError::Value { algorithm, parameter, value, expected });
        if !value.is_finite() || value < 0.0 {
            return wrong("a number that is not negative");
        }
        **slot = value;
        if matches!(before, LinearAmplifiedIdealPointPositiveDistance { .. }) && value == 0.0 {
            return wrong("a number greater than 0");
        }
        match self {
            WeightedRmsPositiveDeviation(weights) | WeightedMeanSquarePositiveDeviation(weights)
                if weights.sum() <= 0.0 =>
            {
                wrong("a weight that leaves the sum of all greater than 0")
            }
            _ => Ok(self),
        }
    }

    fn slots(&mut self) -> Vec<(&'static str, &mut f64)> {
        match self {
            WeightedAverage(weights) => {
                slots(weights, ["cpu_weight", "cpu_pressure_weight", "memory_weight", "memory_pressure_weight"])
            }
            WeightedRmsPositiveDeviation(weights)
            | WeightedMeanSquarePositiveDeviation(weights)
            | LinearWeightedPositiveDeviation(weights)
            | VarianceMinimization(weights)
            | DirectionalVarianceMinimization(weights) => slots(
                weights,
                ["cpu_usage_weight", "cpu_pressure_weight", "memory_usage_weight", "memory_pressure_weight"],
            ),
            PressureFocused { pressure_multiplier } => vec![("pressure_multiplier", pressure_multiplier)],
            LinearAmplifiedIdealPointPositiveDistance { sensitivity } => vec![("sensitivity", sensitivity)],
            CpuFocused(focus) | MemoryFocused(focus) => {
                vec![("usage_weight", &mut focus.usage), ("pressure_weight", &mut focus.pressure)]
            }
            HottestToColdest { gap, width } => vec![("gap", gap), ("width", width)],
            MaxMetric
            | EuclideanDistance
            | ParetoFront
            | CentroidDistance
            | DirectionalCentroidDistance
            | CriticalDimensionFocus
            | IdealPointPositiveDistance => Vec::new(),
        }
    }
}

fn slots<'a>(weights: &'a mut Weights, names: [&'static str; 4]) -> Vec<(&'static str, &'a mut f64)> {
    let Weights { cpu_usage, cpu_pressure, memory_usage, memory_pressure } = weights;
    names.into_iter().zip([cpu_usage, cpu_pressure, memory_usage, memory_pressure]).collect()
}

fn snake(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "_")
}

impl Default for Algorithm {
    /// The algorithm of the requirements' lab.
    fn default() -> Self {
        Algorithm::amplified(3.0)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name())
    }
}

impl FromStr for Algorithm {
    type Err = Unknown;

    /// Parses a name or a slug; case, spaces and punctuation do not matter. `k<number>` is short for the amplified one.
    fn from_str(text: &str) -> Result<Self, Unknown> {
        let given = fold(text);
        let is = |algorithm: &Algorithm| given == fold(&algorithm.name()) || given == fold(&algorithm.slug());
        if let Some(found) = Algorithm::all().into_iter().find(is) {
            return Ok(found);
        }
        if given == "paretofront" {
            return Ok(ParetoFront);
        }
        match sensitivity(text) {
            Some(k) if k.is_finite() && k > 0.0 => Ok(Algorithm::amplified(k)),
            _ => Err(Unknown::new("algorithm", text, Algorithm::all().map(|algorithm| algorithm.slug()))),
        }
    }
}

/// The `k` of `k3`, of `linear_amplified_ideal_point_positive_distance:k2_5` or of `... (k=2.5)`.
fn sensitivity(text: &str) -> Option<f64> {
    let text = text.trim().to_ascii_lowercase();
    let (family, k) = text.rsplit_once('k')?;
    if !family.is_empty() && fold(family) != "linearamplifiedidealpointpositivedistance" {
        return None;
    }
    k.trim_matches(['=', ')', ' ']).replace('_', ".").parse().ok()
}
