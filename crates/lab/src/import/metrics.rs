//! Which metrics say what VMs and nodes use, best first, and how they are asked for.

use std::fmt;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Quantity {
    VmCpu,
    VmMemory,
    NodeCpu,
    NodeCpuPressure,
    NodeMemory,
    NodeMemoryPressure,
}

impl Quantity {
    /// Nodes in the order of `balance::Signal::ALL`.
    pub(super) const NODE: [Quantity; 4] =
        [Quantity::NodeCpu, Quantity::NodeCpuPressure, Quantity::NodeMemory, Quantity::NodeMemoryPressure];
    pub(super) const VM: [Quantity; 2] = [Quantity::VmCpu, Quantity::VmMemory];
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Quantity::VmCpu => "CPU use of VMs",
            Quantity::VmMemory => "memory use of VMs",
            Quantity::NodeCpu => "CPU use of nodes",
            Quantity::NodeCpuPressure => "CPU pressure of nodes",
            Quantity::NodeMemory => "memory use of nodes",
            Quantity::NodeMemoryPressure => "memory pressure of nodes",
        })
    }
}

/// Whether a quantity was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Origin {
    Found,
    /// It follows from something else.
    Guessed,
    Missing,
}

impl Origin {
    pub const fn word(self) -> &'static str {
        match self {
            Origin::Found => "found",
            Origin::Guessed => "guessed",
            Origin::Missing => "missing",
        }
    }
}

/// Where a quantity comes from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    pub quantity: Quantity,
    pub origin: Origin,
    /// The metric, or what was done without one.
    pub metric: String,
    /// How many series it has.
    pub series: usize,
}

/// How the value of a series is computed, and what its labels name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    /// Matchers that its series must have.
    pub(super) matchers: &'static str,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A counter of seconds, as cores.
    Rate,
    /// A value as it is.
    Gauge,
    /// The share that is not idle.
    NotIdle,
    /// Bytes that are not available.
    NotAvailable,
}

const fn metric(name: &'static str, matchers: &'static str, form: Form) -> Metric {
    Metric { name, matchers, form }
}

const COMPUTE: &str = "container=\"compute\"";
const ANY: &str = "container!=\"\",container!=\"POD\"";
const VM_CPU: [Metric; 2] = [
    metric("kubevirt_vmi_cpu_usage_seconds_total", "", Form::Rate),
    metric("container_cpu_usage_seconds_total", COMPUTE, Form::Rate),
];
/// The host's view of memory comes before that of the guest: it is what the node uses.
const VM_MEMORY: [Metric; 3] = [
    metric("kubevirt_vmi_memory_resident_bytes", "", Form::Gauge),
    metric("container_memory_working_set_bytes", COMPUTE, Form::Gauge),
    metric("kubevirt_vmi_memory_used_bytes", "", Form::Gauge),
];
const POD_CPU: [Metric; 1] = [metric("container_cpu_usage_seconds_total", ANY, Form::Rate)];
const POD_MEMORY: [Metric; 1] = [metric("container_memory_working_set_bytes", ANY, Form::Gauge)];
const NODE_CPU: [Metric; 2] =
    [metric("node_cpu_seconds_total", "mode=\"idle\"", Form::NotIdle), metric("node_cpu_usage_ratio", "", Form::Gauge)];
const NODE_CPU_PRESSURE: [Metric; 2] = [
    metric("node_pressure_cpu_waiting_seconds_total", "", Form::Rate),
    metric("node_cpu_pressure_psi", "", Form::Gauge),
];
const NODE_MEMORY: [Metric; 2] = [
    metric("node_memory_MemAvailable_bytes", "", Form::NotAvailable),
    metric("node_memory_usage_ratio", "", Form::Gauge),
];
const NODE_MEMORY_PRESSURE: [Metric; 2] = [
    metric("node_pressure_memory_waiting_seconds_total", "", Form::Rate),
    metric("node_memory_pressure_psi", "", Form::Gauge),
];

/// The metrics of a quantity, best first. `pods` is whether pods stand for VMs.
pub(super) fn candidates(quantity: Quantity, pods: bool) -> &'static [Metric] {
    match (quantity, pods) {
        (Quantity::VmCpu, false) => &VM_CPU,
        (Quantity::VmMemory, false) => &VM_MEMORY,
        (Quantity::VmCpu, true) => &POD_CPU,
        (Quantity::VmMemory, true) => &POD_MEMORY,
        (Quantity::NodeCpu, _) => &NODE_CPU,
        (Quantity::NodeCpuPressure, _) => &NODE_CPU_PRESSURE,
        (Quantity::NodeMemory, _) => &NODE_MEMORY,
        (Quantity::NodeMemoryPressure, _) => &NODE_MEMORY_PRESSURE,
    }
}

impl Metric {
    /// Whether its series are those of pods, not of VMs.
    pub(super) fn is_of_pods(&self) -> bool {
        self.name.starts_with("container_")
    }

    /// The label with the name of a VM.
    pub(super) fn name_label(&self) -> &'static str {
        if self.is_of_pods() { "pod" } else { "name" }
    }

    /// All series, or those with one of these names.
    pub(super) fn selector(&self, names: &[&str]) -> String {
        let names = match names {
            [] => String::new(),
            names => {
                let names: Vec<String> = names.iter().map(|name| name.replace('.', "\\\\.")).collect();
                format!("{}=~\"{}\"", self.name_label(), names.join("|"))
            }
        };
        let separator = if self.matchers.is_empty() || names.is_empty() { "" } else { "," };
        format!("{}{{{}{separator}{names}}}", self.name, self.matchers)
    }

    /// The query of a VM's series: one for each VM and node.
    pub(super) fn of_vms(&self, names: &[&str], window: u64) -> String {
        let selector = self.selector(names);
        let value = if self.form == Form::Rate { format!("rate({selector}[{window}s])") } else { selector };
        format!("sum by (namespace, exported_namespace, {}, node) ({value})", self.name_label())
    }

    /// The query of the series of nodes: one for each node.
    pub(super) fn of_nodes(&self, window: u64) -> String {
        let selector = self.selector(&[]);
        let by = "avg by (instance, node, nodename)";
        match self.form {
            Form::Rate => format!("{by} (rate({selector}[{window}s]))"),
            Form::NotIdle => format!("1 - {by} (rate({selector}[{window}s]))"),
            Form::Gauge | Form::NotAvailable => format!("{by} ({selector})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_ask_for_some_vms_and_for_all_nodes() {
        let cpu = candidates(Quantity::VmCpu, false);
        assert_eq!(
            cpu[0].of_vms(&["web-1", "db.x"], 300),
            "sum by (namespace, exported_namespace, name, node) \
             (rate(kubevirt_vmi_cpu_usage_seconds_total{name=~\"web-1|db\\\\.x\"}[300s]))"
        );
        assert_eq!(
            cpu[1].of_vms(&["virt-launcher-a"], 60),
            "sum by (namespace, exported_namespace, pod, node) \
             (rate(container_cpu_usage_seconds_total{container=\"compute\",pod=~\"virt-launcher-a\"}[60s]))"
        );
        assert_eq!(
            candidates(Quantity::NodeCpu, false)[0].of_nodes(300),
            "1 - avg by (instance, node, nodename) (rate(node_cpu_seconds_total{mode=\"idle\"}[300s]))"
        );
        assert_eq!(
            candidates(Quantity::NodeMemory, true)[0].of_nodes(300),
            "avg by (instance, node, nodename) (node_memory_MemAvailable_bytes{})"
        );
    }
}
