//! What the stand-in sees of the cluster, and how that changes.

use std::collections::{BTreeMap, BTreeSet};

use advisor::kind::KUBE_DESCHEDULER;
use k8s_openapi::api::core::v1::{Namespace, Node};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject},
    core::PartialObjectMeta,
    runtime::watcher::{Config, Event},
};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use super::{PolicyContext, names};
use crate::{
    listing::{Change, Listing},
    watch as watches,
};

#[derive(Debug)]
pub(super) enum News {
    Object(Box<Event<DynamicObject>>),
    Namespace(Box<Event<PartialObjectMeta<Namespace>>>),
    Node(Box<Event<PartialObjectMeta<Node>>>),
}

/// What is known of the cluster.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// The KubeDescheduler, if there is one.
    pub(super) object: Option<Object>,
    /// All namespaces, and whether Prometheus looks at them.
    pub(super) namespaces: BTreeMap<String, bool>,
    /// The nodes that virtual machines can run on.
    pub(super) schedulable: BTreeSet<String>,
    /// The namespaces whose pods stay, as of when everything was first known, like the operator's own.
    pub(super) protected: Vec<String>,
    pub(super) listings: (Listing, Listing, Listing),
    pub(super) listed: [bool; 3],
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

impl Sight {
    /// Whether everything was listed at least once.
    pub(super) fn is_complete(&self) -> bool {
        self.listed == [true; 3]
    }

    pub(super) fn hear(&mut self, news: News) {
        let Sight { object, namespaces, schedulable, listings, listed, .. } = self;
        match news {
            News::Object(event) => {
                listed[0] |= listings.0.hear(*event, |change| match change {
                    Change::Is(found) => *object = Some(Object::of(&found)),
                    Change::Gone(_) => *object = None,
                });
            }
            News::Namespace(event) => {
                let (label, value) = names::MONITORED.split_once('=').unwrap_or_default();
                listed[1] |= listings.1.hear(*event, |change| match change {
                    Change::Is(namespace) => {
                        let is_monitored = namespace.labels().get(label).is_some_and(|found| found == value);
                        namespaces.insert(namespace.name_any(), is_monitored);
                    }
                    Change::Gone((_, name)) => {
                        namespaces.remove(&name);
                    }
                });
            }
            News::Node(event) => {
                listed[2] |= listings.2.hear(*event, |change| match change {
                    Change::Is(node) => {
                        schedulable.insert(node.name_any());
                    }
                    Change::Gone((_, name)) => {
                        schedulable.remove(&name);
                    }
                });
            }
        }
        if self.is_complete() && self.protected.is_empty() {
            self.protected = PolicyContext::protected_among(self.namespaces.keys().map(String::as_str));
        }
    }
}

/// Watches all that the stand-in goes by, until dropped.
pub(super) fn watch(client: &Client, send: &mpsc::Sender<News>) -> JoinSet<()> {
    let mut watched = JoinSet::new();
    watched.spawn(watches::watch(
        kube_descheduler_api(client),
        only_cluster_object(),
        |_| {},
        News::Object,
        send.clone(),
    ));
    let namespaces = Api::all(client.clone());
    watched.spawn(watches::watch(namespaces, Config::default(), |_| {}, News::Namespace, send.clone()));
    let nodes = Config::default().labels(names::SCHEDULABLE);
    watched.spawn(watches::watch(Api::all(client.clone()), nodes, |_| {}, News::Node, send.clone()));
    watched
}

/// The KubeDeschedulers in the namespace of the operator.
pub fn kube_descheduler_api(client: &Client) -> Api<DynamicObject> {
    let kind = &KUBE_DESCHEDULER;
    let version = kind.versions.first().copied().unwrap_or("v1");
    let resource = ApiResource {
        group: kind.group.into(),
        version: version.into(),
        api_version: kind.api_version(version),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
    };
    Api::namespaced_with(client.clone(), names::NAMESPACE, &resource)
}

/// Selects the one KubeDescheduler that the operator reads.
pub fn only_cluster_object() -> Config {
    Config::default().fields(&format!("metadata.name={}", names::OBJECT))
}
