//! The signals of nodes: use of CPU and memory, and pressure on both. They are stored in one column per signal, so that
//! a pass over thousands of nodes reads plain slices.

use std::fmt;

use thiserror::Error;

/// A signal of a node. The order of the variants is the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    CpuUsage,
    CpuPressure,
    MemoryUsage,
    MemoryPressure,
}

impl Signal {
    pub const ALL: [Signal; 4] = [Signal::CpuUsage, Signal::CpuPressure, Signal::MemoryUsage, Signal::MemoryPressure];

    pub const fn name(self) -> &'static str {
        match self {
            Signal::CpuUsage => "cpu_usage",
            Signal::CpuPressure => "cpu_pressure",
            Signal::MemoryUsage => "memory_usage",
            Signal::MemoryPressure => "memory_pressure",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A signal that is not a number from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{signal} of node {node} is {value}: a number from 0 to 1 was expected")]
pub struct OutOfRange {
    pub node: usize,
    pub signal: Signal,
    pub value: f64,
}

/// The signals of all nodes, each from 0 to 1. All four columns have the same length; code that writes them directly
/// must keep this. [`Signals::check`] checks the values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Signals {
    pub cpu_usage: Vec<f64>,
    pub cpu_pressure: Vec<f64>,
    pub memory_usage: Vec<f64>,
    pub memory_pressure: Vec<f64>,
}

impl Signals {
    pub fn new() -> Self {
        Signals::default()
    }

    /// `nodes` idle nodes.
    pub fn idle(nodes: usize) -> Self {
        let column = || vec![0.0; nodes];
        Signals { cpu_usage: column(), cpu_pressure: column(), memory_usage: column(), memory_pressure: column() }
    }

    pub fn len(&self) -> usize {
        self.cpu_usage.len()
    }

    pub fn is_empty(&self) -> bool {
        self.cpu_usage.is_empty()
    }

    pub fn clear(&mut self) {
        self.columns_mut().into_iter().for_each(Vec::clear);
    }

    /// Adds a node; its values are in the order of [`Signal::ALL`].
    pub fn push(&mut self, values: [f64; 4]) {
        for (column, value) in self.columns_mut().into_iter().zip(values) {
            column.push(value);
        }
    }

    pub fn set(&mut self, node: usize, values: [f64; 4]) {
        for (column, value) in self.columns_mut().into_iter().zip(values) {
            column[node] = value;
        }
    }

    pub fn node(&self, node: usize) -> [f64; 4] {
        self.columns().map(|column| column[node])
    }

    pub fn column(&self, signal: Signal) -> &[f64] {
        self.columns()[signal.index()]
    }

    pub fn columns(&self) -> [&[f64]; 4] {
        [&self.cpu_usage, &self.cpu_pressure, &self.memory_usage, &self.memory_pressure]
    }

    fn columns_mut(&mut self) -> [&mut Vec<f64>; 4] {
        [&mut self.cpu_usage, &mut self.cpu_pressure, &mut self.memory_usage, &mut self.memory_pressure]
    }

    /// The first value that is not a number from 0 to 1, if there is one.
    pub fn check(&self) -> Result<(), OutOfRange> {
        for signal in Signal::ALL {
            for (node, &value) in self.column(signal).iter().enumerate() {
                if !(0.0..=1.0).contains(&value) {
                    return Err(OutOfRange { node, signal, value });
                }
            }
        }
        Ok(())
    }
}

impl FromIterator<[f64; 4]> for Signals {
    fn from_iter<I: IntoIterator<Item = [f64; 4]>>(nodes: I) -> Self {
        let mut signals = Signals::new();
        nodes.into_iter().for_each(|node| signals.push(node));
        signals
    }
}
