//! How much pressure a node's load puts on it: the reference's model to the bit, and one without its drop at 70 %.

use std::{fmt, str::FromStr};

use crate::{error::Unknown, signals::Signals};

/// The pressure at full use. Demand beyond full use adds half of the excess, up to 1.
const AT_FULL_USE: f64 = 0.8;

/// The pressure (PSI) that a load causes. Both models agree from 90 % of use upwards and below 70 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PressureModel {
    /// The reference's: pressure rises to 0.049 just below 70 % of use, *falls to 0 there*, and rises again to 0.2 at
    /// 90 %.
    #[default]
    Reference,
    /// From 70 % to 90 % it goes straight from 0.049 to 0.2, so that more load never means less pressure.
    Continuous,
}

impl PressureModel {
    pub const ALL: [PressureModel; 2] = [PressureModel::Reference, PressureModel::Continuous];

    pub const fn slug(self) -> &'static str {
        match self {
            PressureModel::Reference => "reference",
            PressureModel::Continuous => "continuous",
        }
    }

    /// CPU pressure by demand, as a share of the node's cores. Demand can exceed 1, because CPU is shared.
    #[inline]
    pub fn cpu(self, demand: f64) -> f64 {
        let within = self.at_use(demand);
        let beyond = at_most_one(AT_FULL_USE + 0.5 * (demand - 1.0));
        if demand <= 1.0 { within } else { beyond }
    }

    /// Memory pressure by use, as a share of the node's memory; use beyond 1 counts as 1.
    #[inline]
    pub fn memory(self, usage: f64) -> f64 {
        self.at_use(at_most_one(usage))
    }

    /// The four signals of a node with these demands, as shares of its size.
    #[inline]
    pub fn signals(self, cpu_demand: f64, memory_demand: f64) -> [f64; 4] {
        [at_most_one(cpu_demand), self.cpu(cpu_demand), at_most_one(memory_demand), self.memory(memory_demand)]
    }

    /// [`PressureModel::signals`] for all nodes at once.
    pub fn fill(self, cpu_demand: &[f64], memory_demand: &[f64], signals: &mut Signals) {
        let nodes = cpu_demand.len();
        assert_eq!(nodes, memory_demand.len(), "one CPU and one memory demand per node");
        let Signals { cpu_usage, cpu_pressure, memory_usage, memory_pressure } = signals;
        for column in [&mut *cpu_usage, &mut *cpu_pressure, &mut *memory_usage, &mut *memory_pressure] {
            column.resize(nodes, 0.0);
        }
        let apply = |to: &mut [f64], from: &[f64], of: fn(f64) -> f64| {
            to.iter_mut().zip(from).for_each(|(to, &from)| *to = of(from));
        };
        apply(cpu_usage, cpu_demand, at_most_one);
        apply(memory_usage, memory_demand, at_most_one);
        match self {
            PressureModel::Reference => {
                apply(cpu_pressure, cpu_demand, |demand| PressureModel::Reference.cpu(demand));
                apply(memory_pressure, memory_demand, |usage| PressureModel::Reference.memory(usage));
            }
            PressureModel::Continuous => {
                apply(cpu_pressure, cpu_demand, |demand| PressureModel::Continuous.cpu(demand));
                apply(memory_pressure, memory_demand, |usage| PressureModel::Continuous.memory(usage));
            }
        }
    }

    /// All three branches are computed and one is selected, so that the compiler can vectorize.
    #[inline]
    fn at_use(self, usage: f64) -> f64 {
        let linear = 0.07 * usage;
        let low = if linear < 0.05 { linear } else { 0.05 };
        let middle = match self {
            PressureModel::Reference => 0.20 * (usage - 0.7) / 0.2,
            PressureModel::Continuous => 0.049 + 0.151 * ((usage - 0.7) / 0.2),
        };
        let above = (usage - 0.9) / 0.1;
        let high = 0.20 + 0.60 * (above * above);
        if usage < 0.7 {
            low
        } else if usage < 0.9 {
            middle
        } else {
            high
        }
    }
}

#[inline]
fn at_most_one(value: f64) -> f64 {
    if value < 1.0 { value } else { 1.0 }
}

impl fmt::Display for PressureModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PressureModel::Reference => "reference pressure (drops to 0 at 70 % of use)",
            PressureModel::Continuous => "continuous pressure",
        })
    }
}

impl FromStr for PressureModel {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = PressureModel::ALL.into_iter().find(|model| model.slug().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| Unknown::new("pressure model", text, PressureModel::ALL.map(PressureModel::slug)))
    }
}

/// The size of a node. Demand is load divided by size, which makes nodes of different sizes comparable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    pub cpu_cores: f64,
    pub memory_bytes: f64,
}

impl Capacity {
    /// The only size in the reference: 32 cores, 128 GiB.
    pub const REFERENCE: Capacity = Capacity { cpu_cores: 32.0, memory_bytes: 137_438_953_472.0 };

    /// The demands on CPU and memory of a load on a node of this size. A node without capacity is full.
    #[inline]
    pub fn demand(self, cpu_cores: f64, memory_bytes: f64) -> [f64; 2] {
        let share = |load: f64, of: f64| if of > 0.0 { load / of } else { 1.0 };
        [share(cpu_cores, self.cpu_cores), share(memory_bytes, self.memory_bytes)]
    }
}

impl Default for Capacity {
    fn default() -> Self {
        Capacity::REFERENCE
    }
}
