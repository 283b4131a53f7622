//! Keeps the certificates fresh, and the API server informed of whom to trust.
//!
//! In this order: whom to trust is written first, and what is to be trusted is used later.

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use rustls::ServerConfig;
use tokio::{sync::watch, time::sleep};
use tracing::{info, warn};

use super::{
    Certificates, Error, NAME, Reach, Settings,
    certificates::{self, Rotation},
    configuration,
    mark::FIELD_MANAGER,
};
use crate::watch::delay;

/// Where the webhook is announced.
struct Registry {
    client: Client,
    reach: Reach,
    port: u16,
    passes: Vec<String>,
    is_registered: bool,
}

impl Registry {
    async fn announce(&self, authorities: Option<&str>) -> Result<(), Error> {
        if !self.is_registered {
            return Ok(());
        }
        let object = configuration(&self.reach, self.port, authorities, &self.passes);
        let all: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let answer = all.patch(NAME, &params, &Patch::Apply(&object)).await;
        answer.map(|_| ()).map_err(|cause| Error::Register { name: NAME, cause: Box::new(cause) })
    }

    /// Goes on trying until it is written.
    async fn insist(&self, authorities: Option<&str>) {
        let mut tries = 0;
        while let Err(problem) = self.announce(authorities).await {
            warn!(target: "lab", "eviction webhook: {problem}; trying again");
            sleep(delay(tries)).await;
            tries += 1;
        }
    }
}

#[derive(Debug)]
enum Stock {
    Own(Rotation),
    Files(Files),
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    authority: Option<PathBuf>,
    interval: Duration,
    read: Texts,
}

/// What the files hold.
#[derive(Debug, PartialEq, Eq)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Option<String>,
}

impl Texts {
    async fn read(certificate: PathBuf, key: PathBuf, authority: Option<PathBuf>) -> Result<Texts, Error> {
        let bytes = |path: &PathBuf| std::fs::read(path).map_err(|cause| Error::Read { path: path.clone(), cause });
        let text =
            |path: &PathBuf| std::fs::read_to_string(path).map_err(|cause| Error::Read { path: path.clone(), cause });
        let read = move || {
            let authority = authority.as_ref().map(text).transpose()?;
            Ok(Texts { certificate: bytes(&certificate)?, key: bytes(&key)?, authority })
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| Error::Ended)?
    }
}

impl Files {
    async fn look(&self) -> Result<Texts, Error> {
        Texts::read(self.certificate.clone(), self.key.clone(), self.authority.clone()).await
    }
}

pub(super) struct Keeper {
    registry: Registry,
    stock: Stock,
    server: watch::Sender<Arc<ServerConfig>>,
}

impl Keeper {
    /// Makes or reads the first certificates.
    pub(super) async fn start(client: Client, settings: &Settings, port: u16) -> Result<Keeper, Error> {
        let Settings { reach, is_registered, passes, .. } = settings.clone();
        let (stock, server) = match settings.certificates.clone() {
            Certificates::Own { lifetime } => {
                let rotation = Rotation::start(reach.names(), Timestamp::now(), lifetime)?;
                let server = rotation.server();
                (Stock::Own(rotation), server)
            }
            Certificates::Files { certificate, key, authority, interval } => {
                let read = Texts::read(certificate.clone(), key.clone(), authority.clone()).await?;
                let server = certificates::read(&read.certificate, &read.key)?;
                (Stock::Files(Files { certificate, key, authority, interval, read }), server)
            }
        };
        let registry = Registry { client, reach, port, passes, is_registered };
        Ok(Keeper { registry, stock, server: watch::Sender::new(server) })
    }

    pub(super) fn server(&self) -> watch::Receiver<Arc<ServerConfig>> {
        self.server.subscribe()
    }

    /// Tells the API server for the first time. Once this has succeeded, it asks.
    pub(super) async fn announce(&self) -> Result<(), Error> {
        match &self.stock {
            Stock::Own(rotation) => self.registry.announce(Some(&rotation.authorities())).await,
            Stock::Files(files) => self.registry.announce(files.read.authority.as_deref()).await,
        }
    }

    pub(super) async fn run(self) {
        let Keeper { registry, stock, server } = self;
        match stock {
            Stock::Own(rotation) => rotate(rotation, &registry, &server).await,
            Stock::Files(files) => follow(files, &registry, &server).await,
        }
    }
}

async fn rotate(mut rotation: Rotation, registry: &Registry, server: &watch::Sender<Arc<ServerConfig>>) {
    loop {
        sleep(rotation.turn_length()).await;
        match rotation.turn(Timestamp::now()) {
            Ok(()) => {
                server.send_replace(rotation.server());
                registry.insist(Some(&rotation.authorities())).await;
                info!(target: "lab", "eviction webhook: has a new certificate");
            }
            Err(problem) => warn!(target: "lab", "eviction webhook: {problem}; keeping the old certificate"),
        }
    }
}

async fn follow(mut files: Files, registry: &Registry, server: &watch::Sender<Arc<ServerConfig>>) {
    loop {
        sleep(files.interval).await;
        // Files are not replaced all at once, so what makes no sense now may do so soon.
        let found = match files.look().await {
            Ok(found) if found == files.read => continue,
            Ok(found) => found,
            Err(problem) => {
                warn!(target: "lab", "eviction webhook: {problem}; keeping what was read before");
                continue;
            }
        };
        match certificates::read(&found.certificate, &found.key) {
            Ok(fresh) => {
                if found.authority != files.read.authority {
                    registry.insist(found.authority.as_deref()).await;
                }
                server.send_replace(fresh);
                files.read = found;
                info!(target: "lab", "eviction webhook: uses the certificate that {} holds now", files.certificate.display());
            }
            Err(problem) => warn!(target: "lab", "eviction webhook: {problem}; keeping what was read before"),
        }
    }
}
