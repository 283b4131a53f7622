//! A watch that goes on whatever happens: it waits longer after each failure, and starts over when it cannot continue.
//!
//! The watcher of kube-rs begins every attempt with a success, which would end any back-off that counts successes, and it
//! never gives up a place in the history that the API server has forgotten. Both are seen to here.

use std::{fmt::Debug, pin::Pin, time::Duration};

use futures::{Stream, StreamExt};
use kube::{
    Api, Resource,
    core::Status,
    runtime::watcher::{self, Event, watcher},
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::{Surroundings, patience::Patience};

/// When the API server is back, what was missed has to be seen soon; asking costs it little.
const LONGEST: Duration = Duration::from_secs(15);

/// How often a failure is told as what it is; most of them pass before anybody could look.
const QUIET: usize = 3;

/// What there is to hear of a watch.
pub(crate) enum Heard<K> {
    Event(Event<K>),
    /// Nothing is served there. There was a pause.
    NotServed,
    /// We may not watch this, again and again: an API server that is just starting does not know any roles yet. It is tried
    /// on like everything else.
    Forbidden(String),
}

pub(crate) struct Persistent<K> {
    api: Api<K>,
    config: watcher::Config,
    events: Pin<Box<dyn Stream<Item = watcher::Result<Event<K>>> + Send>>,
    patience: Patience,
    /// When the last attempt began, and after which pause.
    begun: (Instant, Duration),
    failures: usize,
}

impl<K> Persistent<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    pub(crate) fn new(api: Api<K>, config: watcher::Config, surroundings: Surroundings) -> Self {
        let events = Box::pin(watcher(api.clone(), config.clone()));
        let begun = (Instant::now(), Duration::ZERO);
        let patience = Patience::new(surroundings).up_to(LONGEST);
        Persistent { api, config, events, patience, begun, failures: 0 }
    }

    pub(crate) async fn next(&mut self) -> Heard<K> {
        loop {
            let error = match self.events.next().await {
                Some(Ok(Event::Init)) => return Heard::Event(Event::Init),
                Some(Ok(event)) => {
                    self.patience.reset();
                    self.failures = 0;
                    return Heard::Event(event);
                }
                Some(Err(error)) => error,
                None => watcher::Error::NoResourceVersion,
            };
            let (since, pause) = self.begun;
            // A watch on something that never changes brings no event; that it held for a while is success enough.
            if since.elapsed() > pause {
                self.patience.reset();
                self.failures = 0;
            }
            self.failures += 1;
            let status = status(&error);
            let code = status.map(|status| status.code);
            match self.failures > QUIET {
                true => warn!(path = self.api.resource_url(), %error, "watching; trying again"),
                false => debug!(path = self.api.resource_url(), %error, "watching; trying again"),
            }
            if matches!(code, Some(404 | 410)) {
                self.events = Box::pin(watcher(self.api.clone(), self.config.clone()));
            }
            let pause = self.patience.next();
            tokio::time::sleep(pause).await;
            self.begun = (Instant::now(), pause);
            match code {
                Some(404) => return Heard::NotServed,
                Some(403) if self.failures == QUIET + 1 => {
                    return Heard::Forbidden(status.map_or_else(String::new, |status| status.message.clone()));
                }
                _ => {}
            }
        }
    }
}

fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}
