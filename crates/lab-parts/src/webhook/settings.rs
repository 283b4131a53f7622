//! Where the webhook listens, how the API server reaches it, and whose deletions it allows.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// The users of the garbage collectors and the namespace controller, and the user that they share where controllers have
/// no accounts of their own.
pub const GARBAGE_COLLECTORS: [&str; 4] = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:pod-garbage-collector",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    pub address: SocketAddr,
    /// How the API server reaches the webhook.
    pub endpoint: Endpoint,
    pub certificates: Certificates,
    /// Whether to write the ValidatingWebhookConfiguration, at the start and whenever the certificates change.
    pub is_registered: bool,
    /// Users whose deletions are allowed: the VM controller and [`GARBAGE_COLLECTORS`].
    pub exempt_users: Vec<String>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        WebhookSettings {
            address: ([0, 0, 0, 0], 8443).into(),
            endpoint: Endpoint::Service { namespace: "monitoring".to_owned(), name: "eviction-webhook".to_owned() },
            certificates: Certificates::default(),
            is_registered: true,
            exempt_users: GARBAGE_COLLECTORS
                .into_iter()
                .chain(["system:serviceaccount:monitoring:vm-controller"])
                .map(str::to_owned)
                .collect(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// A host name or address, with the port that the webhook listens on.
    Host(String),
    Service {
        namespace: String,
        name: String,
    },
}

impl Endpoint {
    /// The names that a certificate must have.
    pub(super) fn names(&self) -> Vec<String> {
        match self {
            Endpoint::Host(host) => vec![host.clone()],
            Endpoint::Service { namespace, name } => vec![
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
    /// Created by the webhook and kept in memory. Each is used for a third of its lifetime.
    Own { lifetime: Duration },
    /// Read from files, and again after each interval.
    Files {
        certificate: PathBuf,
        key: PathBuf,
        /// The CA that the API server is to trust. Without it, `caBundle` of the configuration is not written.
        authority: Option<PathBuf>,
        interval: Duration,
    },
}

impl Default for Certificates {
    fn default() -> Self {
        Certificates::Own { lifetime: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}
