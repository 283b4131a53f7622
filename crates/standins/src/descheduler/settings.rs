//! The settings of the stand-in.

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
pub struct DeschedulerSettings {
    /// The release of the operator to behave like.
    pub release: Release,
    /// The program of the descheduler.
    pub program: PathBuf,
    /// The identity of the descheduler; without it, the service account of its pod.
    pub kubeconfig: Option<PathBuf>,
    /// The folder of its files and its log. Created if it does not exist.
    pub folder: PathBuf,
    pub prometheus_url: Option<String>,
    /// The address of its `/metrics` on plain HTTP, and of the stand-in's own `/health`.
    pub metrics: Option<SocketAddr>,
    pub time_scale: f64,
    /// Whether the nodes measure pressure at first. Without, the profile for virtual machines is an error.
    pub has_psi: bool,
    pub policy_source: PolicySource,
}

impl DeschedulerSettings {
    pub fn new(program: impl Into<PathBuf>, folder: impl Into<PathBuf>) -> Self {
        DeschedulerSettings {
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
