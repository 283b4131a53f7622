//! The loop of the stand-in: take changes, decide whether a descheduler should run, start or stop it, report.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use kube_io::{Backoff, BackoffPolicy, Class, Clock, RequestError, answer_within};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep},
};
use tracing::{info, warn};

use super::{
    DeschedulerSettings, Policy, PolicyError, PolicySource, StandInState,
    decision::{Decision, decide},
    names,
    observed::{self, Object, Observed, WatchedChange},
    operand::Operand,
    process::{Descheduler, Endpoint},
    status::status,
};
use crate::DEADLINE;

const BACKLOG: usize = 256;
/// How long the loop sleeps when nothing is due. Every change ends the sleep.
const IDLE: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a descheduler is checked that is starting, and one that is ready.
const STARTING: Duration = Duration::from_millis(100);
const RUNNING: Duration = Duration::from_millis(500);
const RESTARTS: BackoffPolicy = BackoffPolicy { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// After this time of running, failures are counted anew.
const STABLE: Duration = Duration::from_secs(60);
/// When a report that could not be written is tried again.
const REPORT_AGAIN: Duration = Duration::from_secs(2);

/// A running descheduler, and since when.
#[derive(Debug)]
struct Current {
    descheduler: Descheduler,
    since: Instant,
}

pub(super) struct Controller {
    client: Client,
    settings: DeschedulerSettings,
    endpoint: Endpoint,
    state: watch::Sender<StandInState>,
    stop: watch::Receiver<bool>,
    psi: watch::Receiver<bool>,
    changes: mpsc::Receiver<WatchedChange>,
    _watches: JoinSet<()>,
    observed: Observed,
    operand: Operand,
    current: Option<Current>,
    restarts: Backoff,
    not_before: Option<Instant>,
    reported: Option<Reported>,
}

/// A status that was sent, and the status that the API server stored.
#[derive(Debug, PartialEq)]
struct Reported {
    sent: Value,
    stored: Value,
}

impl Controller {
    pub(super) fn new(
        client: Client,
        settings: DeschedulerSettings,
        endpoint: Endpoint,
        state: watch::Sender<StandInState>,
        stop: watch::Receiver<bool>,
        psi: watch::Receiver<bool>,
    ) -> Controller {
        let (sender, changes) = mpsc::channel(BACKLOG);
        let is_watching = settings.policy_source == PolicySource::KubeDescheduler;
        Controller {
            _watches: if is_watching { observed::watch(&client, &sender) } else { JoinSet::new() },
            operand: Operand::new(&client),
            client,
            settings,
            endpoint,
            state,
            stop,
            psi,
            changes,
            observed: Observed::default(),
            current: None,
            restarts: Backoff::new(RESTARTS, Clock::default()),
            not_before: None,
            reported: None,
        }
    }

    pub(super) async fn run(mut self) {
        info!(target: "lab", "descheduler stand-in: started");
        let is_watching = self.settings.policy_source == PolicySource::KubeDescheduler;
        self.state.send_modify(|state| state.is_acting = !is_watching);
        loop {
            let pause = self.round().await;
            tokio::select! {
                change = self.changes.recv(), if is_watching => match change {
                    Some(change) => self.apply(change),
                    None => break,
                },
                _ = self.stop.changed() => break,
                Ok(()) = self.psi.changed() => self.settings.has_psi = *self.psi.borrow_and_update(),
                () = sleep(pause) => {}
            }
            while let Ok(change) = self.changes.try_recv() {
                self.apply(change);
            }
        }
        self.stop_descheduler().await;
    }

    fn apply(&mut self, change: WatchedChange) {
        self.observed.apply(change);
        let is_acting = self.observed.is_synced();
        self.state.send_if_modified(|state| std::mem::replace(&mut state.is_acting, is_acting) != is_acting);
    }

    /// Starts or stops the descheduler and reports. Returns how long to wait for the next round.
    async fn round(&mut self) -> Duration {
        if let PolicySource::Fixed(policy) = &self.settings.policy_source {
            let policy = policy.clone();
            self.ensure_running(policy).await;
            return self.pause();
        }
        if !self.observed.is_synced() {
            return IDLE;
        }
        let decision = decide(&self.observed, &self.settings);
        self.log_policy_error(decision.policy_error());
        match &decision {
            Decision::Run(policy) => self.ensure_running(policy.clone()).await,
            Decision::Stop(_) => {
                self.stop_descheduler().await;
                self.reset_backoff();
            }
            Decision::Keep(_) => {
                if let Some(policy) = self.policy() {
                    self.ensure_running(policy).await;
                }
            }
        }
        match self.report(&decision).await {
            Ok(()) => self.pause(),
            Err(error) => {
                warn!(target: "lab", "descheduler stand-in: telling of the KubeDescheduler: {error}");
                self.pause().min(REPORT_AGAIN)
            }
        }
    }

    /// Logs a policy error when it is new. The real operator reports some of them nowhere else.
    fn log_policy_error(&self, error: Option<&PolicyError>) {
        let error = error.map(ToString::to_string);
        let is_new = self.state.send_if_modified(|state| {
            let is_new = state.policy_error != error;
            state.policy_error.clone_from(&error);
            is_new
        });
        if let Some(error) = error.filter(|_| is_new) {
            warn!(target: "lab", "descheduler stand-in: the KubeDescheduler is refused: {error}");
        }
    }

    /// The policy of the last start.
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

    async fn ensure_running(&mut self, policy: Policy) {
        if self.policy().as_ref() != Some(&policy) {
            if self.current.is_some() {
                info!(target: "lab", "descheduler stand-in: the policy has changed, the descheduler is restarted");
            }
            self.stop_descheduler().await;
            self.reset_backoff();
            self.state.send_modify(|state| state.policy = Some(policy.clone()));
        }
        if let Some(current) = &self.current
            && let Some(how) = current.descheduler.exit_status()
        {
            let problem = format!("the descheduler ended ({how}): {}", current.descheduler.last_error());
            if current.since.elapsed() > STABLE {
                self.reset_backoff();
            }
            self.fail(problem);
        }
        if self.current.is_none() && self.not_before.is_none_or(|until| until <= Instant::now()) {
            match self.start_descheduler(&policy).await {
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
        if self.current.is_some() && !self.is_ready() && self.endpoint.client.get("/healthz").await.is_ok() {
            self.state.send_modify(|state| {
                state.is_ready = true;
                state.problem = None;
            });
        }
    }

    async fn start_descheduler(&self, policy: &Policy) -> Result<Descheduler, String> {
        if let Some((namespace, name)) = policy.token_secret() {
            self.create_token(&namespace, &name).await.map_err(|error| error.to_string())?;
        }
        Descheduler::start(&self.endpoint, &self.settings, policy).map_err(|problem| problem.to_string())
    }

    /// Creates the Secret with the token of the descheduler, unless it exists. The lab's Prometheus accepts any token.
    async fn create_token(&self, namespace: &str, name: &str) -> Result<(), RequestError> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let secret: Secret = Secret {
            metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
            string_data: Some([(names::TOKEN_KEY.to_owned(), "any".to_owned())].into()),
            ..Secret::default()
        };
        let params = PostParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let doing = format!("creating Secret {namespace}/{name} for the descheduler");
        match answer_within(DEADLINE, doing, secrets.create(&params, &secret)).await {
            Ok(_) => Ok(()),
            Err(error) if error.class == Class::Conflict => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn fail(&mut self, problem: String) {
        warn!(target: "lab", "descheduler stand-in: {problem}");
        self.current = None;
        self.not_before = Some(Instant::now() + self.restarts.failed());
        self.state.send_modify(|state| {
            state.pid = None;
            state.is_ready = false;
            state.problem = Some(problem);
        });
    }

    fn reset_backoff(&mut self) {
        self.restarts.reset();
        self.not_before = None;
        self.state.send_if_modified(|state| state.problem.take().is_some());
    }

    async fn stop_descheduler(&mut self) {
        if let Some(current) = self.current.take() {
            info!(target: "lab", "descheduler stand-in: ending the descheduler (pid {})", current.descheduler.pid());
            current.descheduler.stop().await;
        }
        let stopped = StandInState { pid: None, is_ready: false, policy: None, ..self.state.borrow().clone() };
        self.state.send_if_modified(|state| {
            let is_new = *state != stopped;
            *state = stopped;
            is_new
        });
    }

    /// Writes the objects and the status that the real operator would write.
    async fn report(&mut self, decision: &Decision) -> Result<(), RequestError> {
        let Some(object) = &self.observed.object else {
            self.operand.forget();
            return Ok(());
        };
        match decision {
            Decision::Run(policy) => self.operand.apply(object, policy).await?,
            Decision::Stop(_) => self.operand.scale_down().await?,
            Decision::Keep(_) => {}
        }
        self.operand.write_status(self.is_ready()).await?;
        match decision {
            Decision::Keep(_) => Ok(()),
            Decision::Run(_) | Decision::Stop(_) => self.write_status(decision.policy_error()).await,
        }
    }

    async fn write_status(&mut self, policy_error: Option<&PolicyError>) -> Result<(), RequestError> {
        let Some(object) = &self.observed.object else { return Ok(()) };
        let state = self.state.borrow().clone();
        let status = status(&object.status, object.generation, policy_error, &state, Timestamp::now());
        let Some(status) = status else { return Ok(()) };
        // The API server drops fields that the definition does not have. Sending them again would not help.
        if self.reported.as_ref().is_some_and(|last| last.sent == status && last.stored == object.status) {
            return Ok(());
        }
        let params = PatchParams { field_manager: Some(names::FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"status": status}));
        let objects = observed::kube_descheduler_api(&self.client);
        let request = objects.patch_status(names::OBJECT, &params, &patch);
        match answer_within(DEADLINE, "writing the status".to_owned(), request).await {
            Ok(written) => {
                let written = Object::of(&written);
                self.reported = Some(Reported { sent: status, stored: written.status.clone() });
                if let Some(object) =
                    self.observed.object.as_mut().filter(|object| object.generation == written.generation)
                {
                    object.status = written.status;
                }
                Ok(())
            }
            // The object was deleted, and the watch will report that.
            Err(error) if error.class.is_absent() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
