//! The state of the system under test: the cluster, and the operator with its running session.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use advisor::{
    Plan,
    session::{Outcome, Request, Session, Step},
};
use api::VirtPlatformConfig;
use serde_json::Value;

use crate::{
    cluster::{ModelCluster, contents},
    hashed::{Hashed, digest},
    profile::ToyProfile,
    requests::is_write,
    target::Target,
};

/// How long a process is stopped.
const STOP: Duration = Duration::from_secs(10);

/// The cluster and the operator, without what the checker remembers about them.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct System {
    pub(crate) cluster: ModelCluster,
    pub(crate) run: Option<Arc<RunningSession>>,
    /// The configuration as the watch has delivered it. May be old.
    pub(crate) watched: Hashed<VirtPlatformConfig>,
    /// The configuration that the session started with. After a crash, the watch may deliver it again.
    pub(crate) started_with: Option<Hashed<VirtPlatformConfig>>,
    /// How many days have passed.
    pub(crate) day: u8,
    /// Something has changed that the operator will be notified of.
    pub(crate) has_pending_change: bool,
    /// Since the session started, nothing but the session has changed anything.
    pub(crate) is_undisturbed: bool,
    /// For the mistake of planning only once.
    pub(crate) kept_plan: Option<KeptPlan>,
}

impl System {
    /// The request of the running session.
    pub(crate) fn request(&self) -> Option<&Request> {
        self.run.as_ref().and_then(|run| run.request())
    }
}

/// A session, and what the API server has told it.
#[derive(Debug, Clone)]
pub(crate) struct RunningSession {
    pub(crate) session: Session,
    pub(crate) step: Step,
    /// A digest of everything else.
    pub(crate) id: u64,
    /// A digest of the last result: the facts, the plan, and what became of its items.
    pub(crate) last_result: u64,
    /// The configuration as the session knows it: at its start, or as the API server has answered since.
    pub(crate) known: Hashed<VirtPlatformConfig>,
    is_confirmed: bool,
    /// The API server has refused an update: the known configuration is old.
    pub(crate) is_outdated: bool,
    /// The stored configuration when the session started. Does not matter once the API server has answered.
    stored_at_start: Option<Hashed<VirtPlatformConfig>>,
    /// The versions of targets that the session has seen.
    pub(crate) seen: Vec<(usize, Option<Hashed<Value>>)>,
    pub(crate) plan_basis: Option<PlanBasis>,
    /// The input among the fetched facts.
    pub(crate) fetched_input: Option<u8>,
    /// The day of the last decision.
    pub(crate) decided_on: u8,
    /// The session knows that the plan has a record.
    pub(crate) is_recorded: bool,
    /// The session does not close the record again.
    pub(crate) is_closing_done: bool,
    /// How long the process was stopped. Nothing else takes time.
    uptime: Duration,
    /// The process was stopped after the API server has confirmed the configuration.
    pub(crate) was_stopped: bool,
    /// The process was stopped right before the next request, which is the one to send after that.
    is_ready_to_send: bool,
}

/// What a plan was made from: the managed fields of the targets, and the input.
#[derive(Debug, Clone, Hash, PartialEq)]
pub(crate) struct PlanBasis {
    pub(crate) held: Hashed<Vec<String>>,
    pub(crate) input: u8,
}

impl RunningSession {
    pub(crate) fn new(session: Session, step: Step, system: &System) -> Self {
        RunningSession {
            session,
            step,
            id: 0,
            last_result: 0,
            known: system.watched.clone(),
            is_confirmed: false,
            is_outdated: false,
            stored_at_start: Some(system.cluster.config.clone()),
            seen: Vec::new(),
            plan_basis: None,
            fetched_input: None,
            decided_on: system.day,
            is_recorded: false,
            is_closing_done: false,
            uptime: Duration::ZERO,
            was_stopped: false,
            is_ready_to_send: false,
        }
    }

    /// Takes the step, as it is when its request is sent.
    pub(crate) fn take_step(&mut self) -> Step {
        let step = std::mem::replace(&mut self.step, Step::Send(Request::ReadConfig));
        match std::mem::take(&mut self.is_ready_to_send) {
            true => step,
            false => self.session.before_sending(step, self.uptime),
        }
    }

    /// Whether it makes a difference that the process is stopped now: right before the next request.
    pub(crate) fn may_be_stopped(&self) -> bool {
        let is_affected = match self.request() {
            Some(Request::CreateRecord(_) | Request::ReadConfig) => true,
            Some(request) => is_write(request),
            None => false,
        };
        is_affected && !self.is_ready_to_send
    }

    /// The process was stopped for longer than any request takes. With the mistake, it does not look again before it sends.
    pub(crate) fn stopped(&self, looks_again: bool) -> Arc<Self> {
        let mut run = self.clone();
        run.uptime += STOP;
        run.was_stopped = true;
        if looks_again {
            run.step = run.take_step();
        }
        run.is_ready_to_send = true;
        run.identified()
    }

    pub(crate) fn request(&self) -> Option<&Request> {
        match &self.step {
            Step::Send(request) => Some(request),
            Step::Done(_) => None,
        }
    }

    /// The configuration as the API server has answered with it, or else as it was when the session started.
    pub(crate) fn confirmed(&self) -> &VirtPlatformConfig {
        self.stored_at_start.as_ref().unwrap_or(&self.known)
    }

    /// The position of the target that is being written.
    pub(crate) fn target(&self, profile: &ToyProfile) -> Option<usize> {
        let Step::Send(Request::WriteTarget { planned, .. }) = &self.step else { return None };
        profile.parts.iter().position(|part| part.name() == planned.item.name)
    }

    pub(crate) fn confirm(&mut self, config: &Hashed<VirtPlatformConfig>) {
        self.known = config.clone();
        self.is_confirmed = true;
        self.is_outdated = false;
        self.was_stopped = false;
        self.stored_at_start = None;
    }

    /// The session forgets everything that it has seen.
    pub(crate) fn reset(&mut self) {
        self.last_result = 0;
        self.seen.clear();
        self.plan_basis = None;
        self.fetched_input = None;
    }

    pub(crate) fn see(&mut self, at: usize, target: &Target) {
        let seen = (at, target.hashed().cloned());
        if !self.seen.contains(&seen) {
            self.seen.push(seen);
        }
    }

    /// Two sessions that know the same and request the same continue alike. (Their limits of decisions may differ; a session that
    /// reaches its limit would show as an endless loop.)
    pub(crate) fn identified(mut self) -> Arc<Self> {
        self.seen.sort_by_key(|seen| digest(seen));
        let step = match &self.step {
            Step::Send(Request::UpdateStatus(new)) => (0, contents(new)),
            Step::Send(Request::ReadConfig) => (1, 0),
            Step::Send(Request::FetchFacts) => (2, 0),
            Step::Send(Request::MakePlan { facts }) => (3, u64::from(facts.is_some())),
            Step::Send(Request::WriteTarget { request, .. }) => (4, digest(format!("{request:?}"))),
            Step::Send(Request::CreateRecord(record)) => (5, digest(&record.spec.plan_digest)),
            Step::Send(Request::ListRecords { .. }) => (6, 0),
            Step::Send(Request::CloseRecord { name, .. }) => (7, digest(name)),
            Step::Done(Outcome::Settled { .. }) => (8, 0),
            Step::Done(Outcome::Retry(_)) => (9, 0),
        };
        let config = (&self.known, self.is_confirmed, self.is_outdated, &self.stored_at_start);
        let recording = (self.is_recorded, self.is_closing_done);
        let result = (self.last_result, &self.seen, &self.plan_basis, self.fetched_input, self.decided_on);
        // What a session knows about the way to the API server matters only after a stop.
        let way = (!self.uptime.is_zero()).then(|| format!("{:?} {:?}", self.uptime, self.session.confirmation()));
        let stops = (way, self.was_stopped, self.is_ready_to_send);
        self.id = digest((step, config, result, recording, stops));
        Arc::new(self)
    }
}

impl Hash for RunningSession {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl PartialEq for RunningSession {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

#[derive(Debug, Clone)]
pub(crate) struct KeptPlan(pub(crate) Arc<Plan>);

impl Hash for KeptPlan {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.digest, &self.0.snapshot).hash(state);
    }
}

impl PartialEq for KeptPlan {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
