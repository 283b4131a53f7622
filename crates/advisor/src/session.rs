//! One reconciliation of a configuration: what to request from the API server next, given what it answered.
//! [`decide`] makes the decisions; a session carries them out. It stores a changed status before it does anything else, over the
//! version from which the status was derived: no edit gets lost, and after a crash the next session continues from the status.

mod confirmation;
mod recording;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, sync::Arc, time::Duration};

use api::{
    VirtPlatformConfig, VirtPlatformPlanRecord, VirtPlatformPlanRecordStatus, resource_version,
    virt_platform_config::{ApprovalMode, Phase, Profile as ProfileName, VirtPlatformConfigStatus},
};
use k8s_openapi::jiff::Timestamp;

use crate::{
    Facts, Plan, PlannedItem, Profile,
    machine::{self, Intervals, NotWritten, Observed, PlanFailure, Written, decide},
    record::Summary,
    writing::{self, Lock, Writing},
};
use confirmation::Confirmation;
pub use confirmation::RoundTrips;
use recording::Recording;

/// No session needs more decisions than this; more would be an endless loop.
const MAX_DECISIONS: usize = 64;

/// What is the same for all sessions of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    pub profile: &'static dyn Profile,
    /// The version of this operator.
    pub version: &'a str,
    /// The number of this leader, if leaders are elected.
    pub epoch: Option<i64>,
    pub intervals: Intervals,
    /// What approves a plan where the spec does not say it.
    pub approval_mode: ApprovalMode,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    StatusUpdated(Box<VirtPlatformConfig>),
    /// The configuration has another version than the one to replace; or the answer was lost, and the update may have succeeded.
    StatusNotUpdated,
    Config(Option<Box<VirtPlatformConfig>>),
    Facts(Facts),
    Plan(Box<Result<Plan, PlanFailure>>),
    Target(writing::Input),
    Record(RecordInput),
}

/// The answer to a request about records.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordInput {
    Created,
    /// A record of this name exists already.
    Exists(Box<VirtPlatformPlanRecord>),
    /// The API server does not take the record, and why.
    Refused(String),
    /// All records of the profile.
    Listed(Vec<Summary>),
    /// The record is finished, or does not exist any more.
    Closed,
    /// It is closed later.
    NotClosed,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Replace the status of the configuration, over the version that it carries.
    UpdateStatus(Box<VirtPlatformConfig>),
    /// Read the configuration. If leaders are elected, make sure that this operator still leads.
    ReadConfig,
    /// Fetch the facts that the profile wants.
    FetchFacts,
    /// Make and preview a plan from these facts, or else from what the cluster says now.
    MakePlan {
        facts: Option<Facts>,
    },
    /// Send this to the target of the item.
    WriteTarget {
        planned: Arc<PlannedItem>,
        request: writing::Request,
    },
    /// Create the record of the plan. Nothing of the plan is written before that.
    CreateRecord(Box<VirtPlatformPlanRecord>),
    ListRecords {
        profile: ProfileName,
    },
    /// Set the status of a record, if it is not finished.
    CloseRecord {
        name: String,
        status: Box<VirtPlatformPlanRecordStatus>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Nothing is left to do until something changes, or until this much time has passed.
    Settled { requeue_after: Option<Duration> },
    /// Try again with backoff. The text says why.
    Retry(&'static str),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Send(Request),
    Done(Outcome),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    config: Option<Box<VirtPlatformConfig>>,
    last_result: LastResult,
    /// Whether the API server itself has confirmed this version of the configuration. A watch may deliver an old one, so nothing is
    /// written before that.
    is_confirmed: bool,
    /// What to do when the status is updated.
    after_update: Option<machine::Step>,
    writing: Option<Box<Writing>>,
    /// The write that is sent when the configuration is confirmed again.
    postponed: Option<(Arc<PlannedItem>, writing::Request)>,
    confirmation: Confirmation,
    recording: Recording,
    decisions: usize,
}

/// The result of the last request that a decision asked for; [`machine::Input`] borrows from it.
#[derive(Debug, Clone, PartialEq)]
enum LastResult {
    None,
    Facts(Facts),
    Plan(Box<Result<Plan, PlanFailure>>),
    Write { item: String, result: Box<Result<Written, NotWritten>>, plan: Box<Plan> },
}

impl LastResult {
    fn as_input(&self) -> machine::Input<'_> {
        match self {
            LastResult::None => machine::Input::None,
            LastResult::Facts(facts) => machine::Input::Facts(facts),
            LastResult::Plan(result) => machine::Input::Plan(result.as_ref().as_ref()),
            LastResult::Write { item, result, plan } => machine::Input::Write { item, result, plan },
        }
    }

    fn plan(&self) -> Option<&Plan> {
        match self {
            LastResult::Plan(result) => result.as_ref().as_ref().ok(),
            LastResult::Write { plan, .. } => Some(plan),
            LastResult::None | LastResult::Facts(_) => None,
        }
    }

    fn into_plan(self) -> Option<Box<Plan>> {
        match self {
            LastResult::Plan(result) => result.ok().map(Box::new),
            LastResult::Write { plan, .. } => Some(plan),
            LastResult::None | LastResult::Facts(_) => None,
        }
    }
}

impl Session {
    /// `config` is the newest version that is known, and `closed_record` the record that an earlier session saw finished.
    pub fn new(config: VirtPlatformConfig, closed_record: Option<String>) -> Self {
        Session {
            config: Some(Box::new(config)),
            last_result: LastResult::None,
            is_confirmed: false,
            after_update: None,
            writing: None,
            postponed: None,
            confirmation: Confirmation::default(),
            recording: Recording::new(closed_record),
            decisions: 0,
        }
    }

    /// The newest version of the configuration that is known. None when it is deleted.
    pub fn config(&self) -> Option<&VirtPlatformConfig> {
        self.config.as_deref()
    }

    /// Whether the next request after this update is a plan from new facts. Then the plan may be started before the update is done.
    pub fn makes_plan_next(&self, updated: &VirtPlatformConfig) -> bool {
        let phase = updated.status.as_ref().and_then(|status| status.phase);
        matches!(phase, Some(Phase::Pending | Phase::Drafting)) && matches!(self.last_result, LastResult::None)
    }

    /// The last record that is known to be finished.
    pub fn closed_record(&self) -> Option<&str> {
        self.recording.closed()
    }

    pub fn start(&mut self, context: &Context<'_>, now: Timestamp) -> Step {
        self.close_record(now).unwrap_or_else(|| self.decide(context, now))
    }

    pub fn next(&mut self, context: &Context<'_>, now: Timestamp, input: Input) -> Step {
        match input {
            Input::StatusUpdated(config) => {
                self.config = Some(config);
                self.is_confirmed = true;
                return self.close_record(now).unwrap_or_else(|| self.resume(context, now));
            }
            // Read it again: the stored status decides.
            Input::StatusNotUpdated => {
                self.reset();
                return Step::Send(Request::ReadConfig);
            }
            Input::Config(config) => {
                // The watch has delivered the newer version already and will not deliver it again.
                if is_older(config.as_deref(), self.config()) {
                    let why = "the API server answered with an old version of the configuration";
                    return Step::Done(Outcome::Retry(why));
                }
                let version = |config: &VirtPlatformConfig| {
                    (config.metadata.uid.clone(), config.metadata.resource_version.clone())
                };
                if config.as_deref().map(version) != self.config().map(version) {
                    self.reset();
                }
                self.config = config;
                self.is_confirmed = true;
            }
            Input::Facts(facts) => self.last_result = LastResult::Facts(facts),
            Input::Plan(result) => self.last_result = LastResult::Plan(result),
            Input::Target(input) => {
                let Some(mut writing) = self.writing.take() else { return self.decide(context, now) };
                let step = writing.next(input);
                return self.write(context, now, writing, step);
            }
            Input::Record(input) => return self.next_of_record(context, now, input),
        }
        self.decide(context, now)
    }

    /// Continues after an update of the status.
    fn resume(&mut self, context: &Context<'_>, now: Timestamp) -> Step {
        match self.after_update.take() {
            Some(step) => self.perform(context, now, step),
            None => self.decide(context, now),
        }
    }

    fn reset(&mut self) {
        self.last_result = LastResult::None;
        self.after_update = None;
        self.writing = None;
        self.postponed = None;
    }

    fn decide(&mut self, context: &Context<'_>, now: Timestamp) -> Step {
        self.decisions += 1;
        if self.decisions > MAX_DECISIONS {
            return Step::Done(Outcome::Retry("it did not settle after many steps; this is an error in the operator"));
        }
        let Some(config) = &self.config else { return Step::Done(Outcome::Settled { requeue_after: None }) };
        let empty = VirtPlatformConfigStatus::default();
        let status = config.status.as_ref().unwrap_or(&empty);
        let observed = Observed {
            spec: &config.spec,
            generation: config.metadata.generation.unwrap_or_default(),
            status,
            profile: context.profile,
            version: context.version,
            epoch: context.epoch,
            now,
            intervals: context.intervals,
            approval_mode: context.approval_mode,
        };
        let decision = decide(&observed, &self.last_result.as_input());
        if decision.status == *status {
            return self.perform(context, now, decision.step);
        }
        if let Some(step) = self.close_forgotten_record(&decision.status, now) {
            return step;
        }
        let mut new = config.clone();
        new.metadata.managed_fields = None;
        new.status = Some(decision.status);
        self.after_update = Some(decision.step);
        Step::Send(Request::UpdateStatus(new))
    }

    fn perform(&mut self, context: &Context<'_>, now: Timestamp, step: machine::Step) -> Step {
        if matches!(
            step,
            machine::Step::Done(_) | machine::Step::Send(machine::Request::FetchFacts | machine::Request::MakePlan)
        ) {
            self.postponed = None;
        }
        match step {
            machine::Step::DecideAgain => self.decide(context, now),
            machine::Step::Done(machine::Outcome { requeue_after }) => {
                let requeue_after = self.until_record_is_closed(context, requeue_after);
                Step::Done(Outcome::Settled { requeue_after })
            }
            machine::Step::Send(machine::Request::FetchFacts) => Step::Send(Request::FetchFacts),
            machine::Step::Send(machine::Request::MakePlan) => {
                let last = std::mem::replace(&mut self.last_result, LastResult::None);
                let facts = if let LastResult::Facts(facts) = last { Some(facts) } else { None };
                Step::Send(Request::MakePlan { facts })
            }
            machine::Step::Send(machine::Request::WriteItem { .. }) if !self.is_confirmed => {
                Step::Send(Request::ReadConfig)
            }
            machine::Step::Send(machine::Request::WriteItem { item }) => {
                if let Some(step) = self.take_postponed(&item) {
                    return step;
                }
                let planned = self.last_result.plan().and_then(|plan| {
                    let planned = plan.items.iter().find(|planned| planned.item.name == item)?;
                    Some((planned.clone(), plan.facts.target(&planned.item.target_ref).map(|live| live.cloned())))
                });
                let (Some((planned, live)), Some(config)) = (planned, &self.config) else {
                    self.reset();
                    return Step::Send(Request::ReadConfig);
                };
                if !self.recording.is_created(config) {
                    return self.create_record(context, now, item);
                }
                let lock = if config.spec.bypass_optimistic_lock { Lock::Bypass } else { Lock::Compare };
                let mut writing = Box::new(Writing::new(planned, lock));
                let step = writing.start(live);
                self.write(context, now, writing, step)
            }
        }
    }

    fn write(&mut self, context: &Context<'_>, now: Timestamp, writing: Box<Writing>, step: writing::Step) -> Step {
        let result = match step {
            writing::Step::Done(writing::Outcome::Finished(result)) => result,
            writing::Step::Done(writing::Outcome::Retry) => {
                return Step::Done(Outcome::Retry("the target changed again and again"));
            }
            writing::Step::Send(request) => {
                let planned = writing.planned().clone();
                self.writing = Some(writing);
                return Step::Send(Request::WriteTarget { planned, request });
            }
        };
        let item = writing.planned().item.name.clone();
        self.finish_write(context, now, item, result)
    }

    fn finish_write(
        &mut self,
        context: &Context<'_>,
        now: Timestamp,
        item: String,
        result: Result<Written, NotWritten>,
    ) -> Step {
        if let Some(plan) = std::mem::replace(&mut self.last_result, LastResult::None).into_plan() {
            self.last_result = LastResult::Write { item, result: Box::new(result), plan };
        }
        self.decide(context, now)
    }
}

/// Whether `config` is an earlier version of the known one, or an earlier object of the same name.
fn is_older(config: Option<&VirtPlatformConfig>, known: Option<&VirtPlatformConfig>) -> bool {
    let version = |config: Option<&VirtPlatformConfig>| config?.metadata.resource_version.clone();
    let versions = version(config).zip(version(known));
    versions.is_some_and(|(new, known)| resource_version::compare(&new, &known) == Some(Ordering::Less))
}
