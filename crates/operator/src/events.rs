//! Kubernetes Events about configurations. A lost Event never stops a reconciler.
//! kube's own recorder is not used: it merges Events of one reason into a series that keeps only the first text, and people
//! look for the texts.

use advisor::machine::EventNote;
use api::VirtPlatformConfig;
use http::Method;
use kube::{Resource, ResourceExt};
use kube_io::{ApiServer, Class, Clock};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tracing::{debug, warn};

const COMPONENT: &str = "virt-advisor-operator";

/// The namespace of Events about cluster-scoped objects.
const NAMESPACE: &str = "default";

/// More Events than this are dropped while they wait to be sent.
const QUEUE_LENGTH: usize = 256;

/// The API server refuses longer notes.
const NOTE_LENGTH: usize = 1024;

/// Sends events in the background, one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Value>,
    clock: Clock,
}

impl Events {
    /// Returns the queue, and the task that sends what is in it.
    pub(crate) fn new(api_server: ApiServer, clock: Clock) -> (Self, impl Future<Output = ()>) {
        let (queue, mut waiting) = mpsc::channel::<Value>(QUEUE_LENGTH);
        let sender = async move {
            let uri = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
            while let Some(event) = waiting.recv().await {
                let doing = "publishing an event".to_owned();
                let sent = api_server.send_body(Method::POST, uri.clone(), "application/json", &event, doing).await;
                if let Err(error) = sent {
                    match error.class {
                        Class::Forbidden => warn!(%error, "an event was lost"),
                        _ => debug!(%error, "an event was lost"),
                    }
                }
            }
        };
        (Events { queue, clock }, sender)
    }

    pub(crate) fn publish(&self, config: &VirtPlatformConfig, event_note: &EventNote) {
        let uid = config.meta().uid.clone().unwrap_or_default();
        self.publish_about(&config.name_any(), &uid, event_note);
    }

    pub(crate) fn publish_about(&self, name: &str, uid: &str, event_note: &EventNote) {
        let now = self.clock.now();
        let mut note = event_note.note.clone();
        note.truncate(note.floor_char_boundary(NOTE_LENGTH));
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"namespace": NAMESPACE, "name": format!("{name}.{:x}", now.as_nanosecond())},
            "eventTime": format!("{now:.6}"),
            "type": if event_note.warning { "Warning" } else { "Normal" },
            "reason": event_note.reason,
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
