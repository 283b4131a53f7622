//! What can be set.

use std::{net::SocketAddr, path::PathBuf};

use advisor::kube_descheduler::Release;

use super::Policy;

/// Where the policy of the descheduler comes from.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum PolicySource {
    /// The KubeDescheduler in the cluster.
    #[default]
    KubeDescheduler,
    /// A fixed policy, whatever the cluster says.
    Fixed(Policy),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The release of the operator that is played.
    pub release: Release,
    /// The descheduler itself.
    pub program: PathBuf,
    /// Whom it works as; without one, the service account of its pod.
    pub kubeconfig: Option<PathBuf>,
    /// Where its files and its log are. Made if need be.
    pub folder: PathBuf,
    pub prometheus_url: Option<String>,
    /// Where its `/metrics` are to be served on plain HTTP, and the stand-in's own `/health`.
    pub metrics: Option<SocketAddr>,
    pub time_scale: f64,
    /// Whether the pretended nodes measure pressure at first. Without, the profile of virtual machines is refused.
    pub has_psi: bool,
    pub policy_source: PolicySource,
}

impl Settings {
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        Settings {
            release: Release::NEWEST,
            program: program.into(),
            kubeconfig: None,
            folder: folder.into(),
            prometheus_url: None,
            metrics: None,
            time_scale: 1.0,
            has_psi: true,
            policy_source: PolicySource::default(),
        }
    }
}
