//! Registers the webhook with the API server, and renews its certificates.
//!
//! A new CA is registered first. The certificate that it signs is used later.

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::watcher::Config,
};
use kube_io::{Backoff, BackoffPolicy, Change, Clock, ResilientWatch, forward};
use rustls::ServerConfig;
use tokio::{
    sync::{
        mpsc,
        watch::{Receiver, Sender},
    },
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tracing::{info, warn};

use super::{
    Certificates, Endpoint, Error, NAME, WebhookSettings,
    certificates::{self, Rotation},
    configuration,
    eviction_request::FIELD_MANAGER,
};

const BACKLOG: usize = 16;

struct Registration {
    client: Client,
    endpoint: Endpoint,
    port: u16,
    exempt_users: Vec<String>,
    is_registered: bool,
}

impl Registration {
    async fn register(&self, authorities: Option<&str>) -> Result<(), Error> {
        if !self.is_registered {
            return Ok(());
        }
        let object = configuration(&self.endpoint, self.port, authorities, &self.exempt_users);
        let all: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let answer = all.patch(NAME, &params, &Patch::Apply(&object)).await;
        answer.map(|_| ()).map_err(|cause| Error::Register { name: NAME, cause: Box::new(cause) })
    }

    /// Retries until the configuration is written.
    async fn register_with_retries(&self, authorities: Option<&str>) {
        let mut backoff = Backoff::new(BackoffPolicy::LOCAL, Clock::default());
        while let Err(problem) = self.register(authorities).await {
            warn!(target: "lab", "eviction webhook: {problem}; trying again");
            sleep(backoff.failed()).await;
        }
    }
}

#[derive(Debug)]
enum CertificateSource {
    Own(Rotation),
    Files(Files),
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: Option<PathBuf>,
    interval: Duration,
    read: FileContents,
}

#[derive(Debug, PartialEq, Eq)]
struct FileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<String>,
}

impl FileContents {
    async fn read(certificate: PathBuf, key: PathBuf, authority: Option<PathBuf>) -> Result<FileContents, Error> {
        let bytes = |path: &PathBuf| std::fs::read(path).map_err(|cause| Error::Read { path: path.clone(), cause });
        let text =
            |path: &PathBuf| std::fs::read_to_string(path).map_err(|cause| Error::Read { path: path.clone(), cause });
        let read = move || {
            let authority = authority.as_ref().map(text).transpose()?;
            Ok(FileContents { certificate: bytes(&certificate)?, key: bytes(&key)?, authority })
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| Error::Ended)?
    }
}

impl Files {
    /// Returns the new configuration if the files have changed.
    async fn read_again(&mut self) -> Result<Option<Arc<ServerConfig>>, Error> {
        let found = FileContents::read(self.certificate.clone(), self.key.clone(), self.authority.clone()).await?;
        if found == self.read {
            return Ok(None);
        }
        let server = certificates::read(&found.certificate, &found.key)?;
        self.read = found;
        Ok(Some(server))
    }
}

impl CertificateSource {
    /// The CAs that the API server is to trust.
    fn authorities(&self) -> Option<String> {
        match self {
            CertificateSource::Own(rotation) => Some(rotation.authorities()),
            CertificateSource::Files(files) => files.read.authority.clone(),
        }
    }

    /// How often to renew or to read the files.
    fn interval(&self) -> Duration {
        match self {
            CertificateSource::Own(rotation) => rotation.period(),
            CertificateSource::Files(files) => files.interval,
        }
    }
}

pub(super) struct RegistrationTask {
    registration: Registration,
    source: CertificateSource,
    server: Sender<Arc<ServerConfig>>,
}

impl RegistrationTask {
    /// Creates or reads the first certificates.
    pub(super) async fn start(
        client: Client,
        settings: &WebhookSettings,
        port: u16,
    ) -> Result<RegistrationTask, Error> {
        let WebhookSettings { endpoint, is_registered, exempt_users, .. } = settings.clone();
        let (source, server) = match settings.certificates.clone() {
            Certificates::Own { lifetime } => {
                let rotation = Rotation::start(endpoint.names(), Timestamp::now(), lifetime)?;
                let server = rotation.server();
                (CertificateSource::Own(rotation), server)
            }
            Certificates::Files { certificate, key, authority, interval } => {
                let read = FileContents::read(certificate.clone(), key.clone(), authority.clone()).await?;
                let server = certificates::read(&read.certificate, &read.key)?;
                (CertificateSource::Files(Files { certificate, key, authority, interval, read }), server)
            }
        };
        let registration = Registration { client, endpoint, port, exempt_users, is_registered };
        Ok(RegistrationTask { registration, source, server: Sender::new(server) })
    }

    pub(super) fn server(&self) -> Receiver<Arc<ServerConfig>> {
        self.server.subscribe()
    }

    /// Registers for the first time. The API server sends requests from then on.
    pub(super) async fn register(&self) -> Result<(), Error> {
        self.registration.register(self.source.authorities().as_deref()).await
    }

    /// Renews certificates when due, and registers again when the configuration was deleted.
    pub(super) async fn run(mut self) {
        let (send, mut changes) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        if self.registration.is_registered {
            let all: Api<ValidatingWebhookConfiguration> = Api::all(self.registration.client.clone());
            let this = Config::default().fields(&format!("metadata.name={NAME}"));
            watches.spawn(forward(ResilientWatch::local(all, this), |change| change, send));
        }
        let mut presence = Presence::default();
        let mut due = Instant::now() + self.source.interval();
        loop {
            tokio::select! {
                () = sleep_until(due) => {
                    self.renew().await;
                    due = Instant::now() + self.source.interval();
                }
                Some(change) = changes.recv() => if presence.is_lost(&change) {
                    warn!(target: "lab", "eviction webhook: ValidatingWebhookConfiguration {NAME} is gone; writing it again");
                    self.registration.register_with_retries(self.source.authorities().as_deref()).await;
                },
            }
        }
    }

    async fn renew(&mut self) {
        let renewed = match &mut self.source {
            CertificateSource::Own(rotation) => rotation.rotate(Timestamp::now()).map(|()| Some(rotation.server())),
            CertificateSource::Files(files) => files.read_again().await,
        };
        let server = match renewed {
            Ok(Some(server)) => server,
            Ok(None) => return,
            // Files are not replaced at the same moment, so they may fit together soon.
            Err(problem) => {
                return warn!(target: "lab", "eviction webhook: {problem}; keeping the certificate that it has");
            }
        };
        let authorities = self.source.authorities();
        match &self.source {
            // The API server has trusted the new CA for one period, and forgets the old one now.
            CertificateSource::Own(_) => {
                self.server.send_replace(server);
                self.registration.register_with_retries(authorities.as_deref()).await;
            }
            CertificateSource::Files(_) => {
                self.registration.register_with_retries(authorities.as_deref()).await;
                self.server.send_replace(server);
            }
        }
        info!(target: "lab", "eviction webhook: has a new certificate");
    }
}

/// Whether the watched object exists.
#[derive(Debug, Default)]
struct Presence {
    exists: bool,
}

impl Presence {
    /// Returns whether the change shows that the object is gone.
    fn is_lost<K>(&mut self, change: &Change<K>) -> bool {
        match change {
            Change::Applied(_) => self.exists = true,
            Change::Deleted(_) => self.exists = false,
            Change::Synced => {}
        }
        !self.exists
    }
}

#[cfg(test)]
mod tests {
    use kube_io::ObjectKey;

    use super::*;

    #[test]
    fn an_object_is_lost_when_it_is_deleted_or_missing_in_a_list() {
        let key = || ObjectKey { namespace: String::new(), name: NAME.to_owned() };
        let mut presence = Presence::default();
        let mut lost =
            |changes: &[Change<()>]| changes.iter().map(|change| presence.is_lost(change)).collect::<Vec<_>>();
        assert_eq!(lost(&[Change::Applied(Box::new(())), Change::Synced, Change::Applied(Box::new(()))]), [false; 3]);
        assert_eq!(lost(&[Change::Deleted(key()), Change::Applied(Box::new(()))]), [true, false]);
        assert!(Presence::default().is_lost(&Change::<()>::Synced), "deleted before the first list");
    }
}
