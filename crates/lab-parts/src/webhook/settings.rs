//! Where the webhook listens, how the API server reaches it, whose deletions it allows, and whether it plays the plugin
//! `KubevirtMigrationAware`.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use advisor::kube_descheduler::Release;

/// The users of the garbage collectors and the namespace controller, and the user that they share where controllers have
/// no accounts of their own.
pub const GARBAGE_COLLECTORS: [&str; 4] = [
    "system:kube-controller-manager",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:pod-garbage-collector",
];

#[derive(Debug, Clone, PartialEq)]
pub struct WebhookSettings {
    pub address: SocketAddr,
    /// How the API server reaches the webhook.
    pub endpoint: Endpoint,
    pub certificates: Certificates,
    /// Whether to write the ValidatingWebhookConfiguration, at the start and whenever the certificates change.
    pub is_registered: bool,
    /// Users whose deletions are allowed: the VM controller and [`GARBAGE_COLLECTORS`].
    pub exempt_users: Vec<String>,
    pub migration_aware: MigrationAwareSettings,
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
            migration_aware: MigrationAwareSettings::default(),
        }
    }
}

/// The plugin `KubevirtMigrationAware` of OpenShift's descheduler, which the webhook plays for evictions by the descheduler.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MigrationAwareSettings {
    pub switch: Switch,
    /// The release of the descheduler's operator that the stand-in behaves like.
    pub release: Release,
    /// How many times faster than the clock cool-downs end.
    pub time_scale: f64,
}

impl Default for MigrationAwareSettings {
    fn default() -> Self {
        MigrationAwareSettings { switch: Switch::default(), release: Release::NEWEST, time_scale: 1.0 }
    }
}

/// Whether a plugin is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Switch {
    /// On where the operator of the release would configure it for the KubeDescheduler.
    #[default]
    Auto,
    On,
    Off,
}

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Switch, String> {
        match text {
            "auto" => Ok(Switch::Auto),
            "on" => Ok(Switch::On),
            "off" => Ok(Switch::Off),
            _ => Err("expected auto, on or off".to_owned()),
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
