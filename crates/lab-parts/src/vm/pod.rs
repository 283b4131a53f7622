//! The pod that plays a VM.

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::{Machine, Wanted};
use crate::launcher;

const MEBIBYTE: u64 = 1 << 20;
/// A name must leave room for what its label adds.
const LONGEST_NAME: usize = 63;

/// The pod, with the name that ends in `suffix`. `away` is a node to avoid, and the pod there that this one takes over from.
pub(super) fn pod(
    vm: &Machine,
    wanted: &Wanted,
    away: Option<&(String, String)>,
    suffix: &str,
) -> serde_json::Result<Pod> {
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
                launcher::CPU_CORES: wanted.cores.to_string(),
                launcher::MEMORY_BYTES: wanted.bytes.to_string(),
                launcher::CPU_UTILIZATION: wanted.cpu_utilization,
                launcher::MEMORY_UTILIZATION: wanted.memory_utilization,
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
                    "cpu": format!("{}m", (wanted.cores * 100.0).ceil()),
                    "memory": format!("{}Mi", (wanted.bytes / MEBIBYTE).max(1)),
                }},
            }],
            "nodeSelector": {"type": "kwok"},
            "tolerations": [{
                "key": "kwok.x-k8s.io/node", "operator": "Equal", "value": "fake", "effect": "NoSchedule",
            }],
        },
    });
    if let Some((node, source)) = away {
        pod["metadata"]["annotations"][launcher::SOURCE] = json!(source);
        let expression = json!({"key": "kubernetes.io/hostname", "operator": "NotIn", "values": [node]});
        let terms = json!({"nodeSelectorTerms": [{"matchExpressions": [expression]}]});
        pod["spec"]["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}});
    }
    serde_json::from_value(pod)
}
