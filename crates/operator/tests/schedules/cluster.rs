//! The cluster of one run: the store, the log, who waits for what. All requests go through here.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::Method;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::{sync::Notify, time::Instant};

use crate::{
    api::{
        Answer, Request, Target,
        kinds::{CONFIGS, named, resources},
        store::{Key, Store},
    },
    fault_plan::{Delivery, Fault, FaultPlan},
    invariants,
    random::Random,
};

/// The time at which a run begins.
const BEGINNING: &str = "2026-01-01T00:00:00Z";

#[derive(Clone)]
pub(crate) struct Server {
    cluster: Arc<Mutex<ModelCluster>>,
    start: Instant,
    /// Notified when an object of a kind changes.
    changed: Arc<BTreeMap<&'static str, Notify>>,
    crashes: Arc<BTreeMap<&'static str, Notify>>,
}

pub(crate) struct ModelCluster {
    pub(crate) seed: u64,
    pub(crate) fault_plan: FaultPlan,
    pub(crate) store: Store,
    pub(crate) log: Vec<String>,
    pub(crate) violations: Vec<String>,
    counts: BTreeMap<String, u64>,
    /// Requests of operators, without watches, events and the lease.
    pub(crate) requests: u64,
    /// How many requests had a fault.
    pub(crate) injected_faults: u64,
    /// The configurations as each process has last read them.
    seen: BTreeMap<(Process, String), Arc<Value>>,
    /// The digests of plans of which something was written, by uid and generation of the configuration.
    pub(crate) carried_out: BTreeMap<(String, i64), String>,
    /// Whether all edits and faults are over. Reads are not logged then.
    pub(crate) is_over: bool,
    /// Whether a read was answered from an earlier version.
    pub(crate) was_stale: bool,
}

/// One start of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) replica: &'static str,
    pub(crate) number: u64,
}

/// A request that has been sent.
#[derive(Debug, Clone)]
pub(crate) struct SentRequest {
    pub(crate) process: Process,
    pub(crate) label: String,
    pub(crate) delivery: Delivery,
    pub(crate) at: Timestamp,
    /// The configurations as the sender had last read them.
    pub(crate) known: Vec<Arc<Value>>,
}

pub(crate) const REPLICAS: [&str; 2] = ["one", "two"];

impl Server {
    pub(crate) fn new(seed: u64, fault_plan: FaultPlan, store: Store) -> Server {
        let cluster = ModelCluster {
            seed,
            fault_plan,
            store,
            log: Vec::new(),
            violations: Vec::new(),
            counts: BTreeMap::new(),
            requests: 0,
            injected_faults: 0,
            seen: BTreeMap::new(),
            carried_out: BTreeMap::new(),
            is_over: false,
            was_stale: false,
        };
        let changed = resources().iter().map(|resource| (resource.plural.as_str(), Notify::new())).collect();
        Server {
            cluster: Arc::new(Mutex::new(cluster)),
            start: Instant::now(),
            changed: Arc::new(changed),
            crashes: Arc::new(REPLICAS.map(|replica| (replica, Notify::new())).into()),
        }
    }

    pub(crate) fn cluster(&self) -> MutexGuard<'_, ModelCluster> {
        let mut cluster = self.cluster.lock().unwrap_or_else(PoisonError::into_inner);
        cluster.store.now = self.start.elapsed();
        cluster
    }

    pub(crate) fn changed(&self, plural: &str) -> &Notify {
        &self.changed[plural]
    }

    pub(crate) fn crash(&self, replica: &str) -> &Notify {
        &self.crashes[replica]
    }

    /// The clock of this run.
    pub(crate) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let start = self.start;
        let beginning: Timestamp = BEGINNING.parse().unwrap();
        move || beginning + SignedDuration::try_from(start.elapsed()).unwrap()
    }

    /// A time from now on, or before, as it is written in a spec.
    pub(crate) fn time_in(&self, seconds: i64) -> String {
        format!("{:.0}", (self.clock())() + SignedDuration::from_secs(seconds))
    }

    fn time(&self) -> String {
        format!("{:.0}", (self.clock())())
    }

    /// Carries out a request of somebody else than the operator, at once.
    pub(crate) fn request_as(&self, who: &str, method: Method, uri: &str, content: &str, body: &Value) -> Answer {
        let request = Request::new(method, uri, content, "", body.to_string().as_bytes());
        let (before, time) = (self.cluster().store.history.len(), self.time());
        let answer = self.cluster().store.handle(&request, &time);
        self.notify(before);
        let shown = if request.method == Method::DELETE { String::new() } else { format!(" {}", brief(body)) };
        self.cluster().log(who, &format!("{}{shown} -> {}", label(&request), answer.code));
        answer
    }

    /// Notes that an operator sends a request, and decides how it is delivered.
    pub(crate) fn send(&self, process: Process, request: &Request) -> SentRequest {
        let mut cluster = self.cluster();
        let label = label(request);
        let count = cluster.counts.entry(format!("{} {label}", process.replica)).or_default();
        *count += 1;
        let number = *count;
        if !is_uncounted(request) && !request.is_watch() {
            cluster.requests += 1;
        }
        if request.is_write() && !is_uncounted(request) {
            invariants::only_the_leader_writes(&mut cluster, process, &label);
        }
        let mut random = Random::of(cluster.seed, &format!("{} {label}", process.replica), number);
        let delivery = Delivery::of(&mut random, &cluster.fault_plan, request);
        cluster.injected_faults += u64::from(delivery.fault.is_some());
        let known = cluster.seen.iter().filter(|((who, _), _)| *who == process).map(|(_, config)| config.clone());
        SentRequest { process, known: known.collect(), label, delivery, at: (self.clock())() }
    }

    /// Carries out a request of an operator.
    pub(crate) fn commit(&self, sent: &SentRequest, request: &Request) -> Answer {
        let time = self.time();
        let mut cluster = self.cluster();
        let before = cluster.store.history.len();
        let target = Target::of(&request.path);
        let live = target.as_ref().and_then(|target| cluster.store.get(&target.key()).cloned());
        let answer = match (sent.delivery.fault, &target) {
            (Some(Fault::Stale), Some(target)) if cluster.store.serves(target.resource) => {
                let version = cluster.earlier(sent);
                cluster.was_stale = true;
                cluster.store.read(request, target, version)
            }
            _ => cluster.store.handle(request, &time),
        };
        if let (true, true, Some(target)) = (request.is_write(), answer.code < 300, &target)
            && !is_uncounted(request)
        {
            invariants::check(&mut cluster, sent, request, target, live.as_deref());
        }
        let delivery = sent.delivery.fault.map_or_else(String::new, |fault| format!(" ({fault:?})"));
        let is_routine = is_uncounted(request) || (cluster.is_over && request.method == Method::GET);
        if !is_routine || sent.delivery.fault.is_some() {
            let who = sent.process.to_string();
            let line = format!("{} -> {}{}{delivery}", sent.label, outcome(&answer), recorded(request));
            cluster.log(&who, &line);
        }
        drop(cluster);
        self.notify(before);
        answer
    }

    /// Notes that an answer reaches the operator.
    pub(crate) fn deliver(&self, sent: &SentRequest, request: &Request, answer: &Answer) {
        let Some(target) = Target::of(&request.path).filter(|target| target.resource.plural == CONFIGS) else { return };
        // The status patch of a configuration that cannot be read is made outside of its reconciler, which goes on with
        // what it has read before, for one round at most.
        if target.is_status && request.method == Method::PATCH {
            return;
        }
        let Some(name) = target.name.filter(|_| answer.code < 300) else { return };
        self.cluster().seen.insert((sent.process, name), answer.body.clone());
    }

    /// Wakes the watches of what has changed.
    fn notify(&self, from: usize) {
        let cluster = self.cluster();
        for change in &cluster.store.history[from..] {
            self.changed[change.key.plural].notify_waiters();
            let definition = change.after.as_ref().unwrap_or_else(|last| last);
            let plural = definition.pointer("/spec/names/plural").and_then(Value::as_str);
            if let Some(notify) = plural.and_then(|plural| self.changed.get(plural)) {
                notify.notify_waiters();
            }
        }
    }

    pub(crate) fn log(&self, who: &str, what: &str) {
        self.cluster().log(who, what);
    }
}

impl ModelCluster {
    pub(crate) fn log(&mut self, who: &str, what: &str) {
        let mut line = format!("{:>4} {:>10.3} {who:<8} ", self.log.len() + 1, self.store.now.as_secs_f64());
        let _ = write!(line, "{what}");
        self.log.push(line);
    }

    pub(crate) fn report_violation(&mut self, what: String) {
        self.log("check", &format!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    /// A version of up to twenty seconds ago.
    fn earlier(&self, sent: &SentRequest) -> u64 {
        let mut random = Random::of(self.seed, &format!("earlier {}", sent.label), self.store.version);
        let since = self.store.now.saturating_sub(random.millis(1, 20_000));
        let recent = self.store.history.iter().rev().take_while(|change| change.at > since);
        self.store.version - recent.count() as u64
    }

    pub(crate) fn config(&self, profile: &str) -> Option<&Arc<Value>> {
        self.store.get(&Key::new(named(CONFIGS), "", profile))
    }
}

impl std::fmt::Display for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.replica, self.number)
    }
}

/// Whether it is about events or the lease, which do not count.
pub(crate) fn is_uncounted(request: &Request) -> bool {
    request.path.starts_with("/apis/events.k8s.io/") || request.path.starts_with("/apis/coordination.k8s.io/")
}

fn label(request: &Request) -> String {
    let path = request.path.rsplit_once("/namespaces/").map_or(request.path.as_str(), |(_, rest)| rest);
    let short = path.split('/').skip_while(|part| part.is_empty() || part.contains("api") || part.contains('.'));
    let short: Vec<&str> = short.collect();
    let name = request.selected().map_or_else(String::new, |name| format!("/{name}"));
    let mode = if request.is_dry_run() { " (dry run)" } else { "" };
    let force = if request.query("force").is_some() && mode.len() > 1 { " by force" } else { "" };
    let verb = if request.is_watch() { "WATCH" } else { request.method.as_str() };
    format!("{verb} {}{name}{mode}{force}", short.join("/"))
}

fn outcome(answer: &Answer) -> String {
    match answer.reason() {
        "" => answer.code.to_string(),
        reason => format!("{} {reason}", answer.code),
    }
}

/// A status update in short.
fn recorded(request: &Request) -> String {
    let status = &request.body["status"];
    let Some(phase) = status["phase"].as_str().filter(|_| request.method == Method::PUT) else { return String::new() };
    let item = |item: &Value| {
        let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        format!("{}={}", text("name"), text("state"))
    };
    let items: Vec<String> = status["items"].as_array().into_iter().flatten().map(item).collect();
    let reason = status["conditions"].as_array().into_iter().flatten().find(|condition| condition["type"] == phase);
    let reason = reason.and_then(|condition| condition["reason"].as_str()).unwrap_or_default();
    format!(": {phase} ({reason}) at {} [{}]", status["observedGeneration"], items.join(" "))
}

fn brief(body: &Value) -> String {
    let mut shown = body.clone();
    if let Some(members) = shown.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
        if members.contains_key("spec") || members.contains_key("status") {
            members.remove("metadata");
        }
    }
    let mut text = shown.to_string();
    if text.len() > 240 {
        text.truncate(text.floor_char_boundary(240));
        text += "...";
    }
    text
}
