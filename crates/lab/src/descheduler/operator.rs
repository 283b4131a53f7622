//! The loop of the stand-in: hear what is new, decide whether a descheduler shall run, see to it, tell.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::{info, warn};

use super::{
    Policy, PolicyError, PolicySource, Settings, State, names,
    operand::Operand,
    process::{Descheduler, Home},
    sight::{self, News, Object, Sight},
    status::status,
    verdict::{Verdict, verdict},
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
    sight: Sight,
    operand: Operand,
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
        let is_watching = settings.policy_source == PolicySource::KubeDescheduler;
        Operator {
            _watches: if is_watching { sight::watch(&client, &send) } else { JoinSet::new() },
            operand: Operand::new(&client),
            client,
            settings,
            home,
            state,
            stop,
            psi,
            news,
            sight: Sight::default(),
            current: None,
            failures: 0,
            not_before: None,
            told: None,
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "descheduler stand-in: started");
        let is_watching = self.settings.policy_source == PolicySource::KubeDescheduler;
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
        self.sight.hear(news);
        let is_acting = self.sight.is_complete();
        self.state.send_if_modified(|state| std::mem::replace(&mut state.is_acting, is_acting) != is_acting);
    }

    /// Sees to it that what should run runs. Returns how long nothing will be to do, unless something happens.
    async fn round(&mut self) -> Duration {
        if let PolicySource::Fixed(policy) = &self.settings.policy_source {
            let policy = policy.clone();
            self.ensure(policy).await;
            return self.pause();
        }
        if !self.sight.is_complete() {
            return IDLE;
        }
        let verdict = verdict(&self.sight, &self.settings);
        self.note(verdict.refusal());
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
                warn!(target: "lab", "descheduler stand-in: telling of the KubeDescheduler: {problem}");
                self.pause().min(TELL_AGAIN)
            }
        }
    }

    /// Logs a refusal when it is new. Of those that leave everything as it is, the real operator tells nowhere else.
    fn note(&self, refusal: Option<&PolicyError>) {
        let refused = refusal.map(ToString::to_string);
        let is_new = self.state.send_if_modified(|state| {
            let is_new = state.refused != refused;
            state.refused.clone_from(&refused);
            is_new
        });
        if let Some(refused) = refused.filter(|_| is_new) {
            warn!(target: "lab", "descheduler stand-in: the KubeDescheduler is refused: {refused}");
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

    /// Shows in the cluster what the real operator would.
    async fn tell(&mut self, verdict: &Verdict) -> Result<(), String> {
        let Some(object) = &self.sight.object else {
            self.operand.forget();
            return Ok(());
        };
        match verdict {
            Verdict::Run(policy) => self.operand.apply(object, policy).await?,
            Verdict::Stop(_) => self.operand.scale_down().await?,
            Verdict::Keep(_) => {}
        }
        self.operand.tell(self.is_ready()).await?;
        match verdict {
            Verdict::Keep(_) => Ok(()),
            Verdict::Run(_) | Verdict::Stop(_) => self.tell_status(verdict.refusal()).await,
        }
    }

    async fn tell_status(&mut self, refusal: Option<&PolicyError>) -> Result<(), String> {
        let Some(object) = &self.sight.object else { return Ok(()) };
        let state = self.state.borrow().clone();
        let after = status(&object.status, object.generation, refusal, &state, Timestamp::now());
        let Some(after) = after else { return Ok(()) };
        // Where the definition does not know a field, sending it again would not help.
        if self.told.as_ref().is_some_and(|told| told.sent == after && told.kept == object.status) {
            return Ok(());
        }
        let params = PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"status": after}));
        match timeout(DEADLINE, sight::kube_descheduler_api(&self.client).patch_status(names::OBJECT, &params, &patch))
            .await
        {
            Ok(Ok(written)) => {
                let written = Object::of(&written);
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
