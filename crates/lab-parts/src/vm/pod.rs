//! The pod that runs a VM.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{MigrationSource, Vm, VmSpec};
use crate::launcher;

const MEBIBYTE: u64 = 1 << 20;
const LONGEST_NAME: usize = 63;

/// The pod with a name that ends in `suffix`. The target of a migration avoids the node of its source.
pub(super) fn pod(vm: &Vm, spec: &VmSpec, source: Option<&MigrationSource>, suffix: &str) -> serde_json::Result<Pod> {
    let stem: String = vm.name.chars().take(LONGEST_NAME - launcher::PREFIX.len() - suffix.len() - 1).collect();
    let stem = stem.trim_end_matches(['.', '-']);
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": format!("{}{stem}-{suffix}", launcher::PREFIX),
            "namespace": vm.namespace,
            "labels": {
                launcher::DOMAIN: vm.name,
                launcher::VM_NAME: vm.name,
                launcher::APP.0: launcher::APP.1,
            },
            "annotations": {
                launcher::DOMAIN: vm.name,
                launcher::REQUEST_EVICT_ONLY: "true",
                launcher::CPU_CORES: spec.cores.to_string(),
                launcher::MEMORY_BYTES: spec.bytes.to_string(),
                launcher::CPU_UTILIZATION: spec.cpu_utilization,
                launcher::MEMORY_UTILIZATION: spec.memory_utilization,
            },
            "finalizers": [launcher::FINALIZER],
            "ownerReferences": [{
                "apiVersion": format!("{}/{}", api::names::SIMULATION_GROUP, api::names::VERSION),
                "kind": "VirtualMachine",
                "name": vm.name,
                "uid": vm.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "containers": [{
                "name": "compute",
                "image": "quay.io/kubevirt/virt-launcher:latest",
                "resources": {"requests": {
                    "cpu": format!("{}m", (spec.cores * 100.0).ceil()),
                    "memory": format!("{}Mi", (spec.bytes / MEBIBYTE).max(1)),
                }},
            }],
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{
                "key": "kwok.x-k8s.io/node", "operator": "Equal", "value": "fake", "effect": "NoSchedule",
            }],
        },
    });
    if let Some(MigrationSource { node, pod: source_pod }) = source {
        pod["metadata"]["annotations"][launcher::SOURCE] = json!(source_pod);
        let expression = json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    }
    serde_json::from_value(pod)
}
