//! What the watches tell the steward of one configuration. Only the newest of each kind of news is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use advisor::{Kind, Query};
use api::VirtPlatformConfig;
use serde_json::Value;
use tokio::sync::Notify;

/// The configuration, as the watch last saw it.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    Present(Arc<VirtPlatformConfig>),
    Absent,
}

/// What a watch saw of something that a plan depends on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sighting {
    Object(Mark),
    Absent,
    /// All objects of a kind, by name.
    Members {
        version: &'static str,
        items: Vec<Value>,
    },
}

/// What tells whether an object has changed in a way that matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) uid: String,
    pub(crate) version: String,
    /// Counts changes of the spec, where there is a status beside it.
    pub(crate) generation: i64,
    pub(crate) labels: BTreeMap<String, String>,
}

#[derive(Debug, Default)]
pub(crate) struct Mail {
    pub(crate) root: Option<Root>,
    pub(crate) sightings: BTreeMap<Query, Sighting>,
    /// What may not be watched, and what the API server says to it.
    pub(crate) refused: BTreeMap<Query, String>,
    /// Kinds whose definition came, went or changed.
    pub(crate) kinds: Vec<&'static Kind>,
}

#[derive(Debug, Default)]
pub(crate) struct Inbox {
    mail: Mutex<Mail>,
    arrived: Notify,
}

impl Inbox {
    pub(crate) fn put(&self, write: impl FnOnce(&mut Mail)) {
        write(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner));
        self.arrived.notify_one();
    }

    pub(crate) fn take(&self) -> Mail {
        std::mem::take(&mut self.mail.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether something about this waits to be read.
    pub(crate) fn mentions(&self, query: &Query) -> bool {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner).sightings.contains_key(query)
    }

    pub(crate) async fn arrival(&self) {
        self.arrived.notified().await;
    }
}
