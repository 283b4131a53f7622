//! Carries out the requests of a [`Session`] until it is done.

use std::{sync::Arc, time::Duration};

use advisor::{
    Facts, PlannedItem, Query, machine,
    record::KnownRecords,
    restore,
    session::{Context, Input, Outcome, RecordInput, Request, Session, Step},
    writing,
};
use api::{VirtPlatformConfig, virt_platform_config::Operation};
use futures::future::try_join;
use kube_io::{Class, RequestError};
use serde_json::json;
use tracing::{debug, warn};

use crate::{
    configs,
    fetch::{answer_some, fetch},
    plan_ahead::PlanAhead,
    plan_timer::PlanTimer,
    reconciler::Reconciler,
    records, send_write,
};

impl Reconciler {
    /// Returns how long to wait for the next session, if nothing changes before.
    pub(crate) async fn run_session(&mut self, config: VirtPlatformConfig) -> Result<Option<Duration>, RequestError> {
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
                    if matches!(input, Input::StatusUpdated(_)) {
                        self.count_plan(&mut planning);
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
                        self.count_plan(&mut planning);
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
                    let plan = self.made_plan(made)?;
                    planning.ended(plan.is_ok());
                    Input::Plan(Box::new(plan))
                }
                Request::WriteTarget { planned, request } => self.write(&planned, request).await?,
                Request::CreateRecord(record) => {
                    let input = records::create(&self.api_server, &record).await?;
                    match input {
                        RecordInput::Created => self.known_records.created(&record),
                        _ => self.known_records = KnownRecords::default(),
                    }
                    Input::Record(input)
                }
                Request::ListRecords { profile } => {
                    Input::Record(RecordInput::Listed(records::list(&self.api_server, profile).await?))
                }
                Request::CloseRecord { name, status } => {
                    let input = records::close(&self.api_server, &name, &status).await;
                    if input == RecordInput::Closed {
                        self.known_records.closed(&name, &status);
                        self.delete_expired_records(session.config(), &name).await;
                    }
                    Input::Record(input)
                }
            };
            step = session.next(&context, self.clock.now(), input);
            self.known.config = session.config().cloned().map(Arc::new);
            self.known.closed_record = session.closed_record().map(str::to_owned);
            self.known.round_trips = session.round_trips().clone();
        }
    }

    /// A status was recorded: if it holds a new plan, that plan is done.
    fn count_plan(&self, planning: &mut PlanTimer) {
        if let Some(took) = planning.recorded() {
            self.reporter.metrics.planned(self.name(), took);
        }
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
        if let Err(error) = records::delete_expired(api_server, profile, newest, keep, &mut self.known_records).await {
            warn!(config = self.name(), %error, "could not delete old records");
        }
    }

    async fn fetch(&mut self, config: Option<&VirtPlatformConfig>) -> Result<Facts, RequestError> {
        let planner = config.and_then(|config| restore::planner(self.profile, &config.spec).ok());
        let Some(planner) = planner else { return Ok(Facts::default()) };
        let mut facts = fetch(&self.api_server, planner.as_ref(), self.known.facts.facts().clone()).await?;
        let status = config.and_then(|config| config.status.as_ref());
        let of_rollout = status.map(|status| machine::rollout_queries(status, &facts)).unwrap_or_default();
        // Without these answers nothing is concluded. The next session asks for them again.
        if let Some(error) = answer_some(&self.api_server, facts.unanswered(of_rollout), &mut facts).await {
            warn!(config = self.name(), %error, "cannot tell yet what a pool has to render");
        }
        self.known.facts.replace(facts.clone());
        Ok(facts)
    }

    async fn write(&mut self, planned: &PlannedItem, request: writing::Request) -> Result<Input, RequestError> {
        debug!(config = self.name(), item = planned.item.name, target = %planned.target, ?request, "writing");
        let query = Query::Object(planned.target.clone());
        self.known.facts.forget(&query);
        let input = send_write::send(&self.api_server, planned, request).await?;
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
