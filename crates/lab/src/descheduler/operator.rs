//! The loop of the stand-in: hear what is new, decide whether a descheduler shall run, see to it, tell.

use std::time::Duration;

use advisor::kind::KUBE_DESCHEDULER;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Node, Secret};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams},
    core::PartialObjectMeta,
    runtime::watcher::{Config, Event},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::{
    Orders, Policy, Settings, State, Surroundings, names,
    process::{Descheduler, Home},
    status::status,
    verdict::{Object, Sight, Verdict, verdict},
};
use crate::{
    listing::{Change, Listing},
    watch as watches,
};

const BACKLOG: usize = 256;
const DEADLINE: Duration = Duration::from_secs(10);
/// How long the loop sleeps when nothing is planned. Whatever happens wakes it.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a descheduler that starts is asked whether it is ready, and one that runs is looked after.
const STARTING: Duration = Duration::from_millis(100);
const RUNNING: Duration = Duration::from_millis(500);
/// How long a descheduler that failed is left alone at first, and at most. Doubled with each failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// One that ran for so long had no trouble.
const TROUBLE_FREE: Duration = Duration::from_secs(60);
/// How long until a status that could not be written is tried again.
const TELL_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
enum News {
    Object(Box<Event<DynamicObject>>),
    Namespace(Box<Event<PartialObjectMeta<Namespace>>>),
    Node(Box<Event<PartialObjectMeta<Node>>>),
}

pub(super) fn resource() -> ApiResource {
    let kind = &KUBE_DESCHEDULER;
    let version = kind.versions.first().copied().unwrap_or("v1");
    ApiResource {
        group: kind.group.into(),
        version: version.into(),
        api_version: kind.api_version(version),
        kind: kind.kind.into(),
        plural: kind.plural.into(),
    }
}

/// The one KubeDescheduler that counts.
pub(super) fn only_ours() -> Config {
    Config::default().fields(&format!("metadata.name={}", names::OBJECT))
}

/// A running descheduler, and since when.
#[derive(Debug)]
struct Current {
    descheduler: Descheduler,
    since: Instant,
}

pub(super) struct Operator {
    client: Client,
    settings: Settings,
    home: Home,
    state: watch::Sender<State>,
    stop: watch::Receiver<bool>,
    psi: watch::Receiver<bool>,
    news: mpsc::Receiver<News>,
    _watches: JoinSet<()>,
    listings: (Listing, Listing, Listing),
    listed: [bool; 3],
    sight: Sight,
    /// As of when everything was first known, like the operator's own.
    protected: Vec<String>,
    current: Option<Current>,
    failures: u32,
    not_before: Option<Instant>,
    told: Option<Told>,
}

/// A status that was sent, and what the API server kept of it.
#[derive(Debug, PartialEq)]
struct Told {
    sent: Value,
    kept: Value,
}

impl Operator {
    pub(super) fn new(
        client: Client,
        settings: Settings,
        home: Home,
        state: watch::Sender<State>,
        stop: watch::Receiver<bool>,
        psi: watch::Receiver<bool>,
    ) -> Operator {
        let (send, news) = mpsc::channel(BACKLOG);
        let mut watched = JoinSet::new();
        if settings.orders == Orders::KubeDescheduler {
            let objects = Api::namespaced_with(client.clone(), names::NAMESPACE, &resource());
            watched.spawn(watches::watch(objects, only_ours(), |_| {}, News::Object, send.clone()));
            let namespaces = Api::all(client.clone());
            watched.spawn(watches::watch(namespaces, Config::default(), |_| {}, News::Namespace, send.clone()));
            let nodes = Config::default().labels(names::SCHEDULABLE);
            watched.spawn(watches::watch(Api::all(client.clone()), nodes, |_| {}, News::Node, send));
        }
        Operator {
            client,
            settings,
            home,
            state,
            stop,
            psi,
            news,
            _watches: watched,
            listings: Default::default(),
            listed: [false; 3],
            sight: Sight::default(),
            protected: Vec::new(),
            current: None,
            failures: 0,
            not_before: None,
            told: None,
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "descheduler stand-in: started");
        let is_watching = self.settings.orders == Orders::KubeDescheduler;
        self.state.send_modify(|state| state.is_acting = !is_watching);
        loop {
            let pause = self.round().await;
            tokio::select! {
                news = self.news.recv(), if is_watching => match news {
                    Some(news) => self.hear(news),
                    None => break,
                },
                _ = self.stop.changed() => break,
                Ok(()) = self.psi.changed() => self.settings.has_psi = *self.psi.borrow_and_update(),
                () = sleep(pause) => {}
            }
            while let Ok(news) = self.news.try_recv() {
                self.hear(news);
            }
        }
        self.end().await;
    }

    fn hear(&mut self, news: News) {
        let sight = &mut self.sight;
        match news {
            News::Object(event) => {
                self.listed[0] |= self.listings.0.hear(*event, |change| match change {
                    Change::Is(object) => sight.object = Some(seen(&object)),
                    Change::Gone(_) => sight.object = None,
                });
            }
            News::Namespace(event) => {
                let (label, value) = names::MONITORED.split_once('=').unwrap_or_default();
                self.listed[1] |= self.listings.1.hear(*event, |change| match change {
                    Change::Is(namespace) => {
                        let is_monitored = namespace.labels().get(label).is_some_and(|found| found == value);
                        sight.namespaces.insert(namespace.name_any(), is_monitored);
                    }
                    Change::Gone((_, name)) => {
                        sight.namespaces.remove(&name);
                    }
                });
            }
            News::Node(event) => {
                self.listed[2] |= self.listings.2.hear(*event, |change| match change {
                    Change::Is(node) => {
                        sight.schedulable.insert(node.name_any());
                    }
                    Change::Gone((_, name)) => {
                        sight.schedulable.remove(&name);
                    }
                });
            }
        }
        if self.listed == [true; 3] && self.protected.is_empty() {
            self.protected = Surroundings::protected_among(self.sight.namespaces.keys().map(String::as_str));
            self.state.send_modify(|state| state.is_acting = true);
        }
    }

    /// Sees to it that what should run runs. Returns how long nothing will be to do, unless something happens.
    async fn round(&mut self) -> Duration {
        if let Orders::Policy(policy) = &self.settings.orders {
            let policy = policy.clone();
            self.ensure(policy).await;
            return self.pause();
        }
        if self.listed != [true; 3] {
            return IDLE;
        }
        let verdict = verdict(&self.sight, &self.protected, &self.settings);
        match &verdict {
            Verdict::Run(policy) => self.ensure(policy.clone()).await,
            Verdict::Stop(_) => {
                self.end().await;
                self.forgive();
            }
            Verdict::Keep(_) => {
                if let Some(policy) = self.policy() {
                    self.ensure(policy).await;
                }
            }
        }
        match self.tell(&verdict).await {
            Ok(()) => self.pause(),
            Err(problem) => {
                warn!(target: "lab", "descheduler stand-in: writing the status of the KubeDescheduler: {problem}");
                self.pause().min(TELL_AGAIN)
            }
        }
    }

    /// What the descheduler was last started with.
    fn policy(&self) -> Option<Policy> {
        self.state.borrow().policy.clone()
    }

    fn is_ready(&self) -> bool {
        self.state.borrow().is_ready
    }

    fn pause(&self) -> Duration {
        match (&self.current, self.not_before) {
            (Some(_), _) if self.is_ready() => RUNNING,
            (Some(_), _) => STARTING,
            (None, Some(until)) => until.saturating_duration_since(Instant::now()),
            (None, None) => IDLE,
        }
    }

    async fn ensure(&mut self, policy: Policy) {
        if self.policy().as_ref() != Some(&policy) {
            if self.current.is_some() {
                info!(target: "lab", "descheduler stand-in: the policy has changed, the descheduler is restarted");
            }
            self.end().await;
            self.forgive();
            self.state.send_modify(|state| state.policy = Some(policy.clone()));
        }
        if let Some(current) = &self.current
            && let Some(how) = current.descheduler.exit_status()
        {
            let problem = format!("the descheduler ended ({how}): {}", current.descheduler.last_words());
            if current.since.elapsed() > TROUBLE_FREE {
                self.forgive();
            }
            self.fail(problem);
        }
        if self.current.is_none() && self.not_before.is_none_or(|until| until <= Instant::now()) {
            match self.launch(&policy).await {
                Ok(descheduler) => {
                    let pid = descheduler.pid();
                    info!(target: "lab", "descheduler stand-in: started a descheduler (pid {pid}) with {:?}", policy.flags());
                    self.current = Some(Current { descheduler, since: Instant::now() });
                    self.state.send_modify(|state| {
                        state.pid = Some(pid);
                        state.starts += 1;
                    });
                }
                Err(problem) => self.fail(problem),
            }
        }
        if self.current.is_some() && !self.is_ready() && self.home.web.get("/healthz").await.is_ok() {
            self.state.send_modify(|state| {
                state.is_ready = true;
                state.problem = None;
            });
        }
    }

    async fn launch(&self, policy: &Policy) -> Result<Descheduler, String> {
        if let Some((namespace, name)) = policy.token_secret() {
            self.token(&namespace, &name).await?;
        }
        Descheduler::start(&self.home, &self.settings, policy).map_err(|problem| problem.to_string())
    }

    /// The Secret that the descheduler takes its token from. The lab's Prometheus takes any; one that exists is left alone.
    async fn token(&self, namespace: &str, name: &str) -> Result<(), String> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret: Secret = Secret {
            metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            string_data: Some([(names::TOKEN_KEY.to_owned(), "any".to_owned())].into()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let failed = |problem: String| format!("creating Secret {namespace}/{name} for the descheduler: {problem}");
        match timeout(DEADLINE, secrets.create(&params, &secret)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Ok(()),
            Ok(Err(problem)) => Err(failed(problem.to_string())),
            Err(_) => Err(failed(format!("no answer within {} s", DEADLINE.as_secs()))),
        }
    }

    fn fail(&mut self, problem: String) {
        warn!(target: "lab", "descheduler stand-in: {problem}");
        self.current = None;
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
        self.state.send_modify(|state| {
            state.pid = None;
            state.is_ready = false;
            state.problem = Some(problem);
        });
    }

    fn forgive(&mut self) {
        self.failures = 0;
        self.not_before = None;
        self.state.send_if_modified(|state| state.problem.take().is_some());
    }

    async fn end(&mut self) {
        if let Some(current) = self.current.take() {
            info!(target: "lab", "descheduler stand-in: ending the descheduler (pid {})", current.descheduler.pid());
            current.descheduler.end().await;
        }
        let ended = State { pid: None, is_ready: false, policy: None, ..self.state.borrow().clone() };
        self.state.send_if_modified(|state| {
            let is_new = *state != ended;
            *state = ended;
            is_new
        });
    }

    async fn tell(&mut self, verdict: &Verdict) -> Result<(), String> {
        let Some(object) = &self.sight.object else { return Ok(()) };
        let state = self.state.borrow().clone();
        let after = status(&object.status, object.generation, verdict.refusal(), &state, Timestamp::now());
        let Some(after) = after else { return Ok(()) };
        // Where the definition does not know a field, sending it again would not help.
        if self.told.as_ref().is_some_and(|told| told.sent == after && told.kept == object.status) {
            return Ok(());
        }
        let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), names::NAMESPACE, &resource());
        let params = PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"status": after}));
        match timeout(DEADLINE, api.patch_status(names::OBJECT, &params, &patch)).await {
            Ok(Ok(written)) => {
                let written = seen(&written);
                self.told = Some(Told { sent: after, kept: written.status.clone() });
                if let Some(object) =
                    self.sight.object.as_mut().filter(|object| object.generation == written.generation)
                {
                    object.status = written.status;
                }
                Ok(())
            }
            // It is gone, and its watch will say so.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
            Ok(Err(problem)) => Err(problem.to_string()),
            Err(_) => Err(format!("no answer within {} s", DEADLINE.as_secs())),
        }
    }
}

fn seen(object: &DynamicObject) -> Object {
    let part = |name: &str| object.data.get(name).cloned().unwrap_or(Value::Null);
    Object { generation: object.metadata.generation.unwrap_or(0), spec: part("spec"), status: part("status") }
}
