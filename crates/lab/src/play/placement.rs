//! VMs to create, and the nodes that they start on.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::{VirtualMachine, virtual_machine::Phase};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{CONCURRENCY, set_utilization};
use crate::{Error, error::Context, kwok::by_number};

const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A VM to create. Uses are shares of its cores and its memory.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVm {
    pub name: String,
    pub cores: f64,
    pub memory_bytes: u64,
    pub cpu_use: f64,
    pub memory_use: f64,
}

/// VMs, each with the node that it starts on. Without a node, the scheduler chooses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement(pub Vec<(NewVm, Option<String>)>);

impl NewVm {
    fn object(&self) -> Result<VirtualMachine, serde_json::Error> {
        serde_json::from_value(json!({
            "apiVersion": "simulation.node-classifier.io/v1alpha1",
            "kind": "VirtualMachine",
            "metadata": {"name": self.name},
            "spec": {
                "resources": {"cpu": self.cores.to_string(), "memory": format!("{}Mi", self.memory_bytes >> 20)},
                "utilization": {"cpu": ratio(self.cpu_use), "memory": ratio(self.memory_use)},
            },
        }))
    }
}

/// Four digits: people can read them, and they are enough for a descheduler that counts in percent.
pub(super) fn ratio(share: f64) -> String {
    format!("{:.4}", share.clamp(0.0, 1.0))
}

impl Placement {
    /// Creates the VMs and waits until all run. While the VMs of a node are created, all other nodes are cordoned, so that
    /// the scheduler chooses it and nothing in a VM names its first node.
    pub async fn create(&self, client: &Client) -> Result<(), Error> {
        let mut by_node: BTreeMap<Option<&str>, Vec<&NewVm>> = BTreeMap::new();
        for (vm, node) in &self.0 {
            by_node.entry(node.as_deref()).or_default().push(vm);
        }
        let open = OpenNodes::of(client).await?;
        let mut created = Ok(());
        for (node, vms) in &by_node {
            if let Some(node) = node {
                open.cordon_all_but(node).await?;
            }
            created = create(client, vms).await;
            if created.is_err() {
                break;
            }
        }
        // Also after a failure: nobody would expect the nodes to be cordoned.
        if by_node.keys().any(Option::is_some) {
            open.uncordon().await?;
        }
        created
    }

    /// Creates the VMs that do not exist yet, and sets the load of the others. Returns how many were created.
    pub async fn create_missing(self, client: &Client) -> Result<usize, Error> {
        let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
        let existing = vms.list(&ListParams::default()).await.context(|| "listing VirtualMachines".into())?;
        let exists = |name: &str| existing.iter().any(|vm| vm.name_any() == name);
        let (old, new): (Vec<_>, Vec<_>) = self.0.into_iter().partition(|(vm, _)| exists(&vm.name));
        let uses = old.into_iter().map(|(vm, _)| (vm.name, [Some(vm.cpu_use), Some(vm.memory_use)]));
        set_utilization(client, uses.collect()).await?;
        let count = new.len();
        Placement(new).create(client).await?;
        Ok(count)
    }
}

/// The nodes that took pods when this was made. They can be cordoned for a while.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct OpenNodes {
    api: Api<Node>,
    names: Vec<String>,
}

impl OpenNodes {
    pub async fn of(client: &Client) -> Result<OpenNodes, Error> {
        let api: Api<Node> = Api::all(client.clone());
        let nodes = api.list(&ListParams::default()).await.context(|| "listing nodes".into())?;
        let is_open = |node: &&Node| !node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let names = nodes.iter().filter(is_open).map(ResourceExt::name_any).collect();
        Ok(OpenNodes { api, names })
    }

    async fn cordon_all_but(&self, node: &str) -> Result<(), Error> {
        self.cordon(|name| name != node).await
    }

    /// Makes all of them take pods again.
    pub async fn uncordon(&self) -> Result<(), Error> {
        self.cordon(|_| false).await
    }

    async fn cordon(&self, is_cordoned: impl Fn(&str) -> bool) -> Result<(), Error> {
        for name in &self.names {
            let patch = Patch::Merge(json!({"spec": {"unschedulable": is_cordoned(name).then_some(true)}}));
            let patched = self.api.patch(name, &PatchParams::default(), &patch).await;
            patched.map(drop).context(|| format!("closing or opening Node {name}"))?;
        }
        Ok(())
    }
}

async fn create(client: &Client, wanted: &[&NewVm]) -> Result<(), Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    stream::iter(wanted)
        .map(|vm| async {
            let object = vm.object().map_err(|error| Error::Asset(format!("VM {}: {error}", vm.name)))?;
            vms.create(&Default::default(), &object).await.context(|| format!("creating VirtualMachine {}", vm.name))
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<_>>()
        .await?;
    let mut missing: BTreeSet<&str> = wanted.iter().map(|vm| vm.name.as_str()).collect();
    let all_run = async {
        loop {
            let found = vms.list(&ListParams::default()).await.context(|| "listing VirtualMachines".into())?;
            for vm in &found {
                if vm.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Running)) {
                    missing.remove(vm.name_any().as_str());
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    match tokio::time::timeout(TIMEOUT, all_run).await {
        Ok(result) => result,
        Err(_) => {
            let first = missing.first().copied().unwrap_or_default();
            let what = format!("{} more VMs run, among them {first}; is there room for them?", missing.len());
            Err(Error::Late { what, after: TIMEOUT })
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeSize {
    pub name: String,
    pub memory_bytes: u64,
}

/// The sizes of the lab's nodes, in the order of their numbers.
pub async fn node_sizes(client: &Client) -> Result<Vec<NodeSize>, Error> {
    let api: Api<Node> = Api::all(client.clone());
    let nodes = api.list(&ListParams::default()).await.context(|| "listing nodes".into())?;
    let size = |node: &Node| {
        let size = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
        // The lab writes plain bytes.
        let memory = size.and_then(|size| size.get("memory")?.0.parse().ok());
        NodeSize { name: node.name_any(), memory_bytes: memory.unwrap_or(u64::MAX) }
    };
    let mut sizes: Vec<NodeSize> = nodes.iter().map(size).collect();
    sizes.sort_by_key(|node| by_number(&node.name));
    Ok(sizes)
}
