//! Reads what the blast radius depends on: one list per kind, page by page, with the rights of the caller.

use std::time::Instant;

use advisor::blast_radius::{
    Budget, Instance, MachinePool, Migration, Node, Observed, Operation, Platform, Pod, Reading, VirtualMachine,
    reboots,
};
use operator::RequestError;
use serde::Serialize;
use serde_json::{Value, json};

use crate::reader::{Reader, why};

/// What reading has cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Read {
    pub(crate) requests: usize,
    pub(crate) objects: usize,
    pub(crate) milliseconds: u64,
}

const NODES: &str = "/api/v1/nodes";
const POOLS: &str = "/apis/machineconfiguration.openshift.io/v1/machineconfigpools";
const INSTANCES: &str = "/apis/kubevirt.io/v1/virtualmachineinstances";
const MACHINES: &str = "/apis/kubevirt.io/v1/virtualmachines";
const KUBEVIRTS: &str = "/apis/kubevirt.io/v1/kubevirts";
const MIGRATIONS: &str = "/apis/kubevirt.io/v1/virtualmachineinstancemigrations";
const BUDGETS: &str = "/apis/policy/v1/poddisruptionbudgets";
const PODS: &str = "/api/v1/pods?fieldSelector=status.phase!=Succeeded,status.phase!=Failed";
/// Events about objects that are in no namespace are in this one.
const EVENTS: &str = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.kind=Node";
const OPERATIONS: &str = "/apis/ifo.kubevirt.io/v1alpha1/inflightoperations";

pub(super) async fn observe(reader: &Reader) -> (Observed, Read) {
    let start = Instant::now();
    // One kind after the other: at no time is more than one page in memory, and the API server is not hurried.
    let mut lists = Lists { reader, read: Read::default() };
    let observed = Observed {
        nodes: lists.list(NODES, Node::of).await,
        pools: lists.list(POOLS, MachinePool::of).await,
        instances: lists.list(INSTANCES, Instance::of).await,
        machines: lists.list(MACHINES, VirtualMachine::of).await,
        platform: lists.platform().await,
        migrations: lists.list(MIGRATIONS, |object| Some(Migration::of(object))).await,
        budgets: lists.list(BUDGETS, Budget::of).await,
        pods: lists.list(PODS, Pod::of).await,
        reboots: lists.reboots().await,
        operations: lists.list(OPERATIONS, Operation::of).await,
    };
    let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
    (observed, Read { milliseconds, ..lists.read })
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

fn reading<T>(result: Result<T, RequestError>) -> Reading<T> {
    match result {
        Ok(value) => Reading::Read(value),
        Err(error) if error.class.is_absent() => Reading::NotServed,
        Err(error) => Reading::Unreadable(why(&error.class).to_owned()),
    }
}
