//! Why no descheduler runs although a KubeDescheduler asks for one. The sentences of the prerequisites are the real
//! operator's, for people search for them.

use thiserror::Error;

use super::names;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error("spec cannot be read: {0}")]
    Unreadable(String),

    #[error("descheduler should have at least 1 profile enabled")]
    NoProfile,

    #[error("descheduler should have an interval set and it should be greater than 0")]
    NoInterval,

    #[error("profile {0} is not known; use one that the CustomResourceDefinition lists")]
    UnknownProfile(String),

    #[error("profile {0} is listed twice")]
    Duplicate(String),

    #[error("profiles {0} and {1} cannot be used together")]
    Exclusive(String, String),

    #[error(
        "profile {0} is not played by the lab's stand-in; it plays KubeVirtRelieveAndMigrate and what goes with it"
    )]
    NotPlayed(String),

    #[error("unknown Descheduler {kind} threshold {value:?}, only {known} are supported")]
    UnknownThreshold { kind: &'static str, value: String, known: &'static str },

    #[error("devLowNodeUtilizationThresholds and devDeviationThresholds cannot be set together")]
    TwoThresholds,

    #[error("thresholdPriority and thresholdPriorityClassName cannot be set together")]
    TwoPriorities,

    #[error("namespaces.included and namespaces.excluded cannot be set together")]
    TwoNamespaceLists,

    #[error("namespace {0} is protected and cannot be in namespaces.included")]
    ProtectedNamespace(String),

    #[error("evictionLimits.{field} is {value}: a number of pods was expected")]
    NegativeLimit { field: &'static str, value: i64 },

    #[error("unknown devActualUtilizationProfile {0:?}; use a known one or query:<PromQL>")]
    UnknownMetric(String),

    #[error("profile {0} can only be used when KubeVirt is properly deployed")]
    NoKubeVirt(String),

    #[error("profile {0} can only be used when PSI metrics are enabled for the worker nodes")]
    NoPsi(String),

    #[error("unable to get openshift-monitoring/prometheus-k8s route: the lab was started without Prometheus")]
    NoPrometheus,

    #[error("namespace {} is not labeled with {}", names::NAMESPACE, names::MONITORED)]
    NotMonitored,
}

impl Refusal {
    /// Whether a descheduler that runs is ended. Otherwise it goes on with the policy that it has.
    pub fn ends_what_runs(&self) -> bool {
        !matches!(self, Refusal::NotMonitored)
    }
}
