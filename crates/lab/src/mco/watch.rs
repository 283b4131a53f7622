//! One watch of one kind, kept alive.
//!
//! The watcher's own recovery has gaps (a refused watch is retried from a version that may be long gone), so one that
//! fails again and again is replaced, which lists anew.

use std::{fmt::Debug, pin::pin};

use futures::StreamExt;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        watcher,
        watcher::{Config, Event},
    },
};
use serde::de::DeserializeOwned;
use tokio::{sync::mpsc, time::sleep};
use tracing::warn;

use super::{names::FIELD_MANAGER, patience::delay, world::News};

/// After so many failures in a row a watcher is replaced.
const REPLACE_AFTER: u32 = 5;

/// Sends news until nobody listens.
pub(super) async fn watch<K>(api: Api<K>, trim: fn(&mut K), wrap: fn(Box<Event<K>>) -> News, news: mpsc::Sender<News>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut failures = 0;
    loop {
        let mut stream = pin!(watcher(api.clone(), Config::default()));
        let mut failures_of_this = 0;
        while failures_of_this < REPLACE_AFTER
            && let Some(event) = stream.next().await
        {
            match event {
                Ok(event) => {
                    // Every failing list begins with this one, so it proves nothing.
                    if !matches!(event, Event::Init) {
                        (failures, failures_of_this) = (0, 0);
                    }
                    let event = event.modify(|object| {
                        object.managed_fields_mut().clear();
                        trim(object);
                    });
                    if news.send(wrap(Box::new(event))).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    warn!(target: FIELD_MANAGER, url = api.resource_url(), %error, failures, "stand-in: a watch failed");
                    sleep(delay(failures)).await;
                    failures += 1;
                    failures_of_this += 1;
                }
            }
        }
    }
}
