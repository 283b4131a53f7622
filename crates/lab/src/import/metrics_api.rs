//! One snapshot from `metrics.k8s.io`, for clusters without Prometheus.

use std::io::Write;

use api::{quantity, virtual_machine::Cpu};
use kube::Client;
use kube_io::Class;
use serde_json::Value;
use sim::import::{Import, ImportedVm, Recording};

use super::{
    load::{Keys, LoadNotes},
    metrics::{Found, Origin, Quantity},
};
use crate::{Error, error::Context};

const NODES: &str = "/apis/metrics.k8s.io/v1beta1/nodes";
const PODS: &str = "/apis/metrics.k8s.io/v1beta1/pods";

/// The cores and the bytes of a `usage`.
fn usage(usage: &Value) -> Option<[f64; 2]> {
    let cpu = usage["cpu"].as_str()?;
    let memory = quantity::units(usage["memory"].as_str()?)? as f64;
    // Zero is no amount of CPU for a VM, but it is one in use.
    Some([Cpu::from(cpu).cores().unwrap_or(0.0), memory])
}

/// The cores and the bytes that each pod uses, by namespace and name.
pub(super) fn pods(answer: &Value) -> Vec<((String, String), [f64; 2])> {
    let pod = |pod: &Value| {
        let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let mut sum = [0.0; 2];
        for container in pod["containers"].as_array()? {
            let used = usage(&container["usage"])?;
            sum = [sum[0] + used[0], sum[1] + used[1]];
        }
        Some(((text("/metadata/namespace")?, text("/metadata/name")?), sum))
    };
    answer["items"].as_array().into_iter().flatten().filter_map(pod).collect()
}

/// The cores and the bytes that each node uses, by name.
pub(super) fn nodes(answer: &Value) -> Vec<(String, [f64; 2])> {
    let node = |node: &Value| Some((node.pointer("/metadata/name")?.as_str()?.to_owned(), usage(&node["usage"])?));
    answer["items"].as_array().into_iter().flatten().filter_map(node).collect()
}

async fn ask(client: &Client, path: &str) -> Result<Option<Value>, Error> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|problem| Error::Asset(format!("asking for {path}: {problem}")))?;
    match client.request::<Value>(request).await {
        Err(error) if Class::of(&error).is_absent() => Ok(None),
        answer => answer.map(Some).context(|| format!("asking for {path}")),
    }
}

pub(super) async fn snapshot<W: Write>(
    client: &Client,
    keys: &Keys,
    vms: Vec<ImportedVm>,
    import: &mut Import<W>,
) -> Result<(Vec<Found>, LoadNotes), Error> {
    let answers = [ask(client, PODS).await?, ask(client, NODES).await?];
    read(answers, keys, vms, import).map_err(Error::Write)
}

/// Adds VMs and nodes with what the answers say about pods and nodes.
pub(super) fn read<W: Write>(
    [of_pods, of_nodes]: [Option<Value>; 2],
    keys: &Keys,
    vms: Vec<ImportedVm>,
    import: &mut Import<W>,
) -> std::io::Result<(Vec<Found>, LoadNotes)> {
    let mut recordings: Vec<[Recording; 2]> = vms.iter().map(|_| [0, 1].map(|_| Recording::new(1))).collect();
    let mut measured = 0;
    for ((namespace, name), used) in of_pods.iter().flat_map(pods) {
        if let Some(vm) = keys.pod(&namespace, &name) {
            measured += 1;
            for (recording, used) in recordings[vm].iter_mut().zip(used) {
                recording.put(0, used, None);
            }
        }
    }
    for (vm, recordings) in vms.into_iter().zip(recordings) {
        import.vm(vm, recordings)?;
    }
    let mut of_node = 0;
    for (name, [cpu, memory]) in of_nodes.iter().flat_map(nodes) {
        let Some(node) = keys.node(&name) else { continue };
        of_node += 1;
        let cpu = cpu / keys.cores(node);
        let memory = memory / keys.memory(node);
        for (signal, share) in [(0, cpu), (2, memory)] {
            if let Some(recording) = import.signal(node, signal) {
                recording.put(0, share.min(1.0), None);
            }
        }
    }
    let found =
        |quantity, path: &str, series| Found { quantity, origin: Origin::Found, metric: path.to_owned(), series };
    let mut all = Vec::new();
    for quantity in Quantity::VM {
        let known = found(quantity, "metrics.k8s.io/v1beta1 pods", measured);
        all.push(if measured > 0 { known } else { keys.without(quantity, of_node > 0) });
    }
    for quantity in [Quantity::NodeCpu, Quantity::NodeMemory] {
        let known = found(quantity, "metrics.k8s.io/v1beta1 nodes", of_node);
        all.push(if of_node > 0 { known } else { keys.without(quantity, false) });
    }
    all.extend([Quantity::NodeCpuPressure, Quantity::NodeMemoryPressure].map(|quantity| keys.without(quantity, true)));
    Ok((all, LoadNotes { queries: 2, ..LoadNotes::default() }))
}
