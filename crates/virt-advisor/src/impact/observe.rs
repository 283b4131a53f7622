//! Reads what the blast radius depends on: one list per kind, page by page, with the rights of the caller.

use std::time::Instant;

use advisor::blast_radius::{
    Budget, Instance, MachinePool, Node, ObservedCluster, ObservedMigration, Operation, Platform, Pod, Reading,
    VirtualMachine, reboots,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::reader::{Reader, reading};

/// What reading has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Read {
    pub(crate) requests: usize,
    pub(crate) objects: usize,
    pub(crate) milliseconds: u64,
}

pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const POOLS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools";
pub(crate) const INSTANCES: &str = "/apis/kubevirt.io/v1/virtualmachineinstances";
const MACHINES: &str = "/apis/kubevirt.io/v1/virtualmachines";
pub(crate) const KUBEVIRTS: &str = "/apis/kubevirt.io/v1/kubevirts";
pub(crate) const MIGRATIONS: &str = "/apis/kubevirt.io/v1/virtualmachineinstancemigrations";
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const PODS: &str = "/api/v1/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed";
/// Events about objects that are in no namespace are in this one.
const EVENTS: &str = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Node";
const OPERATIONS: &str = "/apis/ifo.kubevirt.io/v1alpha1/inflightoperations";
const INFRASTRUCTURE: &str = "/apis/config.openshift.io/v1/infrastructures/cluster";

pub(crate) async fn observe(reader: &Reader) -> (ObservedCluster, Read) {
    observe_in(reader, None).await
}

/// The same with nothing of other namespaces, if one is named.
pub(super) async fn observe_in(reader: &Reader, namespace: Option<&str>) -> (ObservedCluster, Read) {
    let within = |path: &str| within(path, namespace);
    let start = Instant::now();
    // One kind after the other: at no time is more than one page in memory, and the API server is not hurried.
    let mut lists = Lists { reader, read: Read::default() };
    let observed = ObservedCluster {
        namespace: namespace.map(str::to_owned),
        topology: lists.topology().await,
        nodes: lists.list(NODES, Node::of).await,
        pools: lists.list(POOLS, MachinePool::of).await,
        instances: lists.list(&within(INSTANCES), Instance::of).await,
        virtual_machines: lists.list(&within(MACHINES), VirtualMachine::of).await,
        platform: lists.platform().await,
        migrations: lists.list(&within(MIGRATIONS), |object| Some(ObservedMigration::of(object))).await,
        budgets: lists.list(&within(BUDGETS), Budget::of).await,
        pods: lists.list(&within(PODS), Pod::of).await,
        reboots: lists.reboots().await,
        operations: lists.list(OPERATIONS, Operation::of).await,
    };
    let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    (observed, Read { milliseconds, ..lists.read })
}

/// The path of a list in one namespace.
fn within(path: &str, namespace: Option<&str>) -> String {
    let (address, query) =
        path.split_once('?').map_or((path, String::new()), |(path, query)| (path, format!("?{query}")));
    match (namespace, address.rsplit_once('/')) {
        (Some(namespace), Some((group, resource))) => format!("{group}/namespaces/{namespace}/{resource}{query}"),
        _ => path.to_owned(),
    }
}

/// Whether the caller may pause pools, and with that stop a rollout.
pub(super) async fn may_pause(reader: &Reader) -> Option<bool> {
    let group = "machineconfiguration.openshift.io";
    let attributes = json!({"group": group, "resource": "machineconfigpools", "verb": "patch"});
    reader.review("selfsubjectaccessreviews", &json!({"resourceAttributes": attributes})).await.ok()
}

struct Lists<'a> {
    reader: &'a Reader,
    read: Read,
}

impl Lists<'_> {
    /// All objects of a kind, each reduced to what is needed.
    async fn list<T>(&mut self, path: &str, of: impl FnMut(&Value) -> Option<T>) -> Reading<Vec<T>> {
        let (result, requests, objects) = self.reader.pages(path, of).await;
        self.read.requests += requests;
        self.read.objects += objects;
        reading(result)
    }

    /// What the Infrastructure says about the control plane.
    async fn topology(&mut self) -> Reading<String> {
        let found = reading(self.reader.get(INFRASTRUCTURE).await);
        self.read.requests += 1;
        self.read.objects += usize::from(found.value().is_some());
        match found {
            Reading::Read(object) => {
                let topology = object.pointer("/status/controlPlaneTopology").and_then(Value::as_str);
                topology.map_or(Reading::NotServed, |topology| Reading::Read(topology.to_owned()))
            }
            Reading::NotServed => Reading::NotServed,
            Reading::Unreadable(why) => Reading::Unreadable(why),
        }
    }

    async fn platform(&mut self) -> Reading<Platform> {
        match self.list(KUBEVIRTS, |object| Some(Platform::of(object))).await {
            Reading::Read(found) => found.into_iter().next().map_or(Reading::NotServed, Reading::Read),
            Reading::NotServed => Reading::NotServed,
            Reading::Unreadable(why) => Reading::Unreadable(why),
        }
    }

    async fn reboots(&mut self) -> Reading<Vec<advisor::blast_radius::Reboot>> {
        let is_relevant = |event: &Value| ["Reboot", "NodeReady"].iter().any(|reason| event["reason"] == *reason);
        match self.list(EVENTS, |event| is_relevant(event).then(|| event.clone())).await {
            Reading::Read(events) => Reading::Read(reboots(&events)),
            Reading::NotServed => Reading::NotServed,
            Reading::Unreadable(why) => Reading::Unreadable(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_one_namespace_lists_are_those_of_the_namespace() {
        assert_eq!(within(INSTANCES, Some("shop")), "/apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances");
        let pods = "/api/v1/namespaces/shop/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed";
        assert_eq!(within(PODS, Some("shop")), pods);
        assert_eq!(within(PODS, None), PODS);
    }
}
