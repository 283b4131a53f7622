//! The load of a scenario: what its VMs use as time goes by.

use std::collections::BTreeMap;

use api::VirtualMachine;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use kube_io::Class;
use serde_json::json;
use sim::{ClusterModel, LoadTimeline};

use super::{
    CONCURRENCY,
    placement::{NewVm, NodeSize, Placement, ratio},
};
use crate::{Error, error::Context};

/// A smaller change is not written: the descheduler counts in whole percent of a node.
const SMALLEST_CHANGE: f64 = 0.02;

/// What each VM of a cluster model uses at each step.
#[derive(Debug)]
pub struct LoadSchedule<'w> {
    model: &'w ClusterModel,
    loads: LoadTimeline<'w>,
    /// What was written to each VM last.
    written: Vec<[f64; 2]>,
}

impl<'w> LoadSchedule<'w> {
    /// At the first step. Nothing has been written yet.
    pub fn new(model: &'w ClusterModel, seed: u64) -> Self {
        let loads = LoadTimeline::new(model, seed);
        let written = loads.shares().to_vec();
        LoadSchedule { model, loads, written }
    }

    /// The VMs with their first load. The first node of the model is the first of `nodes`, and so on.
    pub fn placement(&self, nodes: &[NodeSize]) -> Result<Placement, Error> {
        let scenario = self.model.name();
        let mut requested = vec![0; nodes.len()];
        let mut vms = Vec::new();
        for (number, shares) in (0..).zip(&self.written) {
            let sim::Vm { name, cores, memory_bytes, node } = self.model.vm(number);
            if let Some(node) = node {
                let Some(requested) = requested.get_mut(node as usize) else {
                    let (wanted, found) = (self.model.node_count(), nodes.len());
                    return Err(Error::Asset(format!(
                        "scenario {scenario} has {wanted} nodes and the lab {found}: start it with --nodes {wanted}"
                    )));
                };
                *requested += memory_bytes;
            }
            let node = node.and_then(|node| nodes.get(node as usize)).map(|node| node.name.clone());
            let [cpu_use, memory_use] = *shares;
            vms.push((NewVm { name, cores, memory_bytes, cpu_use, memory_use }, node));
        }
        let gibibytes = |bytes: u64| bytes.div_ceil(1 << 30);
        for (node, requested) in nodes.iter().zip(requested) {
            if requested > node.memory_bytes {
                return Err(Error::Asset(format!(
                    "scenario {scenario} puts VMs of {}Gi on {}, which has {}Gi: start the lab with --memory {}Gi",
                    gibibytes(requested),
                    node.name,
                    node.memory_bytes >> 30,
                    gibibytes(requested).next_power_of_two()
                )));
            }
        }
        Ok(Placement(vms))
    }

    /// Sets on which node each VM runs, by its name. The first node of the model is the first of `nodes`, and so on.
    pub fn set_nodes(&mut self, node_of: &BTreeMap<String, String>, nodes: &[String]) {
        let number = |vm: u32| {
            let node = node_of.get(&self.model.vm_name(vm))?;
            nodes.iter().position(|name| name == node).and_then(|at| u32::try_from(at).ok())
        };
        let numbers: Vec<Option<u32>> = (0..self.written.len() as u32).map(number).collect();
        self.loads.set_nodes(numbers);
    }

    /// The VMs whose load at a step differs enough from what was written last. The new load counts as written.
    pub fn changes(&mut self, step: u64) -> Vec<(String, [f64; 2])> {
        self.loads.advance(step);
        let mut changes = Vec::new();
        for (vm, (written, now)) in (0..).zip(self.written.iter_mut().zip(self.loads.shares())) {
            if written.iter().zip(now).any(|(written, now)| (written - now).abs() >= SMALLEST_CHANGE) {
                *written = *now;
                changes.push((self.model.vm_name(vm), *now));
            }
        }
        changes
    }
}

/// The node that each VM runs on, by the name of the VM.
pub(super) async fn nodes_of_vms(client: &Client) -> Result<BTreeMap<String, String>, Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    let all = vms.list(&ListParams::default()).await.context(|| "listing VirtualMachines".into())?;
    Ok(all.into_iter().filter_map(|vm| Some((vm.name_any(), vm.status?.node_name?))).collect())
}

/// Sets what VMs use, as shares of their cores and their memory. None leaves a share unchanged.
pub async fn set_utilization(client: &Client, uses: Vec<(String, [Option<f64>; 2])>) -> Result<(), Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    stream::iter(uses)
        .map(|(name, [cpu, memory])| {
            let vms = vms.clone();
            async move {
                let mut utilization = serde_json::Map::new();
                for (resource, share) in [("cpu", cpu), ("memory", memory)] {
                    utilization.extend(share.map(|share| (resource.to_owned(), json!(ratio(share)))));
                }
                let patch = Patch::Merge(json!({"spec": {"utilization": utilization}}));
                match vms.patch(&name, &PatchParams::default(), &patch).await {
                    // A VM that was deleted needs no load.
                    Err(error) if Class::of(&error).is_absent() => Ok(()),
                    result => result.map(drop).context(|| format!("setting the use of VirtualMachine {name}")),
                }
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
}

#[cfg(test)]
mod tests {
    use sim::scenario::{parse, shipped};

    use super::*;

    fn model(text: &str) -> ClusterModel {
        ClusterModel::new(&parse(text).unwrap()[0]).unwrap()
    }

    #[test]
    fn only_visible_changes_are_written_and_small_ones_add_up() {
        let model = model(
            "{name: t, step: 1s, duration: 100s, nodes: [{name: n}], vms: [\
             {name: slow, cpu: {ramp: {from: 0, to: 1, start: 0s, end: 100s}}}, {name: still, cpu: 0.5}]}",
        );
        let mut load = LoadSchedule::new(&model, 0);
        assert_eq!(load.changes(1), []);
        assert_eq!(load.changes(2).len(), 1, "two hundredths in two steps");
        let [(name, [cpu, _])] = &load.changes(50)[..] else { panic!("one VM changes") };
        assert_eq!((name.as_str(), (cpu * 100.0).round()), ("slow", 50.0));
    }

    #[test]
    fn a_condition_looks_at_the_nodes_that_vms_run_on_now() {
        let model = model(
            "{name: t, step: 1s, duration: 9s, nodes: [{name: a, cores: 2}, {name: b, cores: 2}], vms: [\
             {name: one, cores: 1, cpu: 0.6, on: [a]}, {name: two, cores: 1, cpu: 0.6, on: [b]}], \
             tasks: [{name: t, every: 1s, cpu: 0.3, seconds: 1, target: {vms: two}, when: {nodeCpuAbove: 0.5}}]}",
        );
        let mut load = LoadSchedule::new(&model, 0);
        assert_eq!(load.changes(1), [], "each node uses 0.3");
        let nodes = ["kwok-node-1", "kwok-node-2"].map(str::to_owned);
        let node_of = BTreeMap::from(["one", "two"].map(|vm| (vm.to_owned(), "kwok-node-2".to_owned())));
        load.set_nodes(&node_of, &nodes);
        let [(name, [cpu, _])] = &load.changes(2)[..] else { panic!("one VM changes") };
        assert_eq!((name.as_str(), (cpu * 10.0).round()), ("two", 9.0), "the second node uses 0.6");
    }

    #[test]
    fn vms_start_on_the_node_with_the_same_number() {
        let model = ClusterModel::new(&shipped::find("hotspot").unwrap()).unwrap();
        let nodes = |count: u32, memory_bytes: u64| -> Vec<NodeSize> {
            (1..=count).map(|number| NodeSize { name: format!("kwok-node-{number}"), memory_bytes }).collect()
        };
        let load = LoadSchedule::new(&model, 0);
        let placement = load.placement(&nodes(8, 256 << 30)).unwrap();
        let (vm, node) = placement.0.iter().find(|(vm, _)| vm.name == "busy-1").unwrap();
        assert_eq!((vm.cores, vm.memory_bytes, vm.cpu_use), (4.0, 8 << 30, 0.1));
        assert_eq!(node.as_deref(), Some("kwok-node-3"));
        let problem = |nodes: &[NodeSize]| load.placement(nodes).unwrap_err().to_string();
        assert_eq!(
            problem(&nodes(5, 256 << 30)),
            "scenario hotspot has 8 nodes and the lab 5: start it with --nodes 8"
        );
        assert_eq!(
            problem(&nodes(8, 128 << 30)),
            "scenario hotspot puts VMs of 160Gi on kwok-node-3, which has 128Gi: start the lab with --memory 256Gi"
        );
    }
}
