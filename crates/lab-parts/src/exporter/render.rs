//! A snapshot in the text format of Prometheus. By hand: a scrape writes thousands of lines into reused buffers, without a registry.
//!
//! Every metric has the label `instance` with the name of the node: scrape with `honor_labels`.

use std::fmt::Write;

use balance::{Algorithm, Scores, Signals, promql::PARETO_GAUGE};

use super::index::{Row, Snapshot, VmRow};

const VM_CPU: &str = "kubevirt_vmi_cpu_usage_seconds_total";
const VM_MEMORY: &str = "kubevirt_vmi_memory_resident_bytes";

/// Renders snapshots, and reuses its buffers.
#[derive(Debug, Default)]
pub struct Renderer {
    signals: Signals,
    scores: Scores,
    labels: Vec<Labels>,
}

/// The labels of a node, as text.
#[derive(Debug)]
struct Labels {
    instance: Box<str>,
    /// `node` and `instance`, for the lab's own gauges.
    both: Box<str>,
}

impl Labels {
    fn of(node: &str) -> Labels {
        let node = escaped(node);
        let instance = format!("instance=\"{node}\"");
        Labels { both: format!("node=\"{node}\",{instance}").into(), instance: instance.into() }
    }
}

impl Renderer {
    /// All metrics, in the format `text/plain; version=0.0.4`.
    pub fn render(&mut self, snapshot: &Snapshot) -> String {
        let rows = &snapshot.rows;
        self.signals.clear();
        rows.iter().for_each(|row| self.signals.push(row.signals));
        Algorithm::ParetoFront.score(&self.signals, &mut self.scores);
        self.labels.clear();
        self.labels.extend(rows.iter().map(|row| Labels::of(&row.node)));

        let mut text = Text { text: String::with_capacity(2_000 + rows.len() * 1_500), rows, labels: &self.labels };
        text.gauge("node_cpu_usage_ratio", "CPU use as a share of the node's cores, at most 1.", |row| row.signals[0]);
        text.gauge("node_cpu_pressure_psi", "Share of time in which tasks wait for CPU.", |row| row.signals[1]);
        text.gauge("node_memory_usage_ratio", "Memory use as a share of the node's memory, at most 1.", |row| {
            row.signals[2]
        });
        text.gauge("node_memory_pressure_psi", "Share of time in which tasks wait for memory.", |row| row.signals[3]);
        text.gauge("node_vm_count", "Virtual machines that count on the node.", |row| row.vms as f64);

        text.head(
            "node_cpu_seconds_total",
            "counter",
            "Seconds the CPUs spent in each mode; all modes add up to the time.",
        );
        text.lines("node_cpu_seconds_total", |labels| &labels.instance, ",mode=\"idle\"", |row| row.counters.idle);
        text.lines("node_cpu_seconds_total", |labels| &labels.instance, ",mode=\"user\"", |row| row.counters.user());
        text.lines(
            "node_cpu_seconds_total",
            |labels| &labels.instance,
            ",mode=\"system\"",
            |row| row.counters.system(),
        );
        let name = "node_pressure_cpu_waiting_seconds_total";
        text.head(name, "counter", "Seconds in which tasks waited for CPU.");
        text.lines(name, |labels| &labels.instance, "", |row| row.counters.cpu_waiting);
        let name = "node_pressure_memory_waiting_seconds_total";
        text.head(name, "counter", "Seconds in which tasks waited for memory.");
        text.lines(name, |labels| &labels.instance, "", |row| row.counters.memory_waiting);
        let name = "node_memory_MemAvailable_bytes";
        text.head(name, "gauge", "Memory that is not in use.");
        text.lines(name, |labels| &labels.instance, "", |row| row.capacity.memory_bytes * (1.0 - row.signals[2]));

        text.head("kube_node_role", "gauge", "The role of a node.");
        text.lines("kube_node_role", |labels| &labels.both, ",role=\"worker\"", |_| 1.0);
        let name = "kube_node_status_allocatable";
        text.head(name, "gauge", "What pods may use of the node.");
        let memory = ",resource=\"memory\",unit=\"byte\"";
        text.lines(name, |labels| &labels.both, memory, |row| row.capacity.memory_bytes);

        text.head(PARETO_GAUGE, "gauge", "Score of Pareto Front, which PromQL cannot compute.");
        let Text { mut text, .. } = text;
        for (labels, score) in self.labels.iter().zip(self.scores.values()) {
            line(&mut text, PARETO_GAUGE, &labels.both, "", *score);
        }
        text
    }
}

/// The metrics of VMs under the names of KubeVirt, in the same format.
pub fn vm_page(vms: &[VmRow]) -> String {
    let mut text = String::with_capacity(500 + vms.len() * 300);
    let labels: Vec<String> = vms
        .iter()
        .map(|row| {
            let (namespace, name) = row.vm.split_once('/').unwrap_or(("", &row.vm));
            let [node, namespace, name] = [&row.node, namespace, name].map(escaped);
            format!("node=\"{node}\",namespace=\"{namespace}\",name=\"{name}\"")
        })
        .collect();
    type Value = fn(&VmRow) -> f64;
    let metrics: [(&str, &str, &str, Value); 2] = [
        (VM_CPU, "counter", "Seconds of CPU that the VM used on its node.", |row| row.cpu_seconds),
        (VM_MEMORY, "gauge", "Memory of the node that the VM uses.", |row| row.memory_bytes),
    ];
    for (name, kind, help, value) in metrics {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        vms.iter().zip(&labels).for_each(|(row, labels)| line(&mut text, name, labels, "", value(row)));
    }
    text
}

struct Text<'a> {
    text: String,
    rows: &'a [Row],
    labels: &'a [Labels],
}

impl Text<'_> {
    fn gauge(&mut self, name: &str, help: &str, value: impl Fn(&Row) -> f64) {
        self.head(name, "gauge", help);
        self.lines(name, |labels| &labels.both, "", value);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn lines(&mut self, name: &str, labels: fn(&Labels) -> &str, more: &str, value: impl Fn(&Row) -> f64) {
        for (row, of) in self.rows.iter().zip(self.labels) {
            line(&mut self.text, name, labels(of), more, value(row));
        }
    }
}

fn line(text: &mut String, name: &str, labels: &str, more: &str, value: f64) {
    for part in [name, "{", labels, more, "} "] {
        text.push_str(part);
    }
    let _ = writeln!(text, "{value}");
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
