//! Tells people what happens to a configuration, in the log and as Kubernetes Events alike.

use advisor::{
    Query,
    machine::{EventNote, event_notes},
};
use api::{VirtPlatformConfig, virt_platform_config::VirtPlatformConfigStatus};
use kube::ResourceExt;
use kube_io::RequestError;
use tracing::{info, warn};

use crate::{
    Metrics,
    events::Events,
    refusal::{LACKS_RIGHT, with_advice},
};

pub(crate) struct Reporter {
    pub(crate) events: Events,
    pub(crate) metrics: Metrics,
}

impl Reporter {
    /// Reports what a recorded status has changed.
    pub(crate) fn recorded(&self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) {
        let nothing = VirtPlatformConfigStatus::default();
        let before = old.and_then(|config| config.status.as_ref()).unwrap_or(&nothing);
        let after = new.status.as_ref().unwrap_or(&nothing);
        self.metrics.recorded(before, new);
        let phase = after.phase.map(|phase| phase.as_str()).unwrap_or_default();
        for event_note in event_notes(before, after) {
            match event_note.warning {
                true => warn!(config = new.name_any(), phase, reason = event_note.reason, "{}", event_note.note),
                false => info!(config = new.name_any(), phase, reason = event_note.reason, "{}", event_note.note),
            }
            self.events.publish(new, &event_note);
        }
    }

    /// Reports an error that does not pass. An Event can be seen even if the status cannot be written.
    pub(crate) fn failing(&self, config: &VirtPlatformConfig, error: &RequestError) {
        let note = format!("Trying again: {}", with_advice(error));
        self.events.publish(config, &EventNote { warning: true, reason: "CannotGoOn".into(), note });
    }

    /// Reports that changes are noticed late, because there is no right to watch them.
    pub(crate) fn forbidden(&self, config: &VirtPlatformConfig, query: &Query, message: &str) {
        let note = format!("Changes of {query} are only noticed at the next regular look: {message}{LACKS_RIGHT}");
        self.events.publish(config, &EventNote { warning: true, reason: "CannotWatch".into(), note });
    }
}
