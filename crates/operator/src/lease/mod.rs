//! The lease by which one of several operators leads. [`election`] decides; this module sends its requests.

pub mod election;

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

use crate::{ApiServer, Class, Clock, RequestError};
use election::{Candidate, Heard, Move, Record, Times};

/// Where the lease is and who asks for it.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub id: String,
    pub times: Times,
}

impl LeaseSettings {
    /// The lease in a namespace, with an identity that no other process has.
    pub fn new(namespace: String) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "virt-advisor".into());
        let id = format!("{host}_{:016x}", RandomState::new().hash_one(std::process::id()));
        LeaseSettings { namespace, id, times: Times::default() }
    }
}

pub(crate) struct Lease {
    api_server: ApiServer,
    settings: LeaseSettings,
    candidate: Candidate,
    start: Instant,
    clock: Clock,
}

impl Lease {
    pub(crate) fn new(api_server: ApiServer, settings: LeaseSettings, clock: Clock) -> Self {
        // An answer that comes after the time for renewal is of no use.
        let api_server = api_server.with_deadline(settings.times.renew / 2);
        let candidate = Candidate::new(settings.id.clone(), settings.times);
        Lease { api_server, settings, candidate, start: Instant::now(), clock }
    }

    /// Waits until this process leads. Returns the number of leaders before it.
    pub(crate) async fn acquire(&mut self) -> i64 {
        info!(lease = self.name(), id = self.settings.id, "waiting to lead");
        loop {
            self.round(None).await;
            if let Some((until, epoch)) = self.candidate.leads_until()
                && self.now() < until
            {
                info!(epoch, "leading");
                return epoch;
            }
            sleep(self.settings.times.retry).await;
        }
    }

    /// Renews the lease until that fails for too long. Returns before another process may lead.
    pub(crate) async fn keep(&mut self) {
        while let Some((until, _)) = self.candidate.leads_until() {
            let until = self.start + until;
            if timeout_at(until, sleep(self.settings.times.retry)).await.is_err() {
                break;
            }
            self.round(Some(until)).await;
            if !self.candidate.leads(self.now()) {
                break;
            }
        }
        warn!(lease = self.name(), "no longer leading");
    }

    /// Releases the lease, so that the next leader need not wait for its end.
    pub(crate) async fn release(self) {
        let Some(record) = self.candidate.release() else { return };
        match self.write(Method::PUT, &record).await {
            Heard::Written(_) => info!(lease = self.name(), "released"),
            heard => debug!(?heard, "the lease was not released; it will run out"),
        }
    }

    fn name(&self) -> String {
        format!("{}/{}", self.settings.namespace, advisor::access::LEASE)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Reads and writes the lease until the candidate waits.
    async fn round(&mut self, until: Option<Instant>) {
        let now = self.now();
        let mut next = self.candidate.begin(now);
        loop {
            let answer = async {
                match &next {
                    Move::Read => self.read().await,
                    Move::Create(record) => self.write(Method::POST, record).await,
                    Move::Replace(record) => self.write(Method::PUT, record).await,
                    Move::Wait(_) => Heard::Nothing,
                }
            };
            let heard = match until {
                Some(until) => timeout_at(until, answer).await.unwrap_or(Heard::Nothing),
                None => answer.await,
            };
            let now = self.now();
            next = self.candidate.next(now, heard);
            if let Move::Wait(_) = next {
                return;
            }
        }
    }

    fn uri(&self, name: &str) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases{name}", self.settings.namespace)
    }

    fn object(&self) -> String {
        self.uri(&format!("/{}", advisor::access::LEASE))
    }

    async fn read(&self) -> Heard {
        let doing = format!("reading lease {}", self.name());
        match self.api_server.get(self.object(), doing).await {
            Ok(lease) => Heard::Found(parse(&lease)),
            Err(error) if error.class == Class::NotFound => Heard::Absent,
            Err(error) => trouble(&error),
        }
    }

    async fn write(&self, method: Method, record: &Record) -> Heard {
        let now = format!("{:.6}", self.clock.now());
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": advisor::access::LEASE, "namespace": self.settings.namespace},
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": self.settings.times.duration.as_secs(),
                "leaseTransitions": record.transitions,
                "renewTime": now,
                "acquireTime": now,
            },
        });
        let uri = if method == Method::POST { self.uri("") } else { self.object() };
        if method == Method::PUT {
            lease["metadata"]["resourceVersion"] = record.version.clone().into();
        }
        let doing = format!("writing lease {}", self.name());
        match self.api_server.send_body(method, uri, "application/json", &lease, doing).await {
            Ok(lease) => Heard::Written(parse(&lease)),
            Err(error) => trouble(&error),
        }
    }
}

fn trouble(error: &RequestError) -> Heard {
    match error.class {
        Class::Conflict => debug!(%error, "somebody else was faster"),
        _ => warn!(%error, "the lease"),
    }
    Heard::Nothing
}

fn parse(lease: &Value) -> Record {
    let spec = &lease["spec"];
    Record {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
        transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
        version: lease["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
    }
}
