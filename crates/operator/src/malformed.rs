//! Objects that nobody can read: stored before the API checked them, or by other means. Each is told what is wrong with it,
//! beside the work, so that one of them stops nobody else.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use advisor::machine::Happening;
use http::Method;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::error_boundary::InvalidObject;
use serde_json::json;
use tokio::sync::Notify;
use tracing::{debug, warn};

use crate::{Class, Kubernetes, RequestError, Surroundings, events::Events, patience::Patience, root};

/// The malformed objects that there are, by name.
#[derive(Debug, Default)]
pub(crate) struct Malformed {
    found: Mutex<BTreeMap<String, Found>>,
    arrived: Notify,
}

#[derive(Debug, Clone)]
struct Found {
    what: What,
    version: Option<String>,
    told: Told,
}

/// Of which object there is to tell what.
#[derive(Debug, Clone, PartialEq, Eq)]
struct What {
    uid: String,
    generation: Option<i64>,
    error: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Event,
    /// Its status says so, too, or cannot.
    All,
}

impl Malformed {
    fn found(&self) -> MutexGuard<'_, BTreeMap<String, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One was seen. Our own report comes back as a new version of the same, of which nothing is left to tell.
    pub(crate) fn put(&self, InvalidObject { error, metadata }: InvalidObject) {
        let name = metadata.name.unwrap_or_default();
        let what = What { uid: metadata.uid.unwrap_or_default(), generation: metadata.generation, error };
        let mut found = self.found();
        let told = found.get(&name).filter(|known| known.what == what).map_or(Told::Nothing, |known| known.told);
        found.insert(name, Found { what, version: metadata.resource_version, told });
        drop(found);
        self.arrived.notify_one();
    }

    /// This one can be read, or is gone.
    pub(crate) fn forget(&self, name: &str) {
        self.found().remove(name);
    }

    /// There are no others than these.
    pub(crate) fn retain(&self, names: &BTreeSet<String>) {
        self.found().retain(|name, _| names.contains(name));
    }

    /// Tells each of them what is wrong with it, for ever.
    pub(crate) async fn report(&self, kubernetes: Kubernetes, events: Events, surroundings: Surroundings) {
        let mut patience = Patience::new(surroundings.clone());
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
            open.retain(|_, found| found.told != Told::All);
            let mut is_done = true;
            for (name, found) in open {
                let told = tell(&kubernetes, &events, &surroundings, &name, &found).await;
                is_done &= told == Told::All;
                if let Some(now) = self.found().get_mut(&name).filter(|now| now.what == found.what) {
                    now.told = told;
                }
            }
            again = (!is_done).then(|| patience.next());
            if is_done {
                patience.reset();
            }
        }
    }
}

async fn tell(
    kubernetes: &Kubernetes,
    events: &Events,
    surroundings: &Surroundings,
    name: &str,
    found: &Found,
) -> Told {
    let What { uid, error, .. } = &found.what;
    let message = format!("The object cannot be read: {error}. Correct it or delete it.");
    if found.told == Told::Nothing {
        warn!(config = name, error, "a malformed object is left alone");
        let happening = Happening { warning: true, reason: "Malformed".into(), note: message.clone() };
        events.publish_about(name, uid, &happening);
    }
    let condition = json!({
        "type": "Failed",
        "status": "True",
        "reason": "Malformed",
        "message": message,
        "lastTransitionTime": Time(surroundings.now()),
    });
    // Over the version that was seen: what has been corrected meanwhile is not malformed.
    let patch = json!({
        "metadata": {"resourceVersion": found.version},
        "status": {"phase": "Failed", "conditions": [condition]},
    });
    let doing = format!("reporting malformed VirtPlatformConfig {name}");
    let uri = root::object(name, "/status");
    match kubernetes.call(Method::PATCH, uri, Some("application/merge-patch+json"), &patch, doing).await {
        Ok(_) => Told::All,
        Err(error) => not_written(name, &error),
    }
}

fn not_written(name: &str, error: &RequestError) -> Told {
    match error.class {
        Class::Forbidden => warn!(config = name, %error, "a malformed object cannot be told so"),
        _ => debug!(config = name, %error, "the status of a malformed object could not be written"),
    }
    // The API server may refuse this too, because of what is malformed; then the event has to do.
    let may_pass = error.class.is_transient() || matches!(error.class, Class::Forbidden | Class::Unauthenticated);
    if may_pass { Told::Event } else { Told::All }
}
