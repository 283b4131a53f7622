//! The work queue of one reconciler: what the watches have observed and it has not handled yet. Of each object only the
//! newest observation is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use advisor::{Kind, Query};
use api::VirtPlatformConfig;
use serde_json::Value;
use tokio::sync::Notify;

/// The configuration, as the watch last delivered it.
#[derive(Debug, Clone)]
pub(crate) enum ConfigState {
    Present(Arc<VirtPlatformConfig>),
    Absent,
}

/// The last state of an object, or of all objects of a kind, that a plan depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Observation {
    Object(ObjectVersion),
    Absent,
    /// All objects of a kind, by name.
    List {
        version: &'static str,
        items: Vec<Value>,
    },
}

/// The metadata that tell whether an object has changed in a way that matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ObjectVersion {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// Counts changes of the spec, where there is a status beside it.
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
    /// Those that matter.
    pub(crate) annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) config: Option<ConfigState>,
    pub(crate) observations: BTreeMap<Query, Observation>,
    /// Watches that the API server refuses, with its message.
    pub(crate) forbidden: BTreeMap<Query, String>,
    /// Kinds whose CustomResourceDefinition was created, changed or deleted.
    pub(crate) kinds: Vec<&'static Kind>,
}

#[derive(Debug, Default)]
pub(crate) struct WorkQueue {
    pending: Mutex<Pending>,
    notify: Notify,
}

impl WorkQueue {
    pub(crate) fn put(&self, write: impl FnOnce(&mut Pending)) {
        write(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        self.notify.notify_one();
    }

    pub(crate) fn take(&self) -> Pending {
        std::mem::take(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether an observation of this query has not been handled yet.
    pub(crate) fn contains(&self, query: &Query) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).observations.contains_key(query)
    }

    pub(crate) async fn changed(&self) {
        self.notify.notified().await;
    }
}
