//! The configurations themselves: where they are, and the watch on them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use advisor::machine::Happening;
use api::{
    VirtPlatformConfig,
    names::{ADVISOR_GROUP, VERSION},
};
use http::Method;
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::{
    Api, ResourceExt,
    core::{DeserializeGuard, error_boundary::InvalidObject},
    runtime::watcher::{self, Event},
};
use serde_json::json;
use tracing::{debug, warn};

use crate::{
    Kubernetes, Readiness,
    events::Events,
    inbox::{Inbox, Root},
    persistent::Persistent,
};

pub(crate) fn collection(query: &str) -> String {
    format!("/apis/{ADVISOR_GROUP}/{VERSION}/virtplatformconfigs{query}")
}

pub(crate) fn object(name: &str, rest: &str) -> String {
    collection(&format!("/{name}{rest}"))
}

/// Watches all configurations and tells each steward about its own, for ever.
pub(crate) async fn watch(
    kubernetes: Kubernetes,
    events: Events,
    stewards: BTreeMap<&'static str, Arc<Inbox>>,
    readiness: Readiness,
) {
    let api: Api<DeserializeGuard<VirtPlatformConfig>> = Api::all(kubernetes.client().clone());
    let mut watch = Persistent::new(api, watcher::Config::default());
    let mut listed: BTreeSet<String> = BTreeSet::new();
    let mut malformed = Malformed { kubernetes, events, known: BTreeMap::new() };
    loop {
        let put = |name: &str, root: Root| {
            if let Some(inbox) = stewards.get(name) {
                inbox.put(|mail| mail.root = Some(root));
            }
        };
        match watch.next().await {
            Some(Event::Init) => listed.clear(),
            Some(Event::Apply(found) | Event::InitApply(found)) => {
                listed.insert(found.name_any());
                match found.0 {
                    Ok(config) => put(&config.name_any(), Root::Present(Arc::new(config))),
                    Err(invalid) => malformed.report(&invalid).await,
                }
            }
            Some(Event::InitDone) => {
                readiness.set(true);
                stewards.keys().filter(|name| !listed.contains(**name)).for_each(|name| put(name, Root::Absent));
            }
            Some(Event::Delete(found)) => put(&found.name_any(), Root::Absent),
            // Not installed. There is nothing to do until it is.
            None => {}
        }
    }
}

/// Objects that were stored before the API checked them, or by other means. One of them stops nobody else.
struct Malformed {
    kubernetes: Kubernetes,
    events: Events,
    /// What was reported about which version of which object.
    known: BTreeMap<String, (Option<i64>, String)>,
}

impl Malformed {
    async fn report(&mut self, invalid: &InvalidObject) {
        let name = invalid.metadata.name.clone().unwrap_or_default();
        let report = (invalid.metadata.generation, invalid.error.clone());
        if self.known.get(&name) == Some(&report) {
            return;
        }
        let message = format!("The object cannot be read: {}. Correct it or delete it.", invalid.error);
        warn!(config = name, error = invalid.error, "a malformed object is left alone");
        let happening = Happening { warning: true, reason: "Malformed".into(), note: message.clone() };
        self.events.publish_about(&name, invalid.metadata.uid.as_deref().unwrap_or_default(), &happening);
        let condition = json!({
            "type": "Failed",
            "status": "True",
            "reason": "Malformed",
            "message": message,
            "lastTransitionTime": Time(Timestamp::now()),
        });
        let patch = json!({"status": {"phase": "Failed", "conditions": [condition]}});
        let uri = object(&name, "/status");
        let doing = format!("reporting malformed VirtPlatformConfig {name}");
        // The API server may refuse this too, because of what is malformed; then the event has to do.
        let written =
            self.kubernetes.call(Method::PATCH, uri, Some("application/merge-patch+json"), &patch, doing).await;
        if let Err(error) = written {
            debug!(config = name, %error, "the status of a malformed object could not be written");
        }
        self.known.insert(name, report);
    }
}
