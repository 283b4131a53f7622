//! Tells people what happens to a configuration, in the log and as Kubernetes Events alike.

use advisor::{
    Query,
    machine::{Happening, happenings},
};
use api::{VirtPlatformConfig, virt_platform_config::VirtPlatformConfigStatus};
use kube::ResourceExt;
use tracing::{info, warn};

use crate::{
    RequestError,
    events::Events,
    refusal::{LACKS_RIGHT, with_advice},
};

pub(crate) struct Reporter {
    pub(crate) events: Events,
}

impl Reporter {
    /// Reports what a recorded status has changed.
    pub(crate) fn recorded(&self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) {
        let nothing = VirtPlatformConfigStatus::default();
        let before = old.and_then(|config| config.status.as_ref()).unwrap_or(&nothing);
        let after = new.status.as_ref().unwrap_or(&nothing);
        let phase = after.phase.map(|phase| phase.as_str()).unwrap_or_default();
        for happening in happenings(before, after) {
            match happening.warning {
                true => warn!(config = new.name_any(), phase, reason = happening.reason, "{}", happening.note),
                false => info!(config = new.name_any(), phase, reason = happening.reason, "{}", happening.note),
            }
            self.events.publish(new, &happening);
        }
    }

    /// Reports an error that does not pass. An Event can be seen even if the status cannot be written.
    pub(crate) fn failing(&self, config: &VirtPlatformConfig, error: &RequestError) {
        let note = format!("Trying again: {}", with_advice(error));
        self.events.publish(config, &Happening { warning: true, reason: "CannotGoOn".into(), note });
    }

    /// Reports that changes are noticed late, because there is no right to watch them.
    pub(crate) fn forbidden(&self, config: &VirtPlatformConfig, query: &Query, message: &str) {
        let note = format!("Changes of {query} are only noticed at the next regular look: {message}{LACKS_RIGHT}");
        self.events.publish(config, &Happening { warning: true, reason: "CannotWatch".into(), note });
    }
}
