//! The rules in their order: signals, their means, deviations, scores, and the means of the scores.

use super::{Options, Source, cluster_series, node_series, quoted, render::Renderer, signal_series};
use crate::{algorithm::Algorithm, expression::Formula, signals::Signal};

pub(super) const NODE: &str = "descheduler:node:";
pub(super) const CLUSTER: &str = "descheduler:cluster:";

/// A series and the expression that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub record: String,
    pub expr: String,
}

/// Writes series with the labels of the options.
pub(super) struct Series<'a> {
    options: &'a Options,
}

impl Series<'_> {
    pub(super) fn named(&self, name: &str) -> String {
        self.source(name, "")
    }

    /// A series of nodes, recorded by one of the rules.
    pub(super) fn node(&self, what: &str) -> String {
        self.named(&format!("{NODE}{what}:avg1m"))
    }

    pub(super) fn cluster(&self, what: &str) -> String {
        self.named(&format!("{CLUSTER}{what}:avg1m"))
    }

    /// A series that is not recorded here, with its own matcher.
    pub(super) fn source(&self, name: &str, matcher: &str) -> String {
        let labels = self.options.labels.iter().map(|(label, value)| format!("{label}={}", quoted(value)));
        let matchers: Vec<String> =
            (!matcher.is_empty()).then(|| matcher.to_owned()).into_iter().chain(labels).collect();
        if matchers.is_empty() { name.to_owned() } else { format!("{name}{{{}}}", matchers.join(",")) }
    }

    fn window(&self) -> String {
        format!("[{}s]", self.options.window)
    }

    fn averaged(&self, name: &str) -> String {
        format!("avg by (instance) (avg_over_time({}{}))", self.named(name), self.window())
    }

    fn rate(&self, name: &str, matcher: &str) -> String {
        format!("avg by (instance) (rate({}{}))", self.source(name, matcher), self.window())
    }

    /// The expression of a signal. It is clamped, because a value out of range aborts the descheduler's cycle. The
    /// comparison drops NaN, which the descheduler would turn into an integer.
    fn signal(&self, signal: Signal) -> String {
        let expression = match (self.options.source, signal) {
            (Source::Gauges, Signal::CpuUsage) => self.averaged("node_cpu_usage_ratio"),
            (Source::Gauges, Signal::CpuPressure) => self.averaged("node_cpu_pressure_psi"),
            (Source::Gauges, Signal::MemoryUsage) => self.averaged("node_memory_usage_ratio"),
            (Source::Gauges, Signal::MemoryPressure) => self.averaged("node_memory_pressure_psi"),
            (_, Signal::CpuUsage) => format!("1 - {}", self.rate("node_cpu_seconds_total", "mode=\"idle\"")),
            (_, Signal::MemoryUsage) => {
                let size = self.source("kube_node_status_allocatable", "resource=\"memory\"");
                format!(
                    "1 - {} / (max by (instance) (label_replace({size}, \"instance\", \"$1\", \"node\", \"(.+)\")) > 0)",
                    self.averaged("node_memory_MemAvailable_bytes")
                )
            }
            (source, Signal::CpuPressure) => {
                self.gated(source, Signal::CpuUsage, self.rate("node_pressure_cpu_waiting_seconds_total", ""))
            }
            (source, Signal::MemoryPressure) => {
                self.gated(source, Signal::MemoryUsage, self.rate("node_pressure_memory_waiting_seconds_total", ""))
            }
        };
        format!("clamp({expression}, 0, 1) >= 0")
    }

    /// OpenShift's gate: pressure counts only on nodes that use more than 70 %.
    fn gated(&self, source: Source, usage: Signal, pressure: String) -> String {
        match source {
            Source::OpenShift => {
                format!("{pressure} * on(instance) ({} > bool 0.7)", self.named(&signal_series(usage)))
            }
            Source::Gauges | Source::NodeExporter => pressure,
        }
    }
}

/// All rules, in the order in which they are to be evaluated.
pub fn rules(options: &Options) -> Vec<Rule> {
    let series = Series { options };
    let renderer = Renderer { series: &series };
    let mut rules = Vec::new();
    let mut record = |record: String, expr: String| rules.push(Rule { record, expr });

    // A gated pressure reads the use, so the use comes first.
    for signal in [Signal::CpuUsage, Signal::MemoryUsage, Signal::CpuPressure, Signal::MemoryPressure] {
        record(signal_series(signal), series.signal(signal));
    }
    for signal in Signal::ALL {
        record(format!("{CLUSTER}{signal}:avg1m"), format!("avg({})", series.node(signal.name())));
    }
    for signal in Signal::ALL {
        record(format!("{NODE}{signal}:deviation:avg1m"), renderer.deviation(signal));
    }
    for signal in Signal::ALL {
        let excess = format!("{signal}:positive_deviation");
        let expr = format!("clamp_min({}, 0)", series.node(&format!("{signal}:deviation")));
        record(format!("{NODE}{excess}:avg1m"), expr);
        record(format!("{CLUSTER}{excess}:avg1m"), format!("avg({})", series.node(&excess)));
    }
    for signal in Signal::ALL.into_iter().filter(|signal| options.algorithms.iter().any(|of| of.uses_extremes(*signal)))
    {
        let value = series.node(signal.name());
        record(format!("{CLUSTER}{signal}:lowest:avg1m"), format!("min({value})"));
        record(format!("{CLUSTER}{signal}:highest:avg1m"), format!("max({value})"));
        record(format!("{NODE}{signal}:above_lowest:avg1m"), renderer.above_lowest(signal));
        record(format!("{NODE}{signal}:below_highest:avg1m"), renderer.below_highest(signal));
    }
    for algorithm in &options.algorithms {
        score(algorithm, &series, &renderer, &mut record);
    }
    for algorithm in &options.algorithms {
        record(cluster_series(algorithm), format!("avg({})", series.named(&node_series(algorithm))));
    }
    rules
}

/// A normalized score reads its raw expression three times, so the raw expression is recorded first.
fn score(algorithm: &Algorithm, series: &Series<'_>, renderer: &Renderer<'_>, record: &mut impl FnMut(String, String)) {
    match algorithm.formula() {
        Formula::Normalized(raw) => {
            let name = format!("{}:raw", algorithm.slug());
            record(format!("{NODE}{name}:avg1m"), renderer.expression(&raw));
            record(node_series(algorithm), renderer.normalized(&series.node(&name)));
        }
        formula => record(node_series(algorithm), renderer.expression(&formula)),
    }
}
