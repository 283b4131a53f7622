//! The lease by which one of several operators leads. What decides is in [`election`]; here it is sent.

pub mod election;

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

use crate::{Class, Kubernetes, RequestError, Surroundings};
use election::{Candidate, Heard, Move, Record, Times};

/// Where the lease is and who asks for it.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub id: String,
    pub times: Times,
}

impl LeaseSettings {
    /// In a namespace, under a name that no other process has.
    pub fn new(namespace: String) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "virt-advisor".into());
        let id = format!("{host}_{:016x}", RandomState::new().hash_one(std::process::id()));
        LeaseSettings { namespace, id, times: Times::default() }
    }
}

pub(crate) struct Lease {
    kubernetes: Kubernetes,
    settings: LeaseSettings,
    candidate: Candidate,
    start: Instant,
    surroundings: Surroundings,
}

impl Lease {
    pub(crate) fn new(kubernetes: Kubernetes, settings: LeaseSettings, surroundings: Surroundings) -> Self {
        // A request that takes longer than a renewal may is of no use.
        let kubernetes = kubernetes.with_deadline(settings.times.renew / 2);
        let candidate = Candidate::new(settings.id.clone(), settings.times);
        Lease { kubernetes, settings, candidate, start: Instant::now(), surroundings }
    }

    /// Waits until we lead. Which leader in turn we are.
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

    /// Renews until that fails for too long. Returns before anybody else may lead.
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

    /// Gives the lease up.
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

    /// Asks once around.
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
        match self.kubernetes.call(Method::GET, self.object(), None, &Value::Null, doing).await {
            Ok(lease) => Heard::Found(parse(&lease)),
            Err(error) if error.class == Class::NotFound => Heard::Absent,
            Err(error) => trouble(&error),
        }
    }

    async fn write(&self, method: Method, record: &Record) -> Heard {
        let now = format!("{:.6}", self.surroundings.now());
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
        match self.kubernetes.call(method, uri, Some("application/json"), &lease, doing).await {
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
