//! The metrics that the operator serves: exactly those of [`advisor::monitoring::METRICS`].
//! Series of configurations are computed at every scrape from what the watch saw last, so none is left behind when its object goes.
//! A replica that does not lead watches nothing and has none of them. A scrape sends no request.

mod counted;
mod encode;

use std::{
    collections::BTreeMap,
    fmt::{self, Debug},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use advisor::monitoring::{metrics, outcomes};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{Action, Phase, VirtPlatformConfigStatus},
};
use kube::ResourceExt;
use kube_io::{Class, Clock, ObservedRequest, Observer, RequestError};
use prometheus_client::registry::Registry;

use crate::configs;
use counted::Counted;

/// What a scrape has to be answered with: Prometheus 3 refuses an answer without it.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of one operator. Clones share them.
#[derive(Clone)]
pub struct Metrics {
    state: Arc<State>,
    registry: Arc<Registry>,
}

/// What is known between two scrapes.
pub(crate) struct State {
    version: String,
    clock: Clock,
    is_leader: AtomicBool,
    /// The configurations that exist, by name, as the watch last delivered them.
    configs: Mutex<BTreeMap<String, Arc<VirtPlatformConfig>>>,
    counted: Counted,
}

impl Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metrics of {}", self.version)
    }
}

impl Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.fmt(f)
    }
}

impl Metrics {
    pub fn new(version: &str, clock: Clock) -> Self {
        let state = Arc::new(State {
            version: version.to_owned(),
            clock,
            is_leader: AtomicBool::new(false),
            configs: Mutex::default(),
            counted: Counted::default(),
        });
        let mut registry = Registry::default();
        registry.register_collector(Box::new(state.clone()));
        Metrics { state, registry: Arc::new(registry) }
    }

    /// The answer to a scrape, in the text format of OpenMetrics.
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    pub(crate) fn leads(&self, is_leader: bool) {
        self.state.is_leader.store(is_leader, Ordering::Relaxed);
        if !is_leader {
            self.state.configs().clear();
        }
    }

    /// The watch has seen a configuration.
    pub fn saw(&self, config: &Arc<VirtPlatformConfig>) {
        let name = config.name_any();
        if is_ignored(config) {
            self.state.counted.forget(&name);
        }
        self.state.configs().insert(name, config.clone());
    }

    /// A configuration does not exist any more, or cannot be read.
    pub(crate) fn forget(&self, name: &str) {
        self.state.configs().remove(name);
        self.state.counted.forget(name);
    }

    /// A status was recorded.
    pub(crate) fn recorded(&self, before: &VirtPlatformConfigStatus, after: &VirtPlatformConfig) {
        let (profile, counted) = (after.spec.profile.as_str(), &self.state.counted);
        if !self.state.has_series(profile) {
            return;
        }
        if let Some(result) = outcomes::approval(before, after) {
            counted.approvals.count(&metrics::APPROVALS, &[profile, result.as_str()]);
        }
        let status = after.status.clone().unwrap_or_default();
        if let Some(took) = outcomes::apply_duration(before, &status, self.state.clock.now()) {
            counted.apply_duration.observe(&metrics::APPLY_DURATION, &[profile], took);
        }
    }

    /// A plan was made and recorded.
    pub(crate) fn planned(&self, profile: &str, took: Duration) {
        if self.state.has_series(profile) {
            self.state.counted.plan_duration.observe(&metrics::PLAN_DURATION, &[profile], took);
        }
    }

    /// A reconciliation failed.
    pub(crate) fn failed(&self, error: &RequestError) {
        self.state.counted.errors.count(&metrics::RECONCILE_ERRORS, &[class(&error.class)]);
    }
}

impl State {
    fn configs(&self) -> MutexGuard<'_, BTreeMap<String, Arc<VirtPlatformConfig>>> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the configuration of a profile exists and is not ignored, or no longer is: then it has series.
    fn has_series(&self, profile: &str) -> bool {
        let has_series = |config: &Arc<VirtPlatformConfig>| !is_ignored(config) || config.spec.action != Action::Ignore;
        self.configs().get(profile).is_some_and(has_series)
    }
}

fn is_ignored(config: &VirtPlatformConfig) -> bool {
    config.status.as_ref().is_some_and(|status| status.phase == Some(Phase::Ignored))
}

impl Observer for Metrics {
    fn answered(&self, request: &ObservedRequest<'_>) {
        let counted = &self.state.counted;
        let code = request.code.unwrap_or_default().to_string();
        counted.requests.count(&metrics::API_REQUESTS, &[request.verb, &code]);
        // A watch is answered at once and then lasts.
        if request.verb != "watch" {
            counted.request_duration.observe(&metrics::API_REQUEST_DURATION, &[request.verb], request.took);
        }
    }

    fn watch_restarted(&self, resource: &str, error: &Class, failures: usize) {
        self.state.counted.watch_restarts.count(&metrics::WATCH_RESTARTS, &[resource]);
        // Without configurations no reconciler runs, so nobody else counts that nothing is done. A connection that was cut once is none.
        if resource == configs::PLURAL && failures > 1 {
            self.state.counted.errors.count(&metrics::RECONCILE_ERRORS, &[class(error)]);
        }
    }
}

/// The value of the label `class`.
fn class(class: &Class) -> &'static str {
    match class {
        Class::NotFound => "NotFound",
        Class::KindMissing => "KindMissing",
        Class::NamespaceMissing(_) => "NamespaceMissing",
        Class::Expired => "Expired",
        Class::FieldConflict(_) => "FieldConflict",
        Class::Conflict => "Conflict",
        Class::Invalid => "Invalid",
        Class::UnknownField => "UnknownField",
        Class::WebhookDenied => "WebhookDenied",
        Class::PolicyDenied => "PolicyDenied",
        Class::KindTerminating => "KindTerminating",
        Class::DryRunUnsupported => "DryRunUnsupported",
        Class::Forbidden => "Forbidden",
        Class::Unauthenticated => "Unauthenticated",
        Class::Busy => "Busy",
        Class::Initializing => "Initializing",
        Class::Unknown => "Unknown",
        Class::Other => "Other",
    }
}

#[cfg(test)]
mod tests;
