//! `rebalance-lab webhook`: the eviction webhook as a process.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use advisor::kube_descheduler::Release;
use lab_parts::webhook::{
    self, Certificates, Endpoint, GARBAGE_COLLECTORS, MigrationAwareSettings, Switch, WebhookSettings,
};
use process::Shutdown;
use sim::units::Span;

use crate::part::{Common, release, time_scale};

/// How often certificates in files are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to answer /validate and /health
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    host: IpAddr,
    /// On which port to answer; 0 for any that is free
    #[arg(long, default_value_t = 8443)]
    port: u16,
    /// The Service by which the API server reaches the webhook
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "monitoring/eviction-webhook", value_parser = service)]
    service: Endpoint,
    /// The host by whose name or address the API server reaches the webhook, if there is no Service
    #[arg(long, value_name = "HOST", conflicts_with = "service")]
    reach: Option<String>,
    /// A file with the webhook's certificate, read again when it changes [default: the webhook makes its own]
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// A file with the key of that certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// A file with the CA that the API server is to trust [default: left to others]
    #[arg(long, value_name = "FILE", requires = "cert")]
    ca: Option<PathBuf>,
    /// How long a certificate of the webhook's own is good for; it is replaced long before
    #[arg(long, value_name = "DURATION", default_value = "720h", conflicts_with = "cert")]
    certificate_lifetime: Span,
    /// The user that the VM controller is; what it deletes is gone. Can be repeated
    #[arg(long, value_name = "USER", default_value = "system:serviceaccount:monitoring:vm-controller")]
    vm_controller: Vec<String>,
    /// Do not write the ValidatingWebhookConfiguration; somebody else does
    #[arg(long)]
    no_registration: bool,
    /// Whether VMs that migrate, or have migrated a short time ago, are not evicted, as by the descheduler's plugin
    /// KubevirtMigrationAware: on, off, or auto: where a KubeDescheduler of that release has it
    #[arg(long, value_name = "SWITCH", default_value = "auto", num_args = 0..=1, default_missing_value = "on")]
    migration_aware: Switch,
    /// Which OpenShift release's descheduler operator is played: 4.17, 4.18, 4.19, 4.20, 4.21 or 5.1
    #[arg(long, value_name = "RELEASE", default_value_t = Release::NEWEST, value_parser = release)]
    release: Release,
    /// How many times faster than the clock the plugin's cool-downs end
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = time_scale)]
    time_scale: f64,
    #[command(flatten)]
    common: Common,
}

fn service(text: &str) -> Result<Endpoint, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Endpoint::Service { namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => Err("expected NAMESPACE/NAME, such as monitoring/eviction-webhook".to_owned()),
    }
}

impl Args {
    fn settings(&self) -> WebhookSettings {
        let certificates = match (self.cert.clone(), self.key.clone()) {
            (Some(certificate), Some(key)) => {
                Certificates::Files { certificate, key, authority: self.ca.clone(), interval: INTERVAL }
            }
            _ => Certificates::Own { lifetime: Duration::from_secs(self.certificate_lifetime.0) },
        };
        WebhookSettings {
            address: SocketAddr::new(self.host, self.port),
            endpoint: self.reach.clone().map_or_else(|| self.service.clone(), Endpoint::Host),
            certificates,
            is_registered: !self.no_registration,
            exempt_users: GARBAGE_COLLECTORS
                .map(str::to_owned)
                .into_iter()
                .chain(self.vm_controller.iter().cloned())
                .collect(),
            migration_aware: MigrationAwareSettings {
                switch: self.migration_aware,
                release: self.release,
                time_scale: self.time_scale,
            },
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    args.common.run("eviction webhook", "eviction-webhook", async |client, shutdown: Shutdown| {
        webhook::run(client, args.settings(), shutdown.requested()).await.map_err(io::Error::other)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::parse;

    fn settings(line: &str) -> WebhookSettings {
        parse::<Args>(line).unwrap_or_else(|error| panic!("{error}")).settings()
    }

    #[test]
    fn without_options_the_settings_are_the_librarys() {
        assert_eq!(settings(""), WebhookSettings::default());
    }

    #[test]
    fn options_become_settings() {
        let here = settings("--host 127.0.0.1 --port 0 --reach 127.0.0.1 --vm-controller jane --no-registration");
        assert_eq!((here.address, here.endpoint), (([127, 0, 0, 1], 0).into(), Endpoint::Host("127.0.0.1".into())));
        assert_eq!(here.exempt_users.last().map(String::as_str), Some("jane"));
        assert!(!here.is_registered);
        let plugin = settings("--migration-aware=off --release=4.21 --time-scale=20").migration_aware;
        let expected = MigrationAwareSettings { switch: Switch::Off, release: Release::V4_21, time_scale: 20.0 };
        assert_eq!(plugin, expected);
        assert_eq!(settings("--migration-aware").migration_aware.switch, Switch::On);
        let files = settings("--cert c --key k --ca a").certificates;
        let expected = Certificates::Files {
            certificate: "c".into(),
            key: "k".into(),
            authority: Some("a".into()),
            interval: INTERVAL,
        };
        assert_eq!(files, expected);
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        for option in [
            "--migration-aware=maybe",
            "--cert=c",
            "--key=k",
            "--ca=a",
            "--service=name",
            "--service=a/",
            "--certificate-lifetime=long",
        ] {
            assert!(parse::<Args>(option).is_err(), "{option}");
        }
    }
}
