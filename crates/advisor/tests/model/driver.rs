//! Runs the operator's own [`Session`] against the [`ModelCluster`], request by request, as the reconciler of the operator does.
//! It decides nothing itself.

use std::{sync::Arc, time::Duration};

use advisor::{
    Facts, Plan, field_manager,
    machine::{Intervals, PlanFailure},
    session::{Context, Input, Outcome, RecordInput, Request, Session, Step},
    writing,
};
use api::{VirtPlatformConfig, virt_platform_config::ApprovalMode};

use crate::{
    cluster::{ModelCluster, StaleRead, contents},
    hashed::{Hashed, digest},
    mutation::Mutation,
    profile::{Part, ToyProfile},
    records::ModelRecord,
    requests::{Scope, is_effect, is_read, is_write},
    scenario::day,
    system::{KeptPlan, PlanBasis, RunningSession, System},
    target::Target,
};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Delivery {
    Answered,
    /// Carried out, but the answer is lost.
    AnswerLost,
    /// Refused for good.
    Refused,
    /// Answered from an old state.
    Stale(StaleRead),
}

/// What a request has changed in the cluster.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ClusterChange {
    None,
    StatusUpdated,
    TargetWritten { at: usize, request: writing::Request },
    RecordChanged,
}

/// The session after a request, and what the request has changed.
#[derive(Debug)]
pub(crate) struct StepResult {
    pub(crate) run: Arc<RunningSession>,
    config: Option<Hashed<VirtPlatformConfig>>,
    target: Option<(usize, Target)>,
    record: Option<ModelRecord>,
    kept_plan: Option<KeptPlan>,
    /// The session ends here because the answer is lost.
    is_stopped: bool,
    pub(crate) change: ClusterChange,
}

/// Runs sessions of one profile, with a deliberate mistake or without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Driver {
    pub(crate) profile: &'static ToyProfile,
    pub(crate) approval_mode: ApprovalMode,
    pub(crate) mutation: Option<Mutation>,
}

impl Driver {
    fn context(&self) -> Context<'static> {
        Context {
            profile: self.profile,
            version: "v1",
            epoch: None,
            // Time passes only in days.
            intervals: Intervals { settle: Duration::ZERO, ..Intervals::default() },
            approval_mode: self.approval_mode,
        }
    }

    fn view(&self, config: &VirtPlatformConfig) -> VirtPlatformConfig {
        let config = config.clone();
        match self.mutation {
            Some(mutation) => mutation.view(config),
            None => config,
        }
    }

    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub(crate) fn scope(&self, run: &RunningSession) -> Scope {
        match run.request() {
            None => Scope::Nothing,
            Some(Request::UpdateStatus(_) | Request::ReadConfig) => Scope::Config,
            Some(Request::FetchFacts | Request::MakePlan { facts: None }) => Scope::Everything,
            Some(Request::MakePlan { facts: Some(_) }) => Scope::Targets,
            Some(Request::WriteTarget { .. }) => run.target(self.profile).map_or(Scope::Nothing, Scope::Target),
            Some(Request::CreateRecord(_) | Request::ListRecords { .. } | Request::CloseRecord { .. }) => Scope::Record,
        }
    }

    /// A digest of everything that the answer to the session's request depends on.
    pub(crate) fn dependencies(&self, system: &System, run: &RunningSession) -> u64 {
        match self.scope(run) {
            Scope::Nothing => 0,
            Scope::Config => digest(&system.cluster.config),
            Scope::Everything => system.cluster.digest_of_facts(),
            Scope::Targets => digest((&system.cluster.targets, &system.kept_plan)),
            Scope::Target(at) => digest(&system.cluster.targets[at]),
            Scope::Record => digest(&system.cluster.records),
        }
    }

    /// Starts a session with the configuration that the watch has delivered.
    pub(crate) fn start_session(&self, system: &System) -> Arc<RunningSession> {
        let mut session = Session::new(self.view(&system.watched), None);
        let step = session.start(&self.context(), day(system.day));
        RunningSession::new(session, step, system).identified()
    }

    /// Stops the session. The next one starts with what this one knew or, if the process is `forgetful`, with what this one started
    /// with.
    pub(crate) fn stop_session(&self, system: &System, is_forgetful: bool) -> System {
        let mut system = system.clone();
        if let Some(run) = system.run.take() {
            let started_with = system.started_with.take().filter(|_| is_forgetful);
            system.watched = started_with.unwrap_or_else(|| run.known.clone());
        }
        system.has_pending_change = true;
        system.is_undisturbed = false;
        system.cluster.renumber_versions();
        system
    }

    /// The result of the session's request. None if the request cannot be delivered like this.
    pub(crate) fn perform(&self, system: &System, run: &RunningSession, delivery: Delivery) -> Option<StepResult> {
        let request = run.request()?;
        let is_possible = match delivery {
            Delivery::Answered => true,
            Delivery::AnswerLost => is_effect(system, request),
            Delivery::Refused => is_write(request),
            Delivery::Stale(_) => is_read(request),
        };
        if !is_possible {
            return None;
        }
        let at = run.target(self.profile);
        let mut run = run.clone();
        let mut cluster = match delivery {
            Delivery::Stale(read) => system.cluster.with_stale_read(read)?,
            _ => system.cluster.clone(),
        };
        let (mut kept_plan, mut record) = (None, None);
        let (mut config, mut target, mut is_stopped, mut change) = (None, None, false, ClusterChange::None);
        let Step::Send(request) = run.take_step() else { return None };
        let input = match request {
            Request::UpdateStatus(new) => {
                let before = cluster.config.clone();
                let input = self.update_status(&mut cluster, &mut run, &new, delivery);
                if before != cluster.config {
                    change = ClusterChange::StatusUpdated;
                    config = Some(cluster.config.clone());
                }
                if run.known != cluster.config {
                    // Because of a mistake, the session knows something else than what is stored.
                    run.last_result = digest((run.last_result, contents(&new)));
                }
                if input == Input::StatusNotUpdated {
                    run.is_outdated = true;
                    run.reset();
                }
                Some(input)
            }
            Request::ReadConfig if self.has(Mutation::NotConfirmed) && !run.is_outdated => {
                run.last_result = digest(run.last_result);
                Some(Input::Config(run.session.config().cloned().map(Box::new)))
            }
            Request::ReadConfig => {
                let version = run.session.config().map(|config| &config.metadata.resource_version);
                if version != Some(&cluster.config.metadata.resource_version) {
                    run.reset();
                }
                run.confirm(&cluster.config);
                Some(Input::Config(Some(Box::new(self.view(&cluster.config)))))
            }
            Request::FetchFacts => {
                run.last_result = digest(("all facts", cluster.digest_of_facts()));
                Some(Input::Facts(self.fetch_facts(&cluster, &mut run)))
            }
            // Fetching and previewing are two steps, and the cluster may change in between.
            Request::MakePlan { facts: None } => {
                run.last_result = digest(("facts", cluster.digest_of_facts()));
                let facts = Some(self.fetch_for_plan(&cluster, &mut run));
                run.step = Step::Send(Request::MakePlan { facts });
                None
            }
            Request::MakePlan { facts: Some(facts) } => match self.make_plan(system, &mut run, &facts) {
                Some(result) => {
                    run.last_result = digest(("plan", run.last_result, &system.kept_plan));
                    let kept = result.as_ref().ok().filter(|_| self.has(Mutation::PlansOnce));
                    kept_plan = kept.map(|plan| KeptPlan(Arc::new(plan.clone())));
                    Some(Input::Plan(Box::new(result)))
                }
                None => {
                    run.last_result = 0;
                    run.step = Step::Send(Request::MakePlan { facts: None });
                    None
                }
            },
            Request::WriteTarget { planned, request } => {
                let at = at?;
                let manager = field_manager::of_item(&planned.item);
                let input = self.write_target(&mut cluster, (at, manager), request, delivery, &mut change);
                if change != ClusterChange::None {
                    target = Some((at, cluster.targets[at].clone()));
                }
                is_stopped = delivery == Delivery::AnswerLost && !self.has(Mutation::SilenceIsFailure);
                if matches!(input, writing::Input::Object(_) | writing::Input::Absent) {
                    run.see(at, &cluster.targets[at]);
                }
                run.last_result = digest((run.last_result, std::mem::discriminant(&input), &cluster.targets[at]));
                (!is_stopped).then_some(Input::Target(input))
            }
            Request::CreateRecord(_) if self.has(Mutation::RecordSkipped) => {
                run.is_recorded = true;
                Some(Input::Record(RecordInput::Created))
            }
            Request::CreateRecord(new) => {
                let name = new.metadata.name.clone().unwrap();
                let input = cluster.create_record(*new);
                if input == RecordInput::Created {
                    change = ClusterChange::RecordChanged;
                    record = cluster.record(&name).cloned();
                }
                is_stopped = delivery == Delivery::AnswerLost;
                run.is_recorded = true;
                (!is_stopped).then_some(Input::Record(input))
            }
            Request::ListRecords { .. } => {
                Some(Input::Record(RecordInput::Listed(cluster.records.iter().map(ModelRecord::summary).collect())))
            }
            Request::CloseRecord { name, .. } => {
                let before = cluster.record(&name).cloned();
                cluster.close_record(&name);
                if cluster.record(&name) != before.as_ref() {
                    change = ClusterChange::RecordChanged;
                    record = cluster.record(&name).cloned();
                }
                run.is_closing_done = true;
                Some(match delivery {
                    Delivery::AnswerLost => Input::Record(RecordInput::NotClosed),
                    _ => Input::Record(RecordInput::Closed),
                })
            }
        };
        if let Some(input) = input {
            run.step = run.session.next(&self.context(), day(system.day), input);
            run.decided_on = system.day;
        }
        Some(StepResult { run: run.identified(), config, target, record, kept_plan, is_stopped, change })
    }

    /// The system after a step.
    pub(crate) fn after(&self, system: &System, result: &StepResult, delivery: Delivery) -> System {
        let mut system = system.clone();
        if let Some(config) = &result.config {
            system.cluster.put_config(config.clone());
        }
        if let Some((at, target)) = &result.target {
            system.cluster.targets[*at] = target.clone();
        }
        if let Some(record) = &result.record {
            system.cluster.put_record(record.clone());
        }
        system.kept_plan = system.kept_plan.or_else(|| result.kept_plan.clone());
        system.run = Some(result.run.clone());
        // A refusal or an old answer does not happen again to the next session; of an old answer it will be notified.
        system.is_undisturbed &= matches!(delivery, Delivery::Answered | Delivery::AnswerLost);
        system.has_pending_change |= matches!(delivery, Delivery::Stale(_));
        if result.is_stopped { self.stop_session(&system, false) } else { self.end_if_done(system) }
    }

    /// Ends the session if it is done.
    pub(crate) fn end_if_done(&self, mut system: System) -> System {
        match system.run.as_ref().map(|run| &run.step) {
            Some(Step::Done(Outcome::Settled { .. })) => {
                if let Some(run) = system.run.take() {
                    system.watched = run.known.clone();
                }
                system.has_pending_change |= system.watched != system.cluster.config;
                system.started_with = None;
                system.is_undisturbed = false;
                system.cluster.renumber_versions();
                system
            }
            Some(Step::Done(Outcome::Retry(_))) => self.stop_session(&system, false),
            Some(Step::Send(_)) | None => system,
        }
    }

    fn update_status(
        &self,
        cluster: &mut ModelCluster,
        run: &mut RunningSession,
        new: &VirtPlatformConfig,
        delivery: Delivery,
    ) -> Input {
        let mut new = new.clone();
        if let (Some(mutation), Some(status)) = (self.mutation, &mut new.status) {
            mutation.alter_status(status);
        }
        let over = new.metadata.resource_version.clone();
        if self.mutation.is_some_and(|mutation| mutation.skips_update(run.session.config(), &new)) {
            return Input::StatusUpdated(Box::new(new));
        }
        let over = over.as_deref().filter(|_| !self.has(Mutation::RecordsOverAnything));
        if !cluster.update_status(&new, over) {
            return match self.has(Mutation::RecordConflictIsSuccess) {
                true => Input::StatusUpdated(Box::new(new)),
                false => Input::StatusNotUpdated,
            };
        }
        if delivery == Delivery::AnswerLost {
            return Input::StatusNotUpdated;
        }
        run.confirm(&cluster.config);
        Input::StatusUpdated(Box::new(self.view(&cluster.config)))
    }

    fn make_plan(&self, system: &System, run: &mut RunningSession, facts: &Facts) -> Option<Result<Plan, PlanFailure>> {
        if let Some(KeptPlan(plan)) = &system.kept_plan {
            return Some(Ok((**plan).clone()));
        }
        let spec = &run.session.config()?.spec;
        let plan = system.cluster.make_plan(self.profile, spec, facts.clone())?;
        let held = |part: &Part| part.managed(facts.object(&part.target()));
        let held = Hashed::new(self.profile.parts.iter().map(held).collect());
        run.plan_basis = Some(PlanBasis { held, input: run.fetched_input.unwrap_or_default() });
        Some(plan)
    }

    fn write_target(
        &self,
        cluster: &mut ModelCluster,
        (at, manager): (usize, &str),
        mut request: writing::Request,
        delivery: Delivery,
        change: &mut ClusterChange,
    ) -> writing::Input {
        if delivery == Delivery::Refused {
            return writing::Input::Failed("no".into());
        }
        if let Some(mutation) = self.mutation {
            mutation.alter_request(&mut request);
        }
        let input = cluster.answer(at, manager, &request);
        if request != writing::Request::Read && matches!(input, writing::Input::Object(_)) {
            *change = ClusterChange::TargetWritten { at, request: request.clone() };
        }
        match (input, request) {
            _ if delivery == Delivery::AnswerLost => writing::Input::Failed("no answer".into()),
            (writing::Input::Conflict, writing::Request::Apply(fields)) if self.has(Mutation::ConflictIsSuccess) => {
                writing::Input::Object(Box::new(fields))
            }
            (input, _) => input,
        }
    }
}
