//! One watch of one kind, kept alive.
//!
//! The watcher's own recovery has gaps (a refused watch is retried from a version that may be long gone), so one that
//! fails again and again is replaced, which lists anew.

use std::{fmt::Debug, pin::pin, time::Duration};

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

/// After so many failures in a row a watcher is replaced.
const REPLACE_AFTER: u32 = 5;
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// A delay that doubles with each try.
pub fn delay(tries: u32) -> Duration {
    FIRST.saturating_mul(1 << tries.min(16)).min(LONGEST)
}

/// Sends news until nobody listens.
pub async fn watch<K, N>(
    api: Api<K>,
    config: Config,
    trim: fn(&mut K),
    wrap: fn(Box<Event<K>>) -> N,
    news: mpsc::Sender<N>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut failures = 0;
    loop {
        let mut stream = pin!(watcher(api.clone(), config.clone()));
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
                    warn!(target: "lab", url = api.resource_url(), %error, failures, "a watch failed");
                    sleep(delay(failures)).await;
                    failures += 1;
                    failures_of_this += 1;
                }
            }
        }
    }
}
