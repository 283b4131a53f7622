//! Names, labels and annotations of virt-launcher pods, the pods that run VMs, and of the VMs themselves.

use std::collections::BTreeMap;

/// Label: the VM that the pod runs.
pub const DOMAIN: &str = "kubevirt.io/domain";
/// Label with the same value as [`DOMAIN`].
pub const VM_NAME: &str = "vm.kubevirt.io/name";
/// Label and value that all these pods have.
pub const APP: (&str, &str) = ("app", "virt-launcher");
/// The prefix of the names of these pods.
pub const PREFIX: &str = "virt-launcher-";

pub const CPU_CORES: &str = "simulation.node-classifier.io/vm-cpu-cores";
pub const MEMORY_BYTES: &str = "simulation.node-classifier.io/vm-memory-bytes";
pub const CPU_UTILIZATION: &str = "simulation.node-classifier.io/vm-cpu-utilization";
pub const MEMORY_UTILIZATION: &str = "simulation.node-classifier.io/vm-memory-utilization";

/// Annotation of a VM: the rate at which it writes to its memory, in megabits per second, if it has its own.
pub const DIRTY_RATE: &str = "simulation.node-classifier.io/vm-dirty-rate-mbps";

/// The finalizer that protects the pod until the VM controller removes it.
pub const FINALIZER: &str = "kubevirt.io/migration-protection";
/// Annotation: an eviction of this pod is a request for a migration.
pub const REQUEST_EVICT_ONLY: &str = "descheduler.alpha.kubernetes.io/request-evict-only";
/// Annotation: the migration runs.
pub const EVICTION_IN_PROGRESS: &str = "descheduler.alpha.kubernetes.io/eviction-in-progress";
/// Annotation of the target of a migration: the source pod.
pub const SOURCE: &str = "simulation.node-classifier.io/migration-source";
/// Label of a VM: the node that it runs on.
pub const NODE_NAME: &str = "kubevirt.io/nodeName";
/// Condition of a VM on which an eviction is requested. Its reason and message are the cause.
pub const EVICTION_REQUESTED: &str = "EvictionRequested";

/// The load of a VM on its node.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub cpu_cores: f64,
    pub memory_bytes: f64,
}

impl Load {
    /// The load in a pod's annotations. None if one of the four is missing or invalid.
    pub fn of(annotations: &BTreeMap<String, String>) -> Option<Load> {
        let number = |name: &str, most: f64| {
            let number: f64 = annotations.get(name)?.trim().parse().ok()?;
            (0.0..=most).contains(&number).then_some(number)
        };
        let cpu_cores = number(CPU_CORES, f64::MAX)? * number(CPU_UTILIZATION, 1.0)?;
        let memory_bytes = number(MEMORY_BYTES, f64::MAX)? * number(MEMORY_UTILIZATION, 1.0)?;
        Some(Load { cpu_cores, memory_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(values: [&str; 4]) -> BTreeMap<String, String> {
        let names = [CPU_CORES, MEMORY_BYTES, CPU_UTILIZATION, MEMORY_UTILIZATION];
        names.into_iter().zip(values).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn load_is_size_times_utilization() {
        let load = Load::of(&annotations(["4", "1000", "0.25", "0.5"])).unwrap();
        assert_eq!(load, Load { cpu_cores: 1.0, memory_bytes: 500.0 });
    }

    #[test]
    fn invalid_annotations_are_no_load() {
        for values in [
            ["", "1", "1", "1"],
            ["NaN", "1", "1", "1"],
            ["inf", "1", "1", "1"],
            ["-1", "1", "1", "1"],
            ["1", "1", "1.5", "1"],
            ["1", "1Gi", "1", "1"],
            ["1", "1", "1", "half"],
        ] {
            assert_eq!(Load::of(&annotations(values)), None, "{values:?}");
        }
        assert_eq!(Load::of(&BTreeMap::new()), None);
    }
}
