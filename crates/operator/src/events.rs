//! Kubernetes Events about configurations. They are for people who look; losing one must never stop the work.
//!
//! Own code and not kube's recorder: that one folds events of one reason into a series and keeps only the first text, and
//! the texts are what people look for.

use advisor::machine::Happening;
use api::VirtPlatformConfig;
use http::Method;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};

use crate::{Class, Kubernetes, Surroundings};

const COMPONENT: &str = "virt-advisor-operator";

/// Events about cluster-scoped objects are kept there.
const NAMESPACE: &str = "default";

/// What may wait to be sent; beyond that, events are dropped.
const WAITING: usize = 256;

const NOTE: usize = 1024;

/// Sends events in the background, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Value>,
    surroundings: Surroundings,
}

impl Events {
    /// Where to put events, and what sends them.
    pub(crate) fn new(kubernetes: Kubernetes, surroundings: Surroundings) -> (Self, impl Future<Output = ()>) {
        let (queue, mut waiting) = mpsc::channel::<Value>(WAITING);
        let sender = async move {
            let uri = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
            while let Some(event) = waiting.recv().await {
                let doing = "publishing an event".to_owned();
                let sent = kubernetes.call(Method::POST, uri.clone(), Some("application/json"), &event, doing).await;
                if let Err(error) = sent {
                    match error.class {
                        Class::Forbidden => warn!(%error, "an event was lost"),
                        _ => debug!(%error, "an event was lost"),
                    }
                }
            }
        };
        (Events { queue, surroundings }, sender)
    }

    pub(crate) fn publish(&self, config: &VirtPlatformConfig, happening: &Happening) {
        let uid = config.meta().uid.clone().unwrap_or_default();
        self.publish_about(&config.name_any(), &uid, happening);
    }

    pub(crate) fn publish_about(&self, name: &str, uid: &str, happening: &Happening) {
        let now = self.surroundings.now();
        let mut note = happening.note.clone();
        note.truncate(note.floor_char_boundary(NOTE));
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": NAMESPACE, "name": format!("{name}.{:x}", now.as_nanosecond())},
            "eventTime": format!("{now:.6}"),
            "type": if happening.warning { "Warning" } else { "Normal" },
            "reason": happening.reason,
            "action": "Reconcile",
            "note": note,
            "regarding": {
                "apiVersion": VirtPlatformConfig::api_version(&()),
                "kind": VirtPlatformConfig::kind(&()),
                "name": name,
                "uid": uid,
            },
            "reportingController": COMPONENT,
            "reportingInstance": COMPONENT,
        });
        if self.queue.try_send(event).is_err() {
            debug!(name, "an event was dropped: too many are waiting");
        }
    }
}
