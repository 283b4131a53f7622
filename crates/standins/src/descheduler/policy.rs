//! The policy and the flags with which a release of the real operator would run the descheduler for a KubeDescheduler.
//! The descheduler is the upstream one, outside of the cluster, so the plugin `KubevirtMigrationAware` is left out (the eviction webhook
//! of the lab plays it), and the token for Prometheus comes from a Secret.

mod profiles;
mod utilization;

use std::time::Duration;

use advisor::{
    kube_descheduler::{Exclusion, Release},
    object_text,
};
use serde_json::{Value, json};

pub use utilization::Thresholds;

use super::{Mode, PolicyError, Spec, names, spec::Customizations};

/// The inputs of a policy beside the KubeDescheduler.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyContext {
    /// The release of the operator to behave like.
    pub release: Release,
    pub prometheus_url: String,
    /// Namespaces whose pods are not evicted.
    pub protected: Vec<String>,
    /// The factor by which times are shortened.
    pub time_scale: f64,
}

impl PolicyContext {
    /// The namespaces that the operator protects: three fixed ones, and all of OpenShift.
    pub fn protected_among<'a>(namespaces: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let platform = namespaces.into_iter().filter(|name| name.starts_with("openshift-"));
        let mut protected: Vec<String> =
            ["kube-system", "hypershift", "openshift"].into_iter().chain(platform).map(str::to_owned).collect();
        protected[3..].sort();
        protected
    }

    pub fn scaled(&self, time: Duration) -> Duration {
        time.div_f64(self.time_scale.max(f64::MIN_POSITIVE))
    }
}

/// The policy of a descheduler, and the options of its command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// A DeschedulerPolicy document.
    pub text: String,
    pub interval: Duration,
    pub mode: Mode,
    pub in_background: bool,
    pub verbosity: u8,
}

/// The shortest time between cycles.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);

impl Policy {
    /// The policy that the real operator makes from a spec.
    pub fn of(spec: &Spec, context: &PolicyContext) -> Result<Policy, PolicyError> {
        let release = context.release;
        profiles::check(&spec.profiles, release)?;
        let seconds = spec.descheduling_interval_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let interval =
            seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or(PolicyError::NoInterval)?;
        if spec.profiles.is_empty() {
            return Err(PolicyError::NoProfile);
        }
        spec.check_customizations(context)?;
        let is_kubevirt = spec.kubevirt_profile().is_some();
        let limits = release.eviction_limits(spec.eviction_limits.total, spec.eviction_limits.node, is_kubevirt);

        let mut document = json!({
            "apiVersion": "descheduler/v1alpha2",
            "kind": "DeschedulerPolicy",
            "profiles": profiles::render(spec, limits, context)?,
        });
        if let Some(total) = limits.total {
            document["maxNoOfPodsToEvictTotal"] = total.into();
        }
        if let Some(node) = limits.node {
            document["maxNoOfPodsToEvictPerNode"] = node.into();
        }
        if is_kubevirt {
            document["nodeSelector"] = names::SCHEDULABLE.into();
        }
        if spec.asks_prometheus(release) {
            document["metricsProviders"] = json!([{
                "source": "Prometheus",
                "prometheus": {
                    "url": context.prometheus_url,
                    "authToken": {"secretReference": {"namespace": names::NAMESPACE, "name": names::TOKEN_SECRET}},
                },
            }]);
        }
        Ok(Policy {
            text: object_text::yaml(Some(&document)),
            interval: context.scaled(interval).max(SHORTEST_INTERVAL),
            mode: spec.mode,
            in_background: is_kubevirt || spec.profile_customizations.dev_enable_evictions_in_background,
            verbosity: verbosity(&spec.log_level),
        })
    }

    /// A policy that is run unchanged, with evictions in the background.
    pub fn from_text(text: String, interval: Duration, mode: Mode) -> Policy {
        Policy { text, interval, mode, in_background: true, verbosity: 3 }
    }

    /// The flags of the command line, except those for files and ports.
    pub fn flags(&self) -> Vec<String> {
        let mut flags = vec![format!("--descheduling-interval={}", seconds(self.interval))];
        if self.in_background {
            flags.push("--feature-gates=EvictionsInBackground=true".to_owned());
        }
        if self.mode == Mode::Predictive {
            flags.push("--dry-run=true".to_owned());
        }
        flags.push(format!("-v={}", self.verbosity));
        flags
    }

    /// Namespace and name of the Secret with the token for Prometheus.
    pub fn token_secret(&self) -> Option<(String, String)> {
        let document: Value = serde_saphyr::from_str(&self.text).ok()?;
        let reference = document["metricsProviders"]
            .as_array()?
            .iter()
            .find_map(|provider| provider.pointer("/prometheus/authToken/secretReference"))?;
        Some((reference["namespace"].as_str()?.to_owned(), reference["name"].as_str()?.to_owned()))
    }
}

/// A duration in the notation of Go.
fn seconds(time: Duration) -> String {
    format!("{}s", time.as_millis() as f64 / 1000.0)
}

fn verbosity(level: &str) -> u8 {
    match level {
        "Debug" => 4,
        "Trace" => 6,
        "TraceAll" => 8,
        _ => 2,
    }
}

impl Spec {
    /// The profile for virtual machines, if the spec lists it.
    pub fn kubevirt_profile(&self) -> Option<&str> {
        self.profiles.iter().map(String::as_str).find(|name| profiles::KUBEVIRT.contains(name))
    }

    /// Whether the policy has a Prometheus query.
    pub fn asks_prometheus(&self, release: Release) -> bool {
        let by_default = release >= Release::V4_19 && self.kubevirt_profile().is_some();
        by_default || !self.profile_customizations.dev_actual_utilization_profile.is_empty()
    }

    /// Whether there is a soft-tainter.
    pub fn wants_soft_tainter(&self, release: Release) -> bool {
        let is_enabled = self.profile_customizations.dev_enable_soft_tainter;
        self.kubevirt_profile().is_some() && release.has_soft_tainter(is_enabled)
    }

    fn check_customizations(&self, context: &PolicyContext) -> Result<(), PolicyError> {
        let (customizations, protected) = (&self.profile_customizations, &context.protected);
        // Only the profile for virtual machines uses deviations.
        let applies = |exclusion: &&Exclusion| {
            self.kubevirt_profile().is_some() || exclusion.counterpart("devDeviationThresholds").is_none()
        };
        let is_met = |exclusion: &&Exclusion| exclusion.fields.iter().all(|field| customizations.has(field));
        if let Some(exclusion) = Exclusion::of(context.release).filter(applies).find(is_met) {
            return Err(PolicyError::Excluded(exclusion));
        }
        match customizations.namespaces.included.iter().find(|name| protected.contains(name)) {
            Some(name) => Err(PolicyError::ProtectedNamespace { name: name.clone(), protected: protected.clone() }),
            None => Ok(()),
        }
    }
}

impl Customizations {
    /// Whether the operator considers a field set.
    fn has(&self, field: &str) -> bool {
        match field {
            "devLowNodeUtilizationThresholds" => self.dev_low_node_utilization_thresholds.is_some(),
            "devDeviationThresholds" => self.dev_deviation_thresholds.is_some(),
            "thresholdPriority" => self.threshold_priority.is_some(),
            "thresholdPriorityClassName" => !self.threshold_priority_class_name.is_empty(),
            "namespaces.included" => !self.namespaces.included.is_empty(),
            "namespaces.excluded" => !self.namespaces.excluded.is_empty(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
