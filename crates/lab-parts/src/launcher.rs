//! The pod that plays a virtual machine, as its makers and its readers agree on it: names, labels and annotations.

use std::collections::BTreeMap;

/// Label: the VM that the pod plays.
pub const DOMAIN: &str = "kubevirt.io/domain";
/// Label: the same, under its other name.
pub const VM_NAME: &str = "vm.kubevirt.io/name";
/// Label and its value: what all these pods have in common.
pub const APP: (&str, &str) = ("app", "virt-launcher");
/// What the names of these pods begin with.
pub const PREFIX: &str = "virt-launcher-";

pub const CPU_CORES: &str = "simulation.node-classifier.io/vm-cpu-cores";
pub const MEMORY_BYTES: &str = "simulation.node-classifier.io/vm-memory-bytes";
pub const CPU_UTILIZATION: &str = "simulation.node-classifier.io/vm-cpu-utilization";
pub const MEMORY_UTILIZATION: &str = "simulation.node-classifier.io/vm-memory-utilization";

/// Annotation of a VM: at what rate it writes to its memory, in megabits per second, if not at the usual one.
pub const DIRTY_RATE: &str = "simulation.node-classifier.io/vm-dirty-rate-mbps";

/// What keeps such a pod from vanishing before the VM controller lets it go.
pub const FINALIZER: &str = "kubevirt.io/migration-protection";
/// Annotation: evictions of this pod are requests, which somebody else fulfils.
pub const REQUEST_EVICT_ONLY: &str = "descheduler.alpha.kubernetes.io/request-evict-only";
/// Annotation: such a request is being fulfilled.
pub const EVICTION_IN_PROGRESS: &str = "descheduler.alpha.kubernetes.io/eviction-in-progress";
/// Annotation of a migration's target: the pod that it takes over from.
pub const SOURCE: &str = "simulation.node-classifier.io/migration-source";
/// Label of a VM: the node that it runs on.
pub const NODE_NAME: &str = "kubevirt.io/nodeName";
/// Condition of a VM that is to move. It is written together with the mark; its reason and message tell the cause.
pub const EVICTION_REQUESTED: &str = "EvictionRequested";

/// What a guest puts on its node.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Load {
    pub cpu_cores: f64,
    pub memory_bytes: f64,
}

impl Load {
    /// The load that a pod's annotations tell of; none if one of the four is missing or not a sensible number.
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
    fn load_is_size_times_utilisation() {
        let load = Load::of(&annotations(["4", "1000", "0.25", "0.5"])).unwrap();
        assert_eq!(load, Load { cpu_cores: 1.0, memory_bytes: 500.0 });
    }

    #[test]
    fn annotations_that_make_no_sense_are_no_load() {
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
