//! Drains: one task per node that evicts pods until none is left.
//!
//! An eviction that is refused, by a disruption budget (429) or for any other reason, is repeated with a backoff.

use std::collections::BTreeMap;

use futures::future;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use kube_io::{Backoff, BackoffPolicy, Clock, RequestError};
use serde_json::{Value, json};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};
use tracing::{info, warn};

use super::{Drain, names, names::FIELD_MANAGER};
use crate::request::within_deadline;

pub(super) struct Drains {
    client: Client,
    tasks: JoinSet<Drain>,
    running: BTreeMap<Drain, AbortHandle>,
}

impl Drains {
    pub(super) fn new(client: Client) -> Self {
        Drains { client, tasks: JoinSet::new(), running: BTreeMap::new() }
    }

    /// Starts the drains that do not run yet, and stops all others. The value says whether KWOK acts as the node's kubelet.
    pub(super) fn replace(&mut self, drains: &BTreeMap<Drain, bool>) {
        self.running.retain(|drain, task| {
            let is_wanted = drains.contains_key(drain);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
        for (drain, has_kubelet) in drains {
            if !self.running.contains_key(drain) {
                let (client, owned, has_kubelet) = (self.client.clone(), drain.clone(), *has_kubelet);
                let task = self.tasks.spawn(async move {
                    drain_node(&client, &owned.node, has_kubelet).await;
                    owned
                });
                self.running.insert(drain.clone(), task);
            }
        }
    }

    pub(super) fn is_running(&self, drain: &Drain) -> bool {
        self.running.contains_key(drain)
    }

    /// The next drain that is done. Never completes if none is running.
    pub(super) async fn done(&mut self) -> Drain {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(drain)) => {
                    self.running.remove(&drain);
                    return drain;
                }
                Some(Err(_)) => {}
                None => future::pending().await,
            }
        }
    }
}

async fn drain_node(client: &Client, node: &str, has_kubelet: bool) {
    let mut backoff = Backoff::new(BackoffPolicy::LOCAL, Clock::default());
    loop {
        match evict_all(client, node, has_kubelet).await {
            Ok(0) => return,
            Ok(left) => info!(target: FIELD_MANAGER, node, left, "stand-in: draining"),
            Err(error) => warn!(target: FIELD_MANAGER, node, %error, "stand-in: draining"),
        }
        sleep(backoff.failed()).await;
    }
}

/// Evicts every pod that does not stay, and returns how many there were.
async fn evict_all(client: &Client, node: &str, has_kubelet: bool) -> Result<usize, RequestError> {
    let pods: Api<Pod> = Api::all(client.clone());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = within_deadline(format!("listing the pods on Node {node}"), pods.list(&on_node)).await?;
    let mut left = 0;
    for pod in list.items.iter().filter(|pod| is_evicted(pod)) {
        left += 1;
        // The kubelet ends a pod that is being deleted.
        if has_kubelet && pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        if let Err(error) = evict(client, pod, has_kubelet).await {
            info!(target: FIELD_MANAGER, node, %error, "stand-in: a pod stays for now");
        }
    }
    Ok(left)
}

/// Pods of a DaemonSet would be created again at once, and mirror pods belong to the kubelet.
fn is_evicted(pod: &Pod) -> bool {
    let is_daemon =
        pod.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    !is_daemon && !pod.annotations().contains_key(names::MIRROR_POD)
}

async fn evict(client: &Client, pod: &Pod, has_kubelet: bool) -> Result<(), RequestError> {
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
    if !has_kubelet {
        eviction["deleteOptions"]["gracePeriodSeconds"] = 0.into();
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    // `Api::evict` sends its delete options under a name that the API server does not know.
    match within_deadline(doing, pods.create_subresource::<Value, Value>("eviction", &name, &params, &eviction)).await {
        Err(error) if !error.class.is_absent() => Err(error),
        _ => Ok(()),
    }
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
