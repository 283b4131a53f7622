//! How the operator watches: every watch with the same backoff, and the same observer.

use std::{fmt::Debug, sync::Arc};

use kube::{Api, Resource, runtime::watcher};
use kube_io::{Backoff, BackoffPolicy, Clock, Observer, ResilientWatch};
use serde::de::DeserializeOwned;

#[derive(Clone)]
pub(crate) struct WatchSettings {
    pub(crate) clock: Clock,
    pub(crate) observer: Arc<dyn Observer>,
}

impl WatchSettings {
    pub(crate) fn watch<K>(&self, api: Api<K>, config: watcher::Config) -> ResilientWatch<K>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let backoff = Backoff::new(BackoffPolicy::WATCHES, self.clock.clone());
        ResilientWatch::new(api, config, backoff).observed(self.observer.clone())
    }
}
