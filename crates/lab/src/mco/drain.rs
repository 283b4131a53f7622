//! Drains: one task per node that evicts until nothing is left to evict.
//!
//! An eviction that is refused, by a disruption budget (429) or for any other reason, is tried again with growing pauses.
//! When a drain has taken too long is not decided here.

use std::collections::BTreeMap;

use futures::future;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    task::{AbortHandle, JoinSet},
    time::sleep,
};
use tracing::{info, warn};

use super::{Error, names, names::FIELD_MANAGER, write::within};
use crate::watch::delay;

/// A node to be drained, and the config for which.
pub(super) type Order = (String, String);

pub(super) struct Drains {
    client: Client,
    tasks: JoinSet<Order>,
    running: BTreeMap<Order, AbortHandle>,
}

impl Drains {
    pub(super) fn new(client: Client) -> Self {
        Drains { client, tasks: JoinSet::new(), running: BTreeMap::new() }
    }

    /// Starts what is ordered and not running, stops what is running and no longer ordered. The value tells of each
    /// order whether KWOK plays the node's kubelet.
    pub(super) fn order(&mut self, orders: &BTreeMap<Order, bool>) {
        self.running.retain(|order, task| {
            let is_ordered = orders.contains_key(order);
            if !is_ordered {
                task.abort();
            }
            is_ordered
        });
        for (order, has_kubelet) in orders {
            if !self.running.contains_key(order) {
                let (client, owned, has_kubelet) = (self.client.clone(), order.clone(), *has_kubelet);
                let task = self.tasks.spawn(async move {
                    drain(&client, &owned.0, has_kubelet).await;
                    owned
                });
                self.running.insert(order.clone(), task);
            }
        }
    }

    pub(super) fn is_running(&self, order: &Order) -> bool {
        self.running.contains_key(order)
    }

    /// The next drain that is done. Waits for ever if none is running.
    pub(super) async fn done(&mut self) -> Order {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(order)) => {
                    self.running.remove(&order);
                    return order;
                }
                Some(Err(_)) => {}
                None => future::pending().await,
            }
        }
    }
}

async fn drain(client: &Client, node: &str, has_kubelet: bool) {
    let mut tries = 0;
    loop {
        match evict_all(client, node, has_kubelet).await {
            Ok(0) => return,
            Ok(left) => info!(target: FIELD_MANAGER, node, left, "stand-in: draining"),
            Err(error) => warn!(target: FIELD_MANAGER, node, %error, reason = error.reason(), "stand-in: draining"),
        }
        sleep(delay(tries)).await;
        tries += 1;
    }
}

/// Asks every pod that has to go to go, and returns how many there were.
async fn evict_all(client: &Client, node: &str, has_kubelet: bool) -> Result<usize, Error> {
    let pods: Api<Pod> = Api::all(client.clone());
    let on_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    let list = within(format!("listing the pods on Node {node}"), pods.list(&on_node)).await?;
    let mut left = 0;
    for pod in list.items.iter().filter(|pod| has_to_go(pod)) {
        left += 1;
        // With a kubelet, one that was told goes by itself.
        if has_kubelet && pod.metadata.deletion_timestamp.is_some() {
            continue;
        }
        if let Err(error) = evict(client, pod, has_kubelet).await {
            info!(target: FIELD_MANAGER, node, %error, reason = error.reason(), "stand-in: a pod stays for now");
        }
    }
    Ok(left)
}

/// Pods of DaemonSets would come right back, and mirror pods are the kubelet's own.
fn has_to_go(pod: &Pod) -> bool {
    let is_daemon =
        pod.owner_references().iter().any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    !is_daemon && !pod.annotations().contains_key(names::MIRROR_POD)
}

async fn evict(client: &Client, pod: &Pod, has_kubelet: bool) -> Result<(), Error> {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let doing = format!("evicting Pod {namespace}/{name}");
    let mut eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        // Not this pod's successor of the same name.
        "deleteOptions": {"preconditions": {"uid": pod.uid()}},
    });
    // Where there is no kubelet, nobody would confirm that the pod has ended.
    if !has_kubelet {
        eviction["deleteOptions"]["gracePeriodSeconds"] = 0.into();
    }
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    // Not `Api::evict`, which sends its delete options under a name that the API server does not know.
    match within(doing, pods.create_subresource::<Value, Value>("eviction", &name, &params, &eviction)).await {
        Err(error) if error.code() != Some(404) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_and_mirror_pods_stay() {
        let owned = |kind: &str, controller: bool| json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": "1", "controller": controller}]});
        for (metadata, goes) in [
            (json!({}), true),
            (owned("ReplicaSet", true), true),
            (owned("DaemonSet", true), false),
            (owned("DaemonSet", false), true),
            (json!({"annotations": {"kubernetes.io/config.mirror": "x"}}), false),
        ] {
            let pod: Pod = serde_json::from_value(json!({"metadata": metadata})).unwrap();
            assert_eq!(has_to_go(&pod), goes, "{metadata}");
        }
    }
}
