//! The model that the checker explores: everything that can happen next, within the bounds of a scenario.

use std::{fmt, sync::Arc};

use api::virt_platform_config::Phase;
use stateright::{Model, Property};

use crate::{
    cluster::{ForeignEdit, ModelCluster, StaleRead, stamped},
    driver::{Delivery, Driver},
    history::{History, Violation},
    memo::Memo,
    mutation::Mutation,
    profile::Part,
    requests::{Scope, is_effect, is_read, is_write},
    rules::{self, RULES},
    scenario::{Bounds, Edit, Scenario, Start},
    system::System,
};

/// More steps in a row without a choice are an endless loop.
const MAX_STEPS: usize = 300;

#[derive(Debug, Clone)]
pub(crate) struct OperatorModel {
    pub(crate) scenario: Scenario,
    pub(crate) memo: Arc<Memo>,
    /// If not all rules count: those that contain one of these words.
    pub(crate) words: Option<&'static [&'static str]>,
}

#[derive(Clone, Hash, PartialEq)]
pub(crate) struct State {
    pub(crate) system: System,
    left: Bounds,
    pub(crate) history: History,
    pub(crate) violation: Option<Violation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ModelAction {
    StartSession {
        is_stale: bool,
    },
    Step(Delivery),
    /// A step that changes something, and the process ends before the answer arrives.
    StepAndCrash {
        is_forgetful: bool,
    },
    RollOut,
    Edit(Edit),
    EditTarget(usize, ForeignEdit),
    Input(u8),
    PassDay,
    /// The process is stopped right before its next request, and continues.
    Stop,
}

/// Which changes by others make a difference to the next request.
struct RelevantChanges {
    edits: bool,
    targets: Scope,
    input: bool,
    rollout: bool,
    day: bool,
    stop: bool,
}

impl RelevantChanges {
    fn target(&self, at: usize) -> bool {
        match self.targets {
            Scope::Everything | Scope::Targets => true,
            Scope::Target(relevant) => relevant == at,
            Scope::Config | Scope::Record | Scope::Nothing => false,
        }
    }
}

impl OperatorModel {
    pub(crate) fn new(scenario: Scenario, mutation: Option<Mutation>) -> Self {
        let driver = Driver { profile: scenario.profile, approval_mode: scenario.approval_mode, mutation };
        OperatorModel { scenario, memo: Arc::new(Memo::new(driver)), words: None }
    }

    fn start(&self, start: &Start) -> State {
        let keeps_records = self.scenario.edits.contains(&Edit::Restore);
        let cluster = ModelCluster::new(self.scenario.profile, start.config(), keeps_records);
        let system = System {
            watched: cluster.config.clone(),
            cluster,
            run: None,
            started_with: None,
            day: 0,
            has_pending_change: true,
            is_undisturbed: false,
            kept_plan: None,
        };
        let history = History::new(&system.cluster);
        let mut state = State { system, left: Bounds::default(), history, violation: None };
        for _ in 0..if start.is_settled { MAX_STEPS } else { 0 } {
            if state.system.cluster.is_rolling() {
                state.system.cluster.roll_out();
                state.system.has_pending_change = true;
            }
            if state.system.run.is_none() && !state.system.has_pending_change {
                break;
            }
            self.run_until_choice(&mut state);
        }
        state.left = self.scenario.bounds;
        self.forget_irrelevant(&mut state);
        state
    }

    fn relevant_changes(&self, State { system, left, .. }: &State) -> RelevantChanges {
        let scope = system.run.as_ref().map_or(Scope::Everything, |run| self.memo.driver.scope(run));
        let is_node = |at: usize| self.scenario.profile.parts[at] == Part::Nodes;
        let sees_pool = match scope {
            Scope::Everything => true,
            Scope::Target(at) => is_node(at),
            Scope::Nothing | Scope::Config | Scope::Targets | Scope::Record => false,
        };
        // A write has to be approved, so an approval makes a difference to a write.
        let sees_config = system.request().is_none_or(|request| scope == Scope::Config || is_write(request));
        RelevantChanges {
            edits: left.edits > 0 && sees_config,
            targets: if left.foreign_edits > 0 { scope } else { Scope::Nothing },
            input: left.inputs > 0 && scope == Scope::Everything,
            rollout: sees_pool && system.cluster.is_rolling(),
            day: left.days > 0 && system.cluster.config.spec.approval.is_some(),
            stop: left.stops > 0 && system.run.as_ref().is_some_and(|run| run.may_be_stopped()),
        }
    }

    fn has_choice(&self, state: &State) -> bool {
        let State { system, left, .. } = state;
        let relevant = self.relevant_changes(state);
        let is_disturbed = relevant.edits
            || relevant.input
            || relevant.rollout
            || relevant.day
            || relevant.stop
            || (0..self.scenario.profile.parts.len()).any(|at| relevant.target(at));
        let may_fail = system.request().is_some_and(|request| {
            (is_effect(system, request) && (left.lost_answers > 0 || left.crashes > 0))
                || (is_write(request) && left.refusals > 0)
                || (is_read(request) && left.stale_reads > 0)
        });
        let is_idle = system.run.is_none() && (!system.has_pending_change || system.watched != system.cluster.config);
        is_disturbed || may_fail || is_idle
    }

    fn run_until_choice(&self, state: &mut State) {
        for _ in 0..MAX_STEPS {
            if state.violation.is_some() || self.has_choice(state) {
                return;
            }
            match &state.system.run {
                Some(_) => {
                    self.step(state, Delivery::Answered);
                }
                None => state.system = self.memo.start_session(&state.system, false),
            }
        }
    }

    /// One request of the operator, checked against the rules.
    fn step(&self, state: &mut State, delivery: Delivery) -> Option<()> {
        let (next, result) = self.memo.step(&state.system, delivery)?;
        let violation = state.history.note(&self.memo.driver, &state.system, &next, &result.change);
        let violation = violation
            .or_else(|| self.ends_differently(&state.system, &next, delivery).then_some(Violation::DifferentEnd));
        state.violation = violation.filter(|violation| self.counts(*violation));
        state.system = next;
        Some(())
    }

    fn counts(&self, violation: Violation) -> bool {
        let rule = RULES.iter().find(|(_, rule)| *rule == violation);
        self.words.is_none_or(|words| rule.is_some_and(|(rule, _)| rules::matches(words, rule)))
    }

    /// Whether a crash before or after this request, or the loss of its answer, leads to another end if nothing else happens. After
    /// a change by others during the session that is allowed: the next session sees the cluster after the change.
    fn ends_differently(&self, system: &System, next: &System, delivery: Delivery) -> bool {
        if delivery != Delivery::Answered
            || !system.is_undisturbed
            || !system.request().is_some_and(|request| is_effect(system, request))
            || !self.counts(Violation::DifferentEnd)
        {
            return false;
        }
        let (memo, driver) = (&self.memo, &self.memo.driver);
        let end = memo.ending(system).result;
        let lost = memo.step(system, Delivery::AnswerLost).map(|(lost, _)| lost);
        let crashed = [driver.stop_session(system, false), driver.stop_session(next, false)];
        crashed.iter().chain(&lost).any(|other| memo.ending(other).result != end)
    }

    /// Forgets what cannot make a difference any more.
    fn forget_irrelevant(&self, state: &mut State) {
        if state.left.stale_reads == 0 {
            state.system.cluster.forget_previous();
        }
        if state.left.crashes == 0 {
            state.system.started_with = None;
        }
    }
}

impl Model for OperatorModel {
    type State = State;
    type Action = ModelAction;

    fn init_states(&self) -> Vec<State> {
        self.scenario.starts.iter().map(|start| self.start(start)).collect()
    }

    /// Everything that can happen next and makes a difference. A change by others is tried right before each request that depends on
    /// it, and between sessions; before any other request it would make no difference.
    fn actions(&self, state: &State, actions: &mut Vec<ModelAction>) {
        let State { system, left, .. } = state;
        if state.violation.is_some() {
            return;
        }
        if let Some(request) = system.request() {
            actions.push(ModelAction::Step(Delivery::Answered));
            if left.lost_answers > 0 && is_effect(system, request) {
                actions.push(ModelAction::Step(Delivery::AnswerLost));
            }
            if left.refusals > 0 && is_write(request) {
                actions.push(ModelAction::Step(Delivery::Refused));
            }
            if left.stale_reads > 0 && is_read(request) {
                let targets = (0..self.scenario.profile.parts.len()).map(StaleRead::Target);
                let reads = targets.chain([StaleRead::Input]);
                actions.extend(reads.map(|read| ModelAction::Step(Delivery::Stale(read))));
            }
            if left.crashes > 0 && is_effect(system, request) {
                actions.extend([false, true].map(|is_forgetful| ModelAction::StepAndCrash { is_forgetful }));
            }
        } else if system.has_pending_change {
            actions.push(ModelAction::StartSession { is_stale: false });
            if system.watched != system.cluster.config {
                actions.push(ModelAction::StartSession { is_stale: true });
            }
        }
        let relevant = self.relevant_changes(state);
        if relevant.rollout {
            actions.push(ModelAction::RollOut);
        }
        if relevant.edits {
            actions.extend(self.scenario.edits.iter().map(|edit| ModelAction::Edit(*edit)));
        }
        for at in (0..self.scenario.profile.parts.len()).filter(|at| relevant.target(*at)) {
            actions.extend(self.scenario.foreign_edits.iter().map(|edit| ModelAction::EditTarget(at, *edit)));
        }
        if relevant.input {
            actions.push(ModelAction::Input(3 - system.cluster.input));
        }
        if relevant.day {
            actions.push(ModelAction::PassDay);
        }
        if relevant.stop {
            actions.push(ModelAction::Stop);
        }
    }

    fn next_state(&self, state: &State, action: ModelAction) -> Option<State> {
        let mut next = state.clone();
        let system = &mut next.system;
        match action {
            ModelAction::StartSession { is_stale } => next.system = self.memo.start_session(system, is_stale),
            ModelAction::StepAndCrash { is_forgetful } => {
                next.left.crashes -= 1;
                self.step(&mut next, Delivery::Answered)?;
                next.system = self.memo.driver.stop_session(&next.system, is_forgetful);
            }
            ModelAction::Step(delivery) => {
                next.left.lost_answers -= u8::from(delivery == Delivery::AnswerLost);
                next.left.refusals -= u8::from(delivery == Delivery::Refused);
                next.left.stale_reads -= u8::from(matches!(delivery, Delivery::Stale(_)));
                self.step(&mut next, delivery)?;
            }
            ModelAction::RollOut => system.cluster.roll_out(),
            ModelAction::Edit(edit) => {
                system.cluster.config = stamped(edit.apply(&system.cluster.config)?);
                next.left.edits -= 1;
                next.history.edited();
            }
            ModelAction::EditTarget(at, edit) => {
                if !system.cluster.edit_target(at, edit) {
                    return None;
                }
                next.left.foreign_edits -= 1;
            }
            ModelAction::Input(level) => {
                system.cluster.change_input(level);
                next.left.inputs -= 1;
            }
            ModelAction::PassDay => {
                system.day += 1;
                next.left.days -= 1;
            }
            ModelAction::Stop => {
                let looks_again = !self.memo.driver.has(Mutation::StopIgnored);
                system.run = Some(system.run.as_ref()?.stopped(looks_again));
                next.left.stops -= 1;
                next.system = self.memo.driver.end_if_done(next.system);
            }
        }
        let is_change_by_others = match action {
            ModelAction::RollOut
            | ModelAction::Edit(_)
            | ModelAction::EditTarget(..)
            | ModelAction::Input(_)
            | ModelAction::PassDay => true,
            ModelAction::StartSession { .. }
            | ModelAction::Step(_)
            | ModelAction::StepAndCrash { .. }
            | ModelAction::Stop => false,
        };
        if is_change_by_others {
            next.system.has_pending_change = true;
            next.system.is_undisturbed = false;
        }
        self.run_until_choice(&mut next);
        self.forget_irrelevant(&mut next);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(self.words)
    }
}

impl State {
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.system.cluster.config.status.as_ref().and_then(|status| status.phase)
    }

    /// Whether an item is not recorded as applied.
    pub(crate) fn is_unwritten(&self, at: usize) -> bool {
        let item = self.system.cluster.config.status.as_ref().and_then(|status| status.items.get(at));
        item.is_some_and(|item| item.applied_fingerprint.is_none())
    }
}

/// What a person needs to know of a state on the way to a violation.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cluster = &self.system.cluster;
        let (spec, status) = (&cluster.config.spec, cluster.config.status.clone().unwrap_or_default());
        let (phase, generation) = (status.phase.map_or("none", |it| it.as_str()), cluster.config.metadata.generation);
        let request = self.system.request().map(|request| format!("{request:?}").chars().take(40).collect::<String>());
        write!(f, "{phase} {}@{generation:?} input {}", spec.action, cluster.input)?;
        for item in &status.items {
            write!(f, " [{} {} {}]", item.name, item.state, item.applied_fingerprint.is_some())?;
        }
        for target in &cluster.targets {
            write!(f, " {}", target.held())?;
        }
        write!(f, " requests {request:?} {:?}", self.violation)
    }
}
