//! The reconciler of one configuration: it waits for changes, and sends what a [`Session`] asks for until that is done.

use std::{sync::Arc, time::Duration};

use advisor::{
    Facts, Plan, PlannedItem, Profile, Query, Refusal,
    machine::{Intervals, PlanFailure},
    record::Ledger,
    restore,
    session::{Context, Input, Outcome, Request, Session, Step},
    writing,
};
use api::{
    VirtPlatformConfig,
    virt_platform_config::{ApprovalMode, Operation, Phase},
};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join},
};
use kube_io::{Backoff, BackoffPolicy};
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, warn};

use crate::{
    ApiServer, Class, Clock, PlanError, RequestError, advertise, configs,
    fetch::fetch,
    known_state::KnownState,
    lease::Leadership,
    make_plan::{MadePlan, make_plan_from},
    plan_ahead::PlanAhead,
    plan_timer::PlanTimer,
    records, refusal,
    reporter::Reporter,
    watches::Watches,
    work_queue::WorkQueue,
    write,
};

/// After so many failures in a row an Event reports them.
const REPORTED_FAILURES: usize = 4;

/// The wait for a kind whose definition has just changed.
const SETTLING_RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Reconciler {
    /// The position of its queue among those of all reconcilers.
    pub(crate) position: usize,
    pub(crate) profile: &'static dyn Profile,
    pub(crate) api_server: ApiServer,
    pub(crate) reporter: Reporter,
    pub(crate) queue: Arc<WorkQueue>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) version: String,
    /// If leaders are elected.
    pub(crate) leadership: Option<Leadership>,
    pub(crate) intervals: Intervals,
    pub(crate) approval_mode: ApprovalMode,
    /// How many records of the profile are kept.
    pub(crate) records_kept: usize,
    /// The records of the profile, as far as they are known.
    pub(crate) ledger: Ledger,
    pub(crate) clock: Clock,
    pub(crate) known: KnownState,
    /// Failures in a row.
    pub(crate) failures: usize,
}

impl Reconciler {
    pub(crate) async fn run(mut self) {
        let mut backoff = Backoff::new(BackoffPolicy::REQUESTS, self.clock.clone());
        let mut due: Option<Instant> = None;
        loop {
            let timer = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Changes first: a reconciliation that is due anyway starts from the newest observations.
                biased;
                () = self.queue.changed() => {
                    let has_changed = self.known.merge(self.queue.take());
                    self.report_forbidden();
                    if !has_changed {
                        continue;
                    }
                }
                () = timer => {
                    if self.failures == 0 {
                        self.known.facts.forget_all();
                    }
                }
            }
            due = match self.reconcile().await {
                Ok(rest) => {
                    backoff.reset();
                    self.failures = 0;
                    rest.map(|rest| Instant::now() + self.wait(rest))
                }
                Err(error) => {
                    let wait = backoff.failed().max(error.retry_after.unwrap_or_default());
                    self.failed(&error, wait);
                    Some(Instant::now() + wait)
                }
            };
            self.watches.subscribe(self.position, &self.known.watched_queries());
        }
    }

    fn name(&self) -> &'static str {
        self.profile.about().name
    }

    /// The wait until the next reconciliation, jittered if it is a regular one, and short while a kind is settling.
    fn wait(&self, rest: Duration) -> Duration {
        if rest == self.intervals.prerequisites && self.known.is_settling() {
            return SETTLING_RETRY.min(rest);
        }
        let is_regular = rest == self.intervals.prerequisites || rest == self.intervals.recheck;
        if is_regular { self.clock.jittered(rest) } else { rest }
    }

    fn failed(&mut self, error: &RequestError, wait: Duration) {
        warn!(config = self.name(), %error, retry_in = ?wait, "could not go on");
        self.failures += 1;
        self.reporter.metrics.failed(error);
        if self.failures == REPORTED_FAILURES
            && let Some(config) = &self.known.config
        {
            self.reporter.failing(config, error);
        }
        // The object went away between the read and this request, so what was read no longer holds.
        if matches!(error.class, Class::KindMissing | Class::NotFound) {
            self.known.facts.forget_all();
        }
    }

    fn report_forbidden(&mut self) {
        let Some(config) = self.known.config.clone() else { return };
        for (query, message) in self.known.take_forbidden() {
            self.reporter.forbidden(&config, &query, &message);
        }
    }

    /// Returns how long to wait for the next reconciliation, if nothing changes before.
    async fn reconcile(&mut self) -> Result<Option<Duration>, RequestError> {
        let about = self.profile.about();
        self.close_abandoned_records().await?;
        let Some(config) = self.known.config.clone() else {
            self.known.facts.forget_all();
            if about.advertised && self.known.is_synced {
                advertise::offer(&self.api_server, about).await?;
            }
            return Ok(None);
        };
        if about.advertised {
            advertise::refresh(&self.api_server, about, &config).await?;
        }
        self.run_session((*config).clone()).await
    }

    /// A configuration that does not exist, or that has no status yet, may have had a predecessor that was deleted while its plan was
    /// being applied. Only then are records looked for.
    async fn close_abandoned_records(&mut self) -> Result<(), RequestError> {
        let config = self.known.config.as_ref();
        let uid = config.and_then(|config| config.metadata.uid.clone());
        let has_status = config.is_some_and(|config| config.status.is_some());
        // Since a configuration was missing, no plan was applied that could have left a record.
        let is_settled = self.known.successor.as_ref().is_some_and(|known| known.is_none() || *known == uid);
        if self.known.is_synced && !has_status && !is_settled {
            records::close_abandoned(&self.api_server, self.name(), uid.as_deref(), self.clock.now()).await?;
        }
        self.known.successor = self.known.is_synced.then_some(uid);
        Ok(())
    }

    async fn run_session(&mut self, config: VirtPlatformConfig) -> Result<Option<Duration>, RequestError> {
        let version = self.version.clone();
        let context = Context {
            profile: self.profile,
            version: &version,
            epoch: self.leadership.as_ref().map(|leadership| leadership.epoch),
            intervals: self.intervals,
            approval_mode: self.approval_mode,
        };
        let round_trips = self.known.round_trips.clone();
        let mut session = Session::new(config, self.known.closed_record.take()).with_round_trips(round_trips);
        let mut step = session.start(&context, self.clock.now());
        let mut ahead: Option<PlanAhead> = None;
        let mut planning = PlanTimer::default();
        let mut unreported: Option<Update> = None;
        loop {
            // The process may have been stopped until now.
            let request = match session.before_sending(step, self.clock.uptime()) {
                Step::Send(request) => request,
                Step::Done(Outcome::Settled { requeue_after }) => return Ok(requeue_after),
                Step::Done(Outcome::Retry(why)) => return Err(self.error(why.to_owned())),
            };
            let input = match request {
                Request::UpdateStatus(new) => {
                    if session.makes_plan_next(&new) && ahead.is_none() {
                        planning.begin();
                        ahead = Some(PlanAhead::start(self.make_plan(Some(&new), None)));
                    }
                    let input = PlanAhead::during(ahead.as_mut(), self.record(session.config(), &new)).await?;
                    if matches!(input, Input::StatusUpdated(_))
                        && let Some(took) = planning.recorded()
                    {
                        self.reporter.metrics.planned(self.name(), took);
                    }
                    unreported = (input == Input::StatusNotUpdated)
                        .then(|| Update { old: session.config().cloned(), new: *new });
                    input
                }
                Request::ReadConfig => {
                    ahead = None;
                    let config = configs::read(&self.api_server, self.name());
                    let (config, ()) = try_join(config, self.confirm_lease()).await?;
                    // The answer to the update was lost, and the update was carried out.
                    if let Some(update) = unreported.take().filter(|update| update.is_stored_in(&config)) {
                        self.reporter.recorded(update.old.as_ref(), &update.new);
                    }
                    Input::Config(Some(Box::new(config)))
                }
                Request::FetchFacts => Input::Facts(self.fetch(session.config()).await?),
                Request::MakePlan { facts } => {
                    planning.begin();
                    let made = match ahead.take().filter(|_| facts.is_none()) {
                        Some(ahead) => ahead.finish().await,
                        None => None,
                    };
                    let made = match made {
                        Some(made) => made,
                        None => self.make_plan(session.config(), facts).await,
                    };
                    planning.made();
                    Input::Plan(Box::new(self.made_plan(made)?))
                }
                Request::WriteTarget { planned, request } => self.write(&planned, request).await?,
                Request::CreateRecord(record) => {
                    let input = records::create(&self.api_server, &record).await?;
                    match input {
                        Input::RecordCreated => self.ledger.created(&record),
                        _ => self.ledger = Ledger::default(),
                    }
                    input
                }
                Request::ListRecords { profile } => Input::Records(records::list(&self.api_server, profile).await?),
                Request::CloseRecord { name, status } => {
                    let input = records::close(&self.api_server, &name, &status).await;
                    if input == Input::RecordClosed {
                        self.ledger.closed(&name, &status);
                        self.delete_expired_records(session.config(), &name).await;
                    }
                    input
                }
            };
            step = session.next(&context, self.clock.now(), input);
            self.known.config = session.config().cloned().map(Arc::new);
            self.known.closed_record = session.closed_record().map(str::to_owned);
            self.known.round_trips = session.round_trips().clone();
        }
    }

    fn error(&self, message: String) -> RequestError {
        RequestError::other(format!("attending to VirtPlatformConfig {}", self.name()), message, Class::Other)
    }

    async fn confirm_lease(&self) -> Result<(), RequestError> {
        match &self.leadership {
            Some(leadership) => leadership.confirm().await,
            None => Ok(()),
        }
    }

    async fn record(&self, old: Option<&VirtPlatformConfig>, new: &VirtPlatformConfig) -> Result<Input, RequestError> {
        match configs::record(&self.api_server, self.name(), new).await {
            Ok(stored) => {
                self.reporter.recorded(old, new);
                Ok(Input::StatusUpdated(Box::new(stored)))
            }
            Err(error) if matches!(error.class, Class::Conflict | Class::Unknown) => Ok(Input::StatusNotUpdated),
            Err(error) if error.class == Class::NotFound => Ok(Input::Config(None)),
            Err(error) => Err(error),
        }
    }

    /// Deletes records beyond the number that is kept. The next plan tries again what goes wrong.
    async fn delete_expired_records(&mut self, config: Option<&VirtPlatformConfig>, newest: &str) {
        let Some(profile) = config.map(|config| config.spec.profile) else { return };
        let (api_server, keep) = (&self.api_server, self.records_kept);
        if let Err(error) = records::delete_expired(api_server, profile, newest, keep, &mut self.ledger).await {
            warn!(config = self.name(), %error, "could not delete old records");
        }
    }

    async fn fetch(&mut self, config: Option<&VirtPlatformConfig>) -> Result<Facts, RequestError> {
        let planner = config.and_then(|config| restore::planner(self.profile, &config.spec).ok());
        let Some(planner) = planner else { return Ok(Facts::default()) };
        let facts = fetch(&self.api_server, planner.as_ref(), self.known.facts.facts().clone()).await?;
        self.known.facts.replace(facts.clone());
        Ok(facts)
    }

    /// Makes a plan from `facts`, or else from what the cluster says now. Only lists that a watch keeps are not read again.
    fn make_plan(&self, config: Option<&VirtPlatformConfig>, facts: Option<Facts>) -> BoxFuture<'static, MadePlan> {
        let (api_server, profile) = (self.api_server.clone(), self.profile);
        let planner =
            config.map(|config| restore::planner(profile, &config.spec)).unwrap_or_else(|| profile.resolve(None));
        let guess = facts.is_none().then(|| self.known.facts.facts().clone());
        let known = facts.unwrap_or_else(|| self.known.current_facts(&self.queue));
        async move {
            match planner {
                Ok(planner) => make_plan_from(&api_server, profile.about(), planner.as_ref(), known, guess).await,
                Err(error) => MadePlan { facts: None, plan: Err(error.into()) },
            }
        }
        .boxed()
    }

    /// Tells a plan, or a lasting reason for having none, from errors that may pass.
    fn made_plan(&mut self, made: MadePlan) -> Result<Result<Plan, PlanFailure>, RequestError> {
        if let Some(facts) = made.facts {
            self.known.facts.replace(facts);
        }
        match made.plan {
            Ok(plan) => match forbidden(&plan).filter(|_| self.doubts_refusals()) {
                Some(refusal) => Err(self.error(refusal)),
                None => Ok(Ok(plan)),
            },
            Err(PlanError::MissingPrerequisites(missing)) => Ok(Err(PlanFailure::Missing(missing))),
            Err(PlanError::InvalidOptions(error)) => Ok(Err(error.into())),
            Err(PlanError::Request(error)) => self.plan_failure(error).map(Err),
        }
    }

    /// An API server that is just starting does not know any roles yet, and refuses everything for a moment.
    fn doubts_refusals(&self) -> bool {
        let status = self.known.config.as_ref().and_then(|config| config.status.as_ref());
        let is_waiting = status.and_then(|status| status.phase) == Some(Phase::PrerequisiteFailed);
        !is_waiting && self.failures < REPORTED_FAILURES - 1
    }

    fn plan_failure(&self, error: RequestError) -> Result<PlanFailure, RequestError> {
        let lacks_right = error.class == Class::Forbidden;
        if lacks_right && self.doubts_refusals() {
            return Err(error);
        }
        let why = refusal::lasting(error)?;
        Ok(if lacks_right { PlanFailure::Missing(why) } else { PlanFailure::Impossible(why) })
    }

    async fn write(&mut self, planned: &PlannedItem, request: writing::Request) -> Result<Input, RequestError> {
        debug!(config = self.name(), item = planned.item.name, target = %planned.target, ?request, "writing");
        let query = Query::Object(planned.target.clone());
        self.known.facts.forget(&query);
        let input = write::send(&self.api_server, planned, request).await?;
        if let writing::Input::Object(object) = &input
            && planned.item.operation == Operation::Apply
        {
            self.known.facts.insert(query, planned.version, (**object).clone());
        }
        Ok(Input::Target(input))
    }
}

/// An update of the status of which nobody knows whether it was carried out.
struct Update {
    old: Option<VirtPlatformConfig>,
    new: VirtPlatformConfig,
}

impl Update {
    /// Whether the stored configuration has the status of this update, and not the one from before.
    fn is_stored_in(&self, stored: &VirtPlatformConfig) -> bool {
        let version = |config: &VirtPlatformConfig| config.metadata.resource_version.clone();
        stored.metadata.uid == self.new.metadata.uid
            && version(stored) != version(&self.new)
            // Times are stored to the second.
            && json!(stored.status) == json!(self.new.status)
    }
}

/// The first change of a plan that the operator has no right to make.
fn forbidden(plan: &Plan) -> Option<String> {
    plan.refusals().find(|refusal| matches!(refusal, Refusal::Forbidden { .. })).map(ToString::to_string)
}
