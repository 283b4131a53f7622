//! The lease by which one of several operators leads. [`election`] decides; this module sends its requests.

pub mod election;

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use http::Method;
use kube_io::{ApiServer, Class, Clock, RequestError};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, info, warn};

use election::{Candidate, Input, LeaseRecord, LeaseTimes, Request, Step};

/// Where the lease is and who asks for it.
#[derive(Debug, Clone)]
pub struct LeaseSettings {
    pub namespace: String,
    pub id: String,
    pub times: LeaseTimes,
}

impl LeaseSettings {
    /// The lease in a namespace, with an identity that no other process has.
    pub fn new(namespace: String) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| "virt-advisor".into());
        let id = format!("{host}_{:016x}", RandomState::new().hash_one(std::process::id()));
        LeaseSettings { namespace, id, times: LeaseTimes::default() }
    }
}

/// The right to act: this process has acquired the lease.
#[derive(Debug, Clone)]
pub(crate) struct Leadership {
    /// The number of leaders before this one.
    pub(crate) epoch: i64,
    api_server: ApiServer,
    namespace: String,
    id: String,
}

impl Leadership {
    /// Asks the API server whether this process still holds the lease.
    pub(crate) async fn confirm(&self) -> Result<(), RequestError> {
        let doing = || format!("confirming lease {}", name(&self.namespace));
        let lease = self.api_server.get(object(&self.namespace), doing()).await?;
        match parse(&lease).holder {
            holder if holder == self.id => Ok(()),
            holder if holder.is_empty() => Err(RequestError::other(doing(), "nobody holds it".into(), Class::Other)),
            holder => {
                let message = format!("{holder} leads by now, so nothing more is written here");
                Err(RequestError::other(doing(), message, Class::Other))
            }
        }
    }
}

fn name(namespace: &str) -> String {
    format!("{namespace}/{}", advisor::access::LEASE)
}

fn collection(namespace: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases")
}

fn object(namespace: &str) -> String {
    format!("{}/{}", collection(namespace), advisor::access::LEASE)
}

pub(crate) struct Lease {
    api_server: ApiServer,
    settings: LeaseSettings,
    candidate: Candidate,
    start: Instant,
    clock: Clock,
    /// When this process acquired the lease, and as which leader.
    acquired: Mutex<Option<(i64, String)>>,
}

impl Lease {
    pub(crate) fn new(api_server: ApiServer, settings: LeaseSettings, clock: Clock) -> Self {
        // Time is left for a second attempt, over a new connection.
        let api_server = api_server.apart().with_deadline(settings.times.renew_deadline / 3);
        let candidate = Candidate::new(settings.id.clone(), settings.times);
        Lease { api_server, settings, candidate, start: Instant::now(), clock, acquired: Mutex::default() }
    }

    /// Waits until this process leads.
    pub(crate) async fn acquire(&mut self) -> Leadership {
        info!(lease = self.name(), id = self.settings.id, "waiting to lead");
        loop {
            self.round(None).await;
            if let Some((until, epoch)) = self.candidate.leads_until()
                && self.now() < until
            {
                info!(epoch, "leading");
                let (namespace, id) = (self.settings.namespace.clone(), self.settings.id.clone());
                return Leadership { epoch, api_server: self.api_server.clone(), namespace, id };
            }
            sleep(self.settings.times.retry_period).await;
        }
    }

    /// Renews the lease until that fails for too long. Returns before another process may lead.
    pub(crate) async fn keep(&mut self) {
        while let Some((until, _)) = self.candidate.leads_until() {
            let until = self.start + until;
            if timeout_at(until, sleep(self.settings.times.retry_period)).await.is_err() {
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
    pub(crate) async fn release(mut self) {
        let mut step = self.candidate.start_release();
        while let Step::Send(request) = step {
            let input = self.send(&request).await;
            match input {
                Input::Written(_) => info!(lease = self.name(), "released"),
                Input::Unknown => debug!("the lease was not released; it will run out"),
                Input::Absent | Input::Found(_) | Input::Conflict => {}
            }
            let now = self.now();
            step = self.candidate.next_release(now, input);
        }
    }

    fn name(&self) -> String {
        name(&self.settings.namespace)
    }

    fn acquired(&self) -> MutexGuard<'_, Option<(i64, String)>> {
        self.acquired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Makes one attempt to acquire or renew the lease.
    async fn round(&mut self, until: Option<Instant>) {
        let now = self.now();
        let mut step = self.candidate.start(now);
        while let Step::Send(request) = step {
            let answer = self.send(&request);
            let input = match until {
                Some(until) => timeout_at(until, answer).await.unwrap_or(Input::Unknown),
                None => answer.await,
            };
            let now = self.now();
            step = self.candidate.next(now, input);
        }
    }

    async fn send(&self, request: &Request) -> Input {
        match request {
            Request::Read => self.read().await,
            Request::Create(record) => self.write(Method::POST, record).await,
            Request::Replace(record) => self.write(Method::PUT, record).await,
        }
    }

    async fn read(&self) -> Input {
        let doing = format!("reading lease {}", self.name());
        match self.api_server.get(object(&self.settings.namespace), doing).await {
            Ok(lease) => Input::Found(parse(&lease)),
            Err(error) if error.class == Class::NotFound => Input::Absent,
            Err(error) => trouble(&error),
        }
    }

    async fn write(&self, method: Method, record: &LeaseRecord) -> Input {
        let now = format!("{:.6}", self.clock.now());
        let known =
            self.acquired().clone().filter(|(leader, _)| method == Method::PUT && *leader == record.transitions);
        let acquired = known.map_or_else(|| now.clone(), |(_, time)| time);
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": advisor::access::LEASE, "namespace": self.settings.namespace},
            "spec": {
                "holderIdentity": record.holder,
                "leaseDurationSeconds": record.duration.as_secs(),
                "leaseTransitions": record.transitions,
                "renewTime": now,
                "acquireTime": acquired,
            },
        });
        let namespace = &self.settings.namespace;
        let uri = if method == Method::POST { collection(namespace) } else { object(namespace) };
        if method == Method::PUT {
            lease["metadata"]["resourceVersion"] = record.version.clone().into();
        }
        let doing = format!("writing lease {}", self.name());
        match self.api_server.send_body(method, uri, "application/json", &lease, doing).await {
            Ok(lease) => {
                *self.acquired() = Some((record.transitions, acquired));
                Input::Written(parse(&lease))
            }
            Err(error) => trouble(&error),
        }
    }
}

fn trouble(error: &RequestError) -> Input {
    if error.class == Class::Conflict {
        debug!(%error, "somebody else was faster");
        return Input::Conflict;
    }
    warn!(%error, "the lease");
    Input::Unknown
}

fn parse(lease: &Value) -> LeaseRecord {
    let spec = &lease["spec"];
    LeaseRecord {
        holder: spec["holderIdentity"].as_str().unwrap_or_default().to_owned(),
        transitions: spec["leaseTransitions"].as_i64().unwrap_or_default(),
        duration: Duration::from_secs(spec["leaseDurationSeconds"].as_u64().unwrap_or_default()),
        version: lease["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned(),
    }
}
