//! Keeps the certificates fresh, and the API server informed of whom to ask and to trust.
//!
//! In this order: whom to trust is written first, and what is to be trusted is used later.

use std::{path::PathBuf, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    runtime::watcher::{Config, Event},
};
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
    Certificates, Error, NAME, Reach, Settings,
    certificates::{self, Rotation},
    configuration,
    mark::FIELD_MANAGER,
};
use crate::watch::{delay, watch};

const BACKLOG: usize = 16;

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
    /// What is to be used from now on, if that has changed.
    async fn read_again(&mut self) -> Result<Option<Arc<ServerConfig>>, Error> {
        let found = Texts::read(self.certificate.clone(), self.key.clone(), self.authority.clone()).await?;
        if found == self.read {
            return Ok(None);
        }
        let server = certificates::read(&found.certificate, &found.key)?;
        self.read = found;
        Ok(Some(server))
    }
}

impl Stock {
    /// Whom the API server is to trust.
    fn authorities(&self) -> Option<String> {
        match self {
            Stock::Own(rotation) => Some(rotation.authorities()),
            Stock::Files(files) => files.read.authority.clone(),
        }
    }

    /// How often there may be something new.
    fn interval(&self) -> Duration {
        match self {
            Stock::Own(rotation) => rotation.turn_length(),
            Stock::Files(files) => files.interval,
        }
    }
}

pub(super) struct Keeper {
    registry: Registry,
    stock: Stock,
    server: Sender<Arc<ServerConfig>>,
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
        Ok(Keeper { registry, stock, server: Sender::new(server) })
    }

    pub(super) fn server(&self) -> Receiver<Arc<ServerConfig>> {
        self.server.subscribe()
    }

    /// Tells the API server for the first time. Once this has succeeded, it asks.
    pub(super) async fn announce(&self) -> Result<(), Error> {
        self.registry.announce(self.stock.authorities().as_deref()).await
    }

    /// Renews certificates when their time has come, and tells the API server again when somebody made it forget.
    pub(super) async fn run(mut self) {
        let (send, mut news) = mpsc::channel(BACKLOG);
        let mut watches = JoinSet::new();
        if self.registry.is_registered {
            let all: Api<ValidatingWebhookConfiguration> = Api::all(self.registry.client.clone());
            let this = Config::default().fields(&format!("metadata.name={NAME}"));
            watches.spawn(watch(all, this, |_| {}, |event| event, send));
        }
        let mut presence = Presence::default();
        let mut due = Instant::now() + self.stock.interval();
        loop {
            tokio::select! {
                () = sleep_until(due) => {
                    self.renew().await;
                    due = Instant::now() + self.stock.interval();
                }
                Some(event) = news.recv() => if presence.is_lost(&event) {
                    warn!(target: "lab", "eviction webhook: ValidatingWebhookConfiguration {NAME} is gone; writing it again");
                    self.registry.insist(self.stock.authorities().as_deref()).await;
                },
            }
        }
    }

    async fn renew(&mut self) {
        let renewed = match &mut self.stock {
            Stock::Own(rotation) => rotation.turn(Timestamp::now()).map(|()| Some(rotation.server())),
            Stock::Files(files) => files.read_again().await,
        };
        let server = match renewed {
            Ok(Some(server)) => server,
            Ok(None) => return,
            // Files are not replaced all at once, so what makes no sense now may do so soon.
            Err(problem) => {
                return warn!(target: "lab", "eviction webhook: {problem}; keeping the certificate that it has");
            }
        };
        let authorities = self.stock.authorities();
        match &self.stock {
            // The API server was told a turn ago to trust this one, and is told now to forget the one before.
            Stock::Own(_) => {
                self.server.send_replace(server);
                self.registry.insist(authorities.as_deref()).await;
            }
            Stock::Files(_) => {
                self.registry.insist(authorities.as_deref()).await;
                self.server.send_replace(server);
            }
        }
        info!(target: "lab", "eviction webhook: has a new certificate");
    }
}

/// Whether an object is there, by a watch of it.
#[derive(Debug, Default)]
struct Presence {
    is_listed: bool,
}

impl Presence {
    /// Whether this says that the object is gone.
    fn is_lost<K>(&mut self, event: &Event<K>) -> bool {
        match event {
            Event::Init => self.is_listed = false,
            Event::InitApply(_) => self.is_listed = true,
            Event::InitDone => return !self.is_listed,
            Event::Apply(_) => {}
            Event::Delete(_) => return true,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_lost_when_it_is_deleted_or_missing_in_a_list() {
        let mut presence = Presence::default();
        let mut heard = |events: &[Event<()>]| events.iter().map(|event| presence.is_lost(event)).collect::<Vec<_>>();
        assert_eq!(heard(&[Event::Init, Event::InitApply(()), Event::InitDone, Event::Apply(())]), [false; 4]);
        assert_eq!(heard(&[Event::Delete(()), Event::Apply(())]), [true, false]);
        assert_eq!(heard(&[Event::Init, Event::InitDone]), [false, true], "deleted while nobody watched");
    }
}
