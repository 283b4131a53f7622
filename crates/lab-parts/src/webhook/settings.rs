//! What can be set.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Who collects what is left over: the garbage collectors, the namespace controller, and the name that they all share
/// where controllers have no accounts of their own.
pub const COLLECTORS: [&str; 4] = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:pod-garbage-collector",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub address: SocketAddr,
    /// How the API server reaches the webhook.
    pub reach: Reach,
    pub certificates: Certificates,
    /// Whether to write the ValidatingWebhookConfiguration, and again whenever the certificates change.
    pub is_registered: bool,
    /// Users whose deletions pass: the VM controller and [`COLLECTORS`].
    pub passes: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            address: ([0, 0, 0, 0], 8443).into(),
            reach: Reach::Service { namespace: "monitoring".to_owned(), name: "eviction-webhook".to_owned() },
            certificates: Certificates::default(),
            is_registered: true,
            passes: COLLECTORS
                .into_iter()
                .chain(["system:serviceaccount:monitoring:vm-controller"])
                .map(str::to_owned)
                .collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// By this name or address, at the port that the webhook listens on.
    Host(String),
    Service {
        namespace: String,
        name: String,
    },
}

impl Reach {
    /// What a certificate must be good for.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Reach::Host(host) => vec![host.clone()],
            Reach::Service { namespace, name } => vec![
                name.clone(),
                format!("{name}.{namespace}"),
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificates {
    /// Made by the webhook and kept in memory. Each is used for a third of its life.
    Own { lifetime: Duration },
    /// Made by somebody else, and read again every now and then.
    Files {
        certificate: PathBuf,
        key: PathBuf,
        /// The CA that the API server is to trust. Without it, the configuration's `caBundle` is left to others.
        authority: Option<PathBuf>,
        interval: Duration,
    },
}

impl Default for Certificates {
    fn default() -> Self {
        Certificates::Own { lifetime: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}
