//! The algorithms as Prometheus recording rules, rendered from the same definitions that the evaluator runs.
//! All rules are in one group, each after the rules that it reads. Prometheus evaluates a group in order but schedules
//! each group separately, so a second group would lag behind the first.

mod render;
mod rules;

use std::{fmt, str::FromStr};

pub use rules::{Rule, rules};

use crate::{algorithm::Algorithm, error::Unknown, signals::Signal};

/// The gauge of the exporter with the scores of Pareto Front. PromQL cannot compute them, because it cannot compare
/// every node with every other. The label `instance` is the node.
pub const PARETO_GAUGE: &str = "node_pareto_front_score";

/// Where the signals come from. In either family the label `instance` is the node's name (scrape with `honor_labels`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Source {
    /// The lab's gauges: `node_cpu_usage_ratio`, `node_cpu_pressure_psi`, `node_memory_usage_ratio`,
    /// `node_memory_pressure_psi`.
    #[default]
    Gauges,
    /// The counters of node-exporter, and the allocatable memory of kube-state-metrics.
    NodeExporter,
    /// Like `NodeExporter`, but pressure counts only on nodes above 70 % of use, as in OpenShift's own rules.
    OpenShift,
}

impl Source {
    pub const ALL: [Source; 3] = [Source::Gauges, Source::NodeExporter, Source::OpenShift];

    pub const fn slug(self) -> &'static str {
        match self {
            Source::Gauges => "gauges",
            Source::NodeExporter => "node-exporter",
            Source::OpenShift => "openshift",
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.slug())
    }
}

impl FromStr for Source {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        let found = Source::ALL.into_iter().find(|source| source.slug().eq_ignore_ascii_case(text.trim()));
        found.ok_or_else(|| Unknown::new("source of signals", text, Source::ALL.map(Source::slug)))
    }
}

/// The options of the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    pub source: Source,
    /// Over how many seconds signals are averaged. The names say `avg1m` whatever it is.
    pub window: u32,
    /// Labels that all series that are read must have. They let several clusters share one Prometheus, if all recorded
    /// series get them as well.
    pub labels: Vec<(String, String)>,
    pub algorithms: Vec<Algorithm>,
}

impl Default for Options {
    fn default() -> Self {
        Options { source: Source::default(), window: 60, labels: Vec::new(), algorithms: Algorithm::all().to_vec() }
    }
}

/// The series with the scores of the nodes.
pub fn node_series(algorithm: &Algorithm) -> String {
    format!("descheduler:node:{}:avg1m", algorithm.slug())
}

/// The series with the mean score of the cluster.
pub fn cluster_series(algorithm: &Algorithm) -> String {
    format!("descheduler:cluster:{}:avg1m", algorithm.slug())
}

/// The series with a signal of the nodes, averaged over the window.
pub fn signal_series(signal: Signal) -> String {
    format!("descheduler:node:{signal}:avg1m")
}

/// The value in double quotes, as PromQL reads it.
fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            c => text.push(c),
        }
    }
    text + "\""
}
