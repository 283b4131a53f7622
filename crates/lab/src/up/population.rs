//! VMs to fill the lab with, and where they start.

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

use super::{Error, error::Doing};

/// How many VMs are created at a time.
const AT_ONCE: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

/// A VM to create. Uses are shares of what it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Guest {
    pub name: String,
    pub cores: f64,
    pub memory_bytes: u64,
    pub cpu_use: f64,
    pub memory_use: f64,
}

/// VMs, each with the node that it starts on; without one, where the scheduler puts it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement(pub Vec<(Guest, Option<String>)>);

impl Guest {
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

/// Four digits are what people write, and what a descheduler that counts in percent can use.
pub(super) fn ratio(share: f64) -> String {
    format!("{:.4}", share.clamp(0.0, 1.0))
}

impl Placement {
    /// Creates the VMs and waits until all run. A VM gets to its node because the others are closed for new pods meanwhile; the
    /// scheduler does the rest, so nothing about the VM tells later that it was put there.
    pub async fn settle(&self, client: &Client) -> Result<(), Error> {
        let mut by_node: BTreeMap<Option<&str>, Vec<&Guest>> = BTreeMap::new();
        for (guest, node) in &self.0 {
            by_node.entry(node.as_deref()).or_default().push(guest);
        }
        let doors = Doors::of(client).await?;
        let mut settled = Ok(());
        for (node, guests) in &by_node {
            if let Some(node) = node {
                doors.only(node).await?;
            }
            settled = create(client, guests).await;
            if settled.is_err() {
                break;
            }
        }
        // Also after a failure: a closed node would puzzle people.
        if by_node.keys().any(Option::is_some) {
            doors.open().await?;
        }
        settled
    }
}

/// The nodes that take pods, so that they can be closed for a while and be opened again.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct Doors {
    nodes: Api<Node>,
    names: Vec<String>,
}

impl Doors {
    /// Those that take pods now.
    pub async fn of(client: &Client) -> Result<Doors, Error> {
        let nodes: Api<Node> = Api::all(client.clone());
        let found = nodes.list(&ListParams::default()).await.doing(|| "listing nodes".into())?;
        let is_open = |node: &&Node| !node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or(false);
        let names = found.iter().filter(is_open).map(ResourceExt::name_any).collect();
        Ok(Doors { nodes, names })
    }

    async fn only(&self, node: &str) -> Result<(), Error> {
        self.close(|name| name != node).await
    }

    /// All of them, as they were.
    pub async fn open(&self) -> Result<(), Error> {
        self.close(|_| false).await
    }

    async fn close(&self, is_closed: impl Fn(&str) -> bool) -> Result<(), Error> {
        for name in &self.names {
            let patch = Patch::Merge(json!({"spec": {"unschedulable": is_closed(name).then_some(true)}}));
            let patched = self.nodes.patch(name, &PatchParams::default(), &patch).await;
            patched.map(drop).doing(|| format!("closing or opening Node {name}"))?;
        }
        Ok(())
    }
}

async fn create(client: &Client, guests: &[&Guest]) -> Result<(), Error> {
    let vms: Api<VirtualMachine> = Api::default_namespaced(client.clone());
    stream::iter(guests)
        .map(|guest| async {
            let vm = guest.object().map_err(|error| Error::Asset(format!("VM {}: {error}", guest.name)))?;
            vms.create(&Default::default(), &vm).await.doing(|| format!("creating VirtualMachine {}", guest.name))
        })
        .buffer_unordered(AT_ONCE)
        .try_collect::<Vec<_>>()
        .await?;
    let mut waited: BTreeSet<&str> = guests.iter().map(|guest| guest.name.as_str()).collect();
    let all_run = async {
        loop {
            let found = vms.list(&ListParams::default()).await.doing(|| "listing VirtualMachines".into())?;
            for vm in &found {
                if vm.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Running)) {
                    waited.remove(vm.name_any().as_str());
                }
            }
            if waited.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(PATIENCE, all_run).await {
        Ok(result) => result,
        Err(_) => {
            let first = waited.first().copied().unwrap_or_default();
            let what = format!("{} more VMs run, among them {first}; is there room for them?", waited.len());
            Err(Error::Late { what, after: PATIENCE })
        }
    }
}
