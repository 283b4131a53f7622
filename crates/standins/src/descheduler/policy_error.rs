//! Why a KubeDescheduler gives no policy. The messages are those of the real operator, because people search for them.

use advisor::kube_descheduler::Exclusion;
use thiserror::Error;

use super::names;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyError {
    #[error("spec cannot be read: {0}")]
    Unreadable(String),

    #[error("descheduler should have at least 1 profile enabled")]
    NoProfile,

    #[error("descheduler should have an interval set and it should be greater than 0")]
    NoInterval,

    #[error("Profile {0:?} not recognized")]
    UnknownProfile(String),

    #[error("profiles must not contain duplicates")]
    Duplicate,

    #[error("{0} and {1} cannot be enabled together")]
    Exclusive(&'static str, &'static str),

    #[error(
        "profile {0} is not played by the lab's stand-in; it plays KubeVirtRelieveAndMigrate and what goes with it"
    )]
    Unsupported(String),

    #[error("unknown Descheduler {kind} threshold {value}, only 'Low', 'Medium' and 'High' are supported")]
    UnknownThreshold { kind: &'static str, value: String },

    #[error("{}", .0.message)]
    Excluded(&'static Exclusion),

    #[error(
        "Protected namespace {name} included. It is forbidden to include any of the protected namespaces from [{}]",
        .protected.join(" ")
    )]
    ProtectedNamespace { name: String, protected: Vec<String> },

    #[error("unknown prometheus profile: {0}")]
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

impl PolicyError {
    /// Whether the operator scales the descheduler to 0 and reports the error in a condition. Otherwise it only logs the
    /// error, and the running descheduler keeps its policy.
    pub fn scales_down(&self) -> bool {
        match self {
            PolicyError::Unreadable(_)
            | PolicyError::NoInterval
            | PolicyError::UnknownProfile(_)
            | PolicyError::Duplicate
            | PolicyError::Exclusive(..)
            | PolicyError::Unsupported(_)
            | PolicyError::NoKubeVirt(_)
            | PolicyError::NoPsi(_)
            | PolicyError::NoPrometheus => true,
            PolicyError::NoProfile
            | PolicyError::UnknownThreshold { .. }
            | PolicyError::Excluded(_)
            | PolicyError::ProtectedNamespace { .. }
            | PolicyError::UnknownMetric(_)
            | PolicyError::NotMonitored => false,
        }
    }
}
