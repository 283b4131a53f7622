//! A watch that continues after every failure: it waits longer after each one, and lists again when it cannot resume. kube's watcher
//! begins every attempt with a success, which would reset a backoff, and never gives up a resourceVersion that the API server has
//! forgotten.

use std::{collections::VecDeque, fmt::Debug, pin::Pin, sync::Arc, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, time::Instant};
use tracing::{debug, warn};

use crate::{Backoff, BackoffPolicy, Change, Class, Clock, Observer, RequestError, relist::Relist};

/// Fewer failures in a row are not logged as warnings: most of them pass before anybody could look.
const QUIET_FAILURES: usize = 3;

/// After so many failures in a row the watch lists again: the resourceVersion it resumes from may be the cause.
const RELIST_AFTER: usize = 5;

/// How long a watch lasts, give or take a tenth. A watch on a dead connection is deaf, and bookmarks are too seldom to notice that
/// soon. kube gives it up when it brought nothing for five seconds more.
const LASTS: Duration = Duration::from_secs(18);

#[derive(Debug, Clone, PartialEq)]
pub enum WatchEvent<K> {
    Change(Change<K>),
    /// Nothing is served under this path. The backoff has passed.
    NotServed,
    /// The right to watch is missing, again and again: an API server that is just starting does not know any roles yet.
    Forbidden(String),
}

pub struct ResilientWatch<K> {
    api: Api<K>,
    config: watcher::Config,
    events: Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>,
    relist: Relist,
    pending: VecDeque<Change<K>>,
    modify: fn(&mut K),
    backoff: Backoff,
    /// When the current attempt began, and the wait before it.
    attempt: (Instant, Duration),
    failures: usize,
    observer: Arc<dyn Observer>,
}

impl<K> Debug for ResilientWatch<K>
where
    K: Resource,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ResilientWatch of {}", self.api.resource_url())
    }
}

impl<K> ResilientWatch<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    /// Tells changes within 30 s, even if its connection dies.
    pub fn new(api: Api<K>, config: watcher::Config, backoff: Backoff) -> Self {
        let lasts = backoff.jittered(LASTS).as_secs().try_into().unwrap_or(u32::MAX);
        ResilientWatch::lasting(api, config.timeout(lasts), backoff)
    }

    fn lasting(api: Api<K>, config: watcher::Config, backoff: Backoff) -> Self {
        let events = Box::pin(watcher(api.clone(), config.clone()));
        let attempt = (Instant::now(), Duration::ZERO);
        let (relist, pending) = (Relist::default(), VecDeque::new());
        let observer = Arc::new(());
        ResilientWatch { api, config, events, relist, pending, modify: |_| {}, backoff, attempt, failures: 0, observer }
    }

    /// For the parts of a lab and for stand-ins, which run beside their API server: no firewall is between them.
    pub fn local(api: Api<K>, config: watcher::Config) -> Self {
        ResilientWatch::lasting(api, config, Backoff::new(BackoffPolicy::LOCAL, Clock::default()))
    }

    /// Removes from every object what its consumer does not read, before it is kept.
    pub fn modify(self, modify: fn(&mut K)) -> Self {
        ResilientWatch { modify, ..self }
    }

    /// Tells an observer of every failure.
    pub fn observed(self, observer: Arc<dyn Observer>) -> Self {
        ResilientWatch { observer, ..self }
    }

    pub async fn next(&mut self) -> WatchEvent<K> {
        loop {
            if let Some(change) = self.pending.pop_front() {
                return WatchEvent::Change(change);
            }
            let error = match self.events.next().await {
                Some(Ok(event)) => {
                    // Every attempt begins with `Init`, so that one proves nothing.
                    if !matches!(event, Event::Init) {
                        self.succeeded();
                    }
                    self.pending.extend(self.relist.changes(event.modify(self.modify)));
                    continue;
                }
                Some(Err(error)) => error,
                None => watcher::Error::NoResourceVersion,
            };
            if let Some(event) = self.failed(&error).await {
                return event;
            }
        }
    }

    fn succeeded(&mut self) {
        self.backoff.reset();
        self.failures = 0;
    }

    /// Waits. Returns an event if the consumer has to know of the failure.
    async fn failed(&mut self, error: &watcher::Error) -> Option<WatchEvent<K>> {
        let (since, wait) = self.attempt;
        // A watch on objects that never change brings no event: that it lasted for a while is success enough.
        if since.elapsed() > wait {
            self.succeeded();
        }
        self.failures += 1;
        let path = self.api.resource_url();
        let RequestError { message, class, .. } = RequestError::of_watch(format!("watching {path}"), error);
        self.observer.watch_restarted(path.rsplit('/').next().unwrap_or_default(), &class, self.failures);
        match self.failures > QUIET_FAILURES {
            true => warn!(path, error = message, "watching; trying again"),
            false => debug!(path, error = message, "watching; trying again"),
        }
        let is_told_forbidden = class == Class::Forbidden && self.failures == QUIET_FAILURES + 1;
        let is_gone = class.is_absent() || class == Class::Expired;
        // Who was told that a right is missing is told by a new list that it is back.
        if is_gone || is_told_forbidden || self.failures.is_multiple_of(RELIST_AFTER) {
            self.events = Box::pin(watcher(self.api.clone(), self.config.clone()));
        }
        let wait = self.backoff.failed();
        tokio::time::sleep(wait).await;
        self.attempt = (Instant::now(), wait);
        match class {
            class if class.is_absent() => Some(WatchEvent::NotServed),
            _ if is_told_forbidden => Some(WatchEvent::Forbidden(message)),
            _ => None,
        }
    }
}

/// Sends the changes of a watch into a channel until its receiver is dropped. `managedFields`, which nobody reads and which
/// are the bulk of most objects, are removed.
pub async fn forward<K, T>(mut watch: ResilientWatch<K>, input: fn(Change<K>) -> T, sender: mpsc::Sender<T>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    loop {
        let WatchEvent::Change(mut change) = watch.next().await else { continue };
        if let Change::Applied(object) = &mut change {
            object.managed_fields_mut().clear();
        }
        if sender.send(input(change)).await.is_err() {
            return;
        }
    }
}
