//! Drains: one task per node that evicts pods until none is left, in attempts with pauses between them.

use std::collections::BTreeMap;

use futures::future;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use kube_io::{Class, RequestError};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};
use tracing::{info, warn};

use super::{Drain, DrainSettings, names, names::FIELD_MANAGER};
use crate::time::{Busy, Time};

pub(super) struct Drains {
    client: Client,
    time: Time,
    /// Those that are done are busy until they are noticed.
    tasks: JoinSet<(Drain, Busy)>,
    running: BTreeMap<Drain, AbortHandle>,
}

impl Drains {
    pub(super) fn new(client: Client, time: &Time) -> Self {
        Drains { client, time: time.clone(), tasks: JoinSet::new(), running: BTreeMap::new() }
    }

    /// Starts the drains that do not run yet, and stops all others. The value says whether KWOK acts as the node's kubelet.
    pub(super) fn replace(&mut self, drains: &BTreeMap<Drain, bool>, settings: DrainSettings) {
        self.running.retain(|drain, task| {
            let is_wanted = drains.contains_key(drain);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for (drain, has_kubelet) in drains {
            if !self.running.contains_key(drain) {
                let (time, owned) = (self.time.clone(), drain.clone());
                let node =
                    Draining { client: self.client.clone(), time: time.clone(), has_kubelet: *has_kubelet, settings };
                let task = self.tasks.spawn(self.time.working(async move {
                    node.drain(&owned.node).await;
                    (owned, time.busy())
                }));
                self.running.insert(drain.clone(), task);
            }
        }
    }

    pub(super) fn is_running(&self, drain: &Drain) -> bool {
        self.running.contains_key(drain)
    }

    /// The next drain that is done. Never completes if none is running.
    pub(super) async fn done(&mut self) -> (Drain, Busy) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok((drain, busy))) => {
                    self.running.remove(&drain);
                    return (drain, busy);
                }
                Some(Err(_)) => {}
                None => future::pending().await,
            }
        }
    }
}

/// How one node is drained.
struct Draining {
    client: Client,
    time: Time,
    /// Whether KWOK acts as its kubelet.
    has_kubelet: bool,
    settings: DrainSettings,
}

impl Draining {
    /// Ends when the node is empty. An attempt lists the pods and deals with all of them at the same time, as MCO does.
    async fn drain(&self, node: &str) {
        let long_pauses = self.time.after(self.settings.long_pause_after);
        loop {
            match self.time.timeout(self.settings.attempt, self.attempt(node)).await {
                Some(Ok(())) => return,
                Some(Err(error)) => warn!(target: FIELD_MANAGER, node, %error, "stand-in: draining"),
                None => info!(target: FIELD_MANAGER, node, "stand-in: an attempt to drain the node has failed"),
            }
            let is_early = self.time.now() < long_pauses;
            self.time.sleep(if is_early { self.settings.pause } else { self.settings.long_pause }).await;
        }
    }

    async fn attempt(&self, node: &str) -> Result<(), RequestError> {
        let pods: Api<Pod> = Api::all(self.client.clone());
        let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        loop {
            let list = self.time.read(format!("listing the pods on Node {node}"), pods.list(&on_node)).await?;
            let evicted: Vec<&Pod> = list.items.iter().filter(|pod| is_evicted(pod)).collect();
            if evicted.is_empty() {
                return Ok(());
            }
            future::join_all(evicted.into_iter().map(|pod| self.remove(pod))).await;
        }
    }

    /// Evicts a pod, again and again if that is refused, by a disruption budget or a webhook, and waits until it is gone.
    async fn remove(&self, pod: &Pod) {
        // The kubelet ends a pod that is being deleted.
        let is_ending = self.has_kubelet && pod.metadata.deletion_timestamp.is_some();
        while !is_ending && let Err(error) = self.evict(pod).await {
            info!(target: FIELD_MANAGER, %error, "stand-in: a pod stays for now");
            self.time.sleep(self.settings.retry).await;
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let name = pod.name_any();
        loop {
            match self.time.read(format!("reading Pod {name}"), pods.get_metadata_opt(&name)).await {
                Ok(found) if found.as_ref().is_none_or(|found| found.metadata.uid != pod.metadata.uid) => return,
                Ok(_) => {}
                Err(error) => warn!(target: FIELD_MANAGER, %error, "stand-in: draining"),
            }
            self.time.sleep(self.settings.poll).await;
        }
    }

    async fn evict(&self, pod: &Pod) -> Result<(), RequestError> {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let doing = format!("evicting Pod {namespace}/{name}");
        let mut eviction = json!({
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            // Not a new pod of the same name.
            "deleteOptions": {"preconditions": {"uid": pod.uid()}},
        });
        // Without a kubelet nobody would confirm that the pod has ended.
        if !self.has_kubelet {
            eviction["deleteOptions"]["gracePeriodSeconds"] = 0.into();
        }
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &namespace);
        let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
        // `Api::evict` sends its delete options under a name that the API server does not know.
        let request = pods.create_subresource::<Value, Value>("eviction", &name, &params, &eviction);
        match self.time.read(doing, request).await {
            Err(error) if error.class != Class::Unknown && !error.class.is_absent() => Err(error),
            // It was not refused.
            answer => {
                self.time.wrote();
                answer.map(|_| ()).or_else(|error| if error.class.is_absent() { Ok(()) } else { Err(error) })
            }
        }
    }
}

/// Pods of a DaemonSet would be created again at once, and mirror pods belong to the kubelet.
fn is_evicted(pod: &Pod) -> bool {
    let is_daemon =
        pod.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    !is_daemon && !pod.annotations().contains_key(names::MIRROR_POD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_daemon_sets_and_mirror_pods_stay() {
        let owned = |kind: &str, controller: bool| json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "1", "controller": controller}]});
        for (metadata, expected) in [
            (json!({}), true),
            (owned("ReplicaSet", true), true),
            (owned("DaemonSet", true), false),
            (owned("DaemonSet", false), true),
            (json!({"annotations": {"kubernetes.io/config.mirror": "x"}}), false),
        ] {
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert_eq!(is_evicted(&pod), expected, "{metadata}");
        }
    }
}
