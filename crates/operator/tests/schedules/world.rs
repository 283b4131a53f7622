//! One world: what is stored, what happened, who waits for what. Everybody who writes to it does so here.

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
    dice::Dice,
    fate::{Climate, Fate, Trouble},
    law,
};

/// When the world began, by its own clock.
const BEGINNING: &str = "2026-01-01T00:00:00Z";

#[derive(Clone)]
pub(crate) struct Server {
    world: Arc<Mutex<World>>,
    start: Instant,
    /// Who is told when something of a kind changes.
    changed: Arc<BTreeMap<&'static str, Notify>>,
    crashes: Arc<BTreeMap<&'static str, Notify>>,
}

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) climate: Climate,
    pub(crate) store: Store,
    pub(crate) story: Vec<String>,
    pub(crate) violations: Vec<String>,
    counts: BTreeMap<String, u64>,
    /// Requests of operators, without watches, events and the lease.
    pub(crate) requests: u64,
    /// Every time somebody interfered.
    pub(crate) disturbances: u64,
    /// What each process was last told of each configuration.
    seen: BTreeMap<(Process, String), Arc<Value>>,
    /// Plans under which something was written, by configuration and generation.
    pub(crate) carried_out: BTreeMap<(String, i64), String>,
    /// Whether nobody does anything any more; then reads are not worth telling.
    pub(crate) is_over: bool,
    /// Whether a read was answered with something old.
    pub(crate) was_stale: bool,
}

/// One life of one replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) replica: &'static str,
    pub(crate) number: u64,
}

/// A request that has been sent.
#[derive(Debug, Clone)]
pub(crate) struct Ticket {
    pub(crate) process: Process,
    pub(crate) label: String,
    pub(crate) fate: Fate,
    /// What the sender knew of the configurations then.
    pub(crate) known: Vec<Arc<Value>>,
}

pub(crate) const REPLICAS: [&str; 2] = ["one", "two"];

impl Server {
    pub(crate) fn new(seed: u64, climate: Climate, store: Store) -> Server {
        let world = World {
            seed,
            climate,
            store,
            story: Vec::new(),
            violations: Vec::new(),
            counts: BTreeMap::new(),
            requests: 0,
            disturbances: 0,
            seen: BTreeMap::new(),
            carried_out: BTreeMap::new(),
            is_over: false,
            was_stale: false,
        };
        let changed = resources().iter().map(|resource| (resource.plural.as_str(), Notify::new())).collect();
        Server {
            world: Arc::new(Mutex::new(world)),
            start: Instant::now(),
            changed: Arc::new(changed),
            crashes: Arc::new(REPLICAS.map(|replica| (replica, Notify::new())).into()),
        }
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        world.store.now = self.start.elapsed();
        world
    }

    pub(crate) fn changed(&self, plural: &str) -> &Notify {
        &self.changed[plural]
    }

    pub(crate) fn crash(&self, replica: &str) -> &Notify {
        &self.crashes[replica]
    }

    /// The clock of this world.
    pub(crate) fn clock(&self) -> impl Fn() -> Timestamp + Send + Sync + 'static {
        let start = self.start;
        let beginning: Timestamp = BEGINNING.parse().unwrap();
        move || beginning + SignedDuration::try_from(start.elapsed()).unwrap()
    }

    fn time(&self) -> String {
        format!("{:.0}", (self.clock())())
    }

    /// Somebody else's request, carried out at once.
    pub(crate) fn act(&self, who: &str, method: Method, uri: &str, content: &str, body: &Value) -> Answer {
        let request = Request::new(method, uri, content, "", body.to_string().as_bytes());
        let (before, time) = (self.world().store.history.len(), self.time());
        let answer = self.world().store.handle(&request, &time);
        self.announce(before);
        let shown = if request.method == Method::DELETE { String::new() } else { format!(" {}", brief(body)) };
        self.world().tell(who, &format!("{}{shown} -> {}", label(&request), answer.code));
        answer
    }

    /// Takes a request of an operator in.
    pub(crate) fn arrive(&self, process: Process, request: &Request) -> Ticket {
        let mut world = self.world();
        let label = label(request);
        let count = world.counts.entry(format!("{} {label}", process.replica)).or_default();
        *count += 1;
        let number = *count;
        if !is_aside(request) && !request.is_watch() {
            world.requests += 1;
        }
        if request.is_write() && !is_aside(request) {
            law::leads(&mut world, process, &label);
        }
        let mut dice = Dice::of(world.seed, &format!("{} {label}", process.replica), number);
        let fate = Fate::of(&mut dice, &world.climate, request);
        world.disturbances += u64::from(fate.trouble.is_some());
        let known = world.seen.iter().filter(|((who, _), _)| *who == process).map(|(_, config)| config.clone());
        Ticket { process, known: known.collect(), label, fate }
    }

    /// Carries a request of an operator out.
    pub(crate) fn commit(&self, ticket: &Ticket, request: &Request) -> Answer {
        let time = self.time();
        let mut world = self.world();
        let before = world.store.history.len();
        let target = Target::of(&request.path);
        let live = target.as_ref().and_then(|target| world.store.get(&target.key()).cloned());
        let answer = match (ticket.fate.trouble, &target) {
            (Some(Trouble::Stale), Some(target)) if world.store.serves(target.resource) => {
                let version = world.earlier(ticket);
                world.was_stale = true;
                world.store.read(request, target, version)
            }
            _ => world.store.handle(request, &time),
        };
        if let (true, true, Some(target)) = (request.is_write(), answer.code < 300, &target)
            && !is_aside(request)
        {
            law::judge(&mut world, ticket, request, target, live.as_deref());
        }
        let fate = ticket.fate.trouble.map_or_else(String::new, |trouble| format!(" ({trouble:?})"));
        let is_routine = is_aside(request) || (world.is_over && request.method == Method::GET);
        if !is_routine || ticket.fate.trouble.is_some() {
            let who = ticket.process.to_string();
            let line = format!("{} -> {}{}{fate}", ticket.label, outcome(&answer), recorded(request));
            world.tell(&who, &line);
        }
        drop(world);
        self.announce(before);
        answer
    }

    /// An answer has arrived.
    pub(crate) fn deliver(&self, ticket: &Ticket, request: &Request, answer: &Answer) {
        let Some(target) = Target::of(&request.path).filter(|target| target.resource.plural == CONFIGS) else { return };
        // A configuration that cannot be read is told so beside the work. That answer reaches no steward, and whoever is at work
        // goes on from what it has read before, for one round at most.
        if target.is_status && request.method == Method::PATCH {
            return;
        }
        let Some(name) = target.name.filter(|_| answer.code < 300) else { return };
        self.world().seen.insert((ticket.process, name), answer.body.clone());
    }

    /// Tells whoever watches what has changed.
    fn announce(&self, from: usize) {
        let world = self.world();
        for change in &world.store.history[from..] {
            self.changed[change.key.plural].notify_waiters();
            let definition = change.after.as_ref().unwrap_or_else(|last| last);
            let plural = definition.pointer("/spec/names/plural").and_then(Value::as_str);
            if let Some(notify) = plural.and_then(|plural| self.changed.get(plural)) {
                notify.notify_waiters();
            }
        }
    }

    pub(crate) fn tell(&self, who: &str, what: &str) {
        self.world().tell(who, what);
    }
}

impl World {
    pub(crate) fn tell(&mut self, who: &str, what: &str) {
        let mut line = format!("{:>4} {:>10.3} {who:<8} ", self.story.len() + 1, self.store.now.as_secs_f64());
        let _ = write!(line, "{what}");
        self.story.push(line);
    }

    pub(crate) fn accuse(&mut self, what: String) {
        self.tell("law", &format!("VIOLATION: {what}"));
        self.violations.push(what);
    }

    /// A version of a while ago.
    fn earlier(&self, ticket: &Ticket) -> u64 {
        let mut dice = Dice::of(self.seed, &format!("earlier {}", ticket.label), self.store.version);
        let since = self.store.now.saturating_sub(dice.millis(1, 20_000));
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

/// Events and the lease do not count.
pub(crate) fn is_aside(request: &Request) -> bool {
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

/// What a status says that is being recorded.
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
