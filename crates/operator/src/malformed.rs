//! Configurations that cannot be parsed: they were stored under an older schema, or past the API server. Their error is
//! reported beside the reconcilers, so that a malformed object stops no other one.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use advisor::machine::EventNote;
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::error_boundary::InvalidObject;
use serde_json::json;
use tokio::sync::Notify;
use tracing::{debug, warn};

use kube_io::{ApiServer, Backoff, BackoffPolicy, Class, Clock, RequestError};

use crate::{configs, events::Events};

/// The malformed objects, by name.
#[derive(Debug, Default)]
pub(crate) struct Malformed {
    found: Mutex<BTreeMap<String, Found>>,
    arrived: Notify,
}

#[derive(Debug, Clone)]
struct Found {
    problem: Problem,
    version: Option<String>,
    reported: Reported,
}

/// The object and its error.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    uid: String,
    generation: Option<i64>,
    error: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    Nothing,
    Event,
    /// Its status says so, too, or cannot be written.
    All,
}

impl Malformed {
    fn found(&self) -> MutexGuard<'_, BTreeMap<String, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one. The operator's own report comes back as a new version of the same object, and is not reported again.
    pub(crate) fn put(&self, InvalidObject { error, metadata }: InvalidObject) {
        let name = metadata.name.unwrap_or_default();
        let problem = Problem { uid: metadata.uid.unwrap_or_default(), generation: metadata.generation, error };
        let mut found = self.found();
        let reported =
            found.get(&name).filter(|known| known.problem == problem).map_or(Reported::Nothing, |known| known.reported);
        found.insert(name, Found { problem, version: metadata.resource_version, reported });
        drop(found);
        self.arrived.notify_one();
    }

    /// Removes one that can be parsed now, or was deleted.
    pub(crate) fn forget(&self, name: &str) {
        self.found().remove(name);
    }

    /// Reports each of them in its status and as an Event.
    pub(crate) async fn report(&self, api_server: ApiServer, events: Events, clock: Clock) {
        let mut backoff = Backoff::new(BackoffPolicy::REQUESTS, clock.clone());
        let mut again: Option<Duration> = None;
        loop {
            let timer = async {
                match again {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.arrived.notified() => {}
                () = timer => {}
            }
            let mut open = self.found().clone();
            open.retain(|_, found| found.reported != Reported::All);
            let mut is_done = true;
            for (name, found) in open {
                let reported = report(&api_server, &events, &clock, &name, &found).await;
                is_done &= reported == Reported::All;
                if let Some(now) = self.found().get_mut(&name).filter(|now| now.problem == found.problem) {
                    now.reported = reported;
                }
            }
            again = (!is_done).then(|| backoff.failed());
            if is_done {
                backoff.reset();
            }
        }
    }
}

async fn report(api_server: &ApiServer, events: &Events, clock: &Clock, name: &str, found: &Found) -> Reported {
    let Problem { uid, error, generation } = &found.problem;
    let message = format!("The object cannot be read: {error}. Correct it or delete it.");
    if found.reported == Reported::Nothing {
        warn!(config = name, error, "a malformed object is left alone");
        let event_note = EventNote { warning: true, reason: "Malformed".into(), note: message.clone() };
        events.publish_about(name, uid, &event_note);
    }
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind,
            "status": status,
            "reason": "Malformed",
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": Time(clock.now()),
        })
    };
    let conditions = [condition("Failed", "True"), condition("Ready", "False"), condition("Stalled", "True")];
    // The version makes sure that an object that was corrected meanwhile is not reported. No generation counts as acted on: an
    // operator that can parse the object begins anew.
    let patch = json!({
        "metadata": {"resourceVersion": found.version},
        "status": {"phase": "Failed", "observedGeneration": null, "conditions": conditions},
    });
    let doing = format!("reporting malformed VirtPlatformConfig {name}");
    let uri = configs::object(name, "/status");
    match api_server.send_body(Method::PATCH, uri, "application/merge-patch+json", &patch, doing).await {
        Ok(_) => Reported::All,
        Err(error) => not_written(name, &error),
    }
}

fn not_written(name: &str, error: &RequestError) -> Reported {
    match error.class {
        Class::Forbidden => warn!(config = name, %error, "a malformed object cannot be reported so"),
        _ => debug!(config = name, %error, "the status of a malformed object could not be written"),
    }
    // The API server may refuse this status, too, because of what is malformed. Then the Event is all there is.
    let may_pass = error.class.is_transient() || matches!(error.class, Class::Forbidden | Class::Unauthenticated);
    if may_pass { Reported::Event } else { Reported::All }
}
