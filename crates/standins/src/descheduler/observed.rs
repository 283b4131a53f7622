//! The part of the cluster that the stand-in observes.

use std::collections::{BTreeMap, BTreeSet};

use advisor::kind::KUBE_DESCHEDULER;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{Api, Client, ResourceExt, api::DynamicObject, core::PartialObjectMeta, runtime::watcher::Config};
use kube_io::{Backoff, BackoffPolicy, Change, Clock, ResilientWatch, forward};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use super::{PolicyContext, names};
use crate::objects::resource_of;

/// A change that one of the watches reports.
#[derive(Debug)]
pub(super) enum WatchedChange {
    Object(Change<DynamicObject>),
    Namespace(Change<PartialObjectMeta<Namespace>>),
    Node(Change<PartialObjectMeta<Node>>),
}

#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The KubeDescheduler, if there is one.
    pub(super) object: Option<Object>,
    /// All namespaces, and whether Prometheus monitors them.
    pub(super) namespaces: BTreeMap<String, bool>,
    /// The nodes that virtual machines can run on.
    pub(super) schedulable: BTreeSet<String>,
    /// The protected namespaces as of the first sync, like those of the real operator.
    pub(super) protected: Vec<String>,
    /// Objects, namespaces and nodes.
    pub(super) synced: [bool; 3],
}

/// A KubeDescheduler.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) uid: String,
    pub(super) generation: i64,
    pub(super) spec: Value,
    pub(super) status: Value,
}

impl Object {
    pub(super) fn of(object: &DynamicObject) -> Object {
        let part = |name: &str| object.data.get(name).cloned().unwrap_or(Value::Null);
        Object {
            uid: object.uid().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or(0),
            spec: part("spec"),
            status: part("status"),
        }
    }
}

impl Observed {
    /// Whether every kind was listed.
    pub(super) fn is_synced(&self) -> bool {
        self.synced == [true; 3]
    }

    pub(super) fn apply(&mut self, change: WatchedChange) {
        match change {
            WatchedChange::Object(Change::Applied(object)) => self.object = Some(Object::of(&object)),
            WatchedChange::Object(Change::Deleted(_)) => self.object = None,
            WatchedChange::Object(Change::Synced) => self.synced[0] = true,
            WatchedChange::Namespace(Change::Applied(namespace)) => {
                let (label, value) = names::MONITORED.split_once('=').unwrap_or_default();
                let is_monitored = namespace.labels().get(label).is_some_and(|found| found == value);
                self.namespaces.insert(namespace.name_any(), is_monitored);
            }
            WatchedChange::Namespace(Change::Deleted(key)) => {
                self.namespaces.remove(&key.name);
            }
            WatchedChange::Namespace(Change::Synced) => self.synced[1] = true,
            WatchedChange::Node(Change::Applied(node)) => {
                self.schedulable.insert(node.name_any());
            }
            WatchedChange::Node(Change::Deleted(key)) => {
                self.schedulable.remove(&key.name);
            }
            WatchedChange::Node(Change::Synced) => self.synced[2] = true,
        }
        if self.is_synced() && self.protected.is_empty() {
            self.protected = PolicyContext::protected_among(self.namespaces.keys().map(String::as_str));
        }
    }
}

/// Watches everything that the stand-in observes. The watches end when the result is dropped.
pub(super) fn watch(client: &Client, sender: &mpsc::Sender<WatchedChange>) -> JoinSet<()> {
    let backoff = || Backoff::new(BackoffPolicy::LOCAL, Clock::default());
    let mut watches = JoinSet::new();
    let objects = ResilientWatch::new(kube_descheduler_api(client), only_cluster_object(), backoff());
    watches.spawn(forward(objects, WatchedChange::Object, sender.clone()));
    let namespaces = ResilientWatch::new(Api::all(client.clone()), Config::default(), backoff());
    watches.spawn(forward(namespaces, WatchedChange::Namespace, sender.clone()));
    let schedulable = Config::default().labels(names::SCHEDULABLE);
    let nodes = ResilientWatch::new(Api::all(client.clone()), schedulable, backoff());
    watches.spawn(forward(nodes, WatchedChange::Node, sender.clone()));
    watches
}

/// The KubeDeschedulers in the namespace of the operator.
pub fn kube_descheduler_api(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), names::NAMESPACE, &resource_of(&KUBE_DESCHEDULER))
}

/// Selects the one KubeDescheduler that the operator reads.
pub fn only_cluster_object() -> Config {
    Config::default().fields(&format!("metadata.name={}", names::OBJECT))
}
