//! The model as the checker explores it: everything that can happen next, within the bounds of a scenario.

use std::{fmt, sync::Arc};

use api::VirtPlatformConfig;
use api::virt_platform_config::{Action, Approval, FailurePolicy, Phase, Profile, VirtPlatformConfigSpec};
use stateright::{Model, Property};

use crate::{
    cluster::{Cluster, Meddling, stamped},
    history::{Broken, History},
    memory::Memory,
    operator::{Core, Fate, Stage},
    profile::{Toy, other_options},
};

/// How often something may happen.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Default)]
pub(crate) struct Bounds {
    pub(crate) edits: u8,
    pub(crate) meddlings: u8,
    /// Changes of the input; the last one may be that it comes back.
    pub(crate) inputs: u8,
    pub(crate) unheard: u8,
    pub(crate) crashes: u8,
    pub(crate) refusals: u8,
}

/// What the administrator does to the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Edit {
    DryRun,
    Apply,
    /// Apply, and only the plan that is in the status.
    ApplyNamed,
    /// Apply, and only some other plan.
    ApplyOther,
    Ignore,
    Options,
    Bypass,
    Policy,
}

/// Where it begins: with this spec, before the operator has seen it or after it has come to rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) action: Action,
    pub(crate) bypass: bool,
    pub(crate) policy: FailurePolicy,
    pub(crate) is_settled: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) toy: &'static Toy,
    pub(crate) starts: Vec<Start>,
    pub(crate) bounds: Bounds,
    pub(crate) edits: &'static [Edit],
    pub(crate) meddlings: &'static [Meddling],
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) scenario: Scenario,
    pub(crate) memory: Arc<Memory>,
}

#[derive(Clone, Hash, PartialEq)]
pub(crate) struct State {
    pub(crate) core: Core,
    left: Bounds,
    pub(crate) history: History,
    pub(crate) broken: Option<Broken>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Event {
    Begin { is_stale: bool },
    Step(Fate),
    Crash { is_forgetful: bool },
    RollOut,
    Edit(Edit),
    Meddle(usize, Meddling),
    Input(u8),
}

impl World {
    pub(crate) fn new(scenario: Scenario, mutation: Option<crate::mutation::Mutation>) -> Self {
        let stage = Stage { toy: scenario.toy, mutation };
        World { scenario, memory: Arc::new(Memory::new(stage)) }
    }

    fn start(&self, start: &Start) -> State {
        let mut spec = VirtPlatformConfigSpec::new(Profile::Example);
        spec.action = start.action;
        spec.bypass_optimistic_lock = start.bypass;
        spec.failure_policy = start.policy;
        let mut config = VirtPlatformConfig::new(Profile::Example.as_str(), spec);
        config.metadata.uid = Some("config".into());
        config.metadata.generation = Some(1);
        let cluster = Cluster::new(self.scenario.toy, config);
        let known = cluster.config.clone();
        let mut state = State {
            core: Core { cluster, run: None, known, has_news: true, kept: None },
            left: self.scenario.bounds,
            history: History::default(),
            broken: None,
        };
        while start.is_settled && (state.core.has_news || state.core.run.is_some()) && state.broken.is_none() {
            let rolls = state.core.cluster.is_rolling(self.scenario.toy) && state.core.run.is_none();
            let event = match &state.core.run {
                Some(_) => Event::Step(Fate::Answered),
                None if rolls => Event::RollOut,
                None => Event::Begin { is_stale: false },
            };
            state = self.next_state(&state, event).unwrap();
        }
        state
    }

    fn edit(&self, config: &VirtPlatformConfig, edit: Edit) -> Option<VirtPlatformConfig> {
        let mut new = config.clone();
        let spec = &mut new.spec;
        let named = |digest: &str| Some(Approval { plan_digest: Some(digest.to_owned()), reason: None });
        match edit {
            Edit::DryRun => spec.action = Action::DryRun,
            Edit::Ignore => spec.action = Action::Ignore,
            Edit::Apply => {
                spec.action = Action::Apply;
                spec.approval = None;
            }
            Edit::ApplyNamed => {
                spec.action = Action::Apply;
                spec.approval = named(config.status.as_ref()?.plan_digest.as_ref()?);
            }
            Edit::ApplyOther => {
                spec.action = Action::Apply;
                spec.approval = named(&"0".repeat(64));
            }
            Edit::Options => spec.options = if spec.options.is_some() { None } else { other_options() },
            Edit::Bypass => spec.bypass_optimistic_lock = !spec.bypass_optimistic_lock,
            Edit::Policy => {
                let is_abort = spec.failure_policy == FailurePolicy::Abort;
                spec.failure_policy = if is_abort { FailurePolicy::Continue } else { FailurePolicy::Abort };
            }
        }
        new.metadata.generation = new.metadata.generation.map(|generation| generation + 1);
        (new.spec != config.spec).then_some(new)
    }
}

impl Model for World {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        self.scenario.starts.iter().map(|start| self.start(start)).collect()
    }

    fn actions(&self, state: &State, actions: &mut Vec<Event>) {
        let State { core, left, .. } = state;
        if state.broken.is_some() {
            return;
        }
        match &core.run {
            Some(_) => {
                actions.push(Event::Step(Fate::Answered));
                for (fate, left) in [(Fate::Unheard, left.unheard), (Fate::Refused, left.refusals)] {
                    if left > 0 && self.memory.step(core, fate).is_some() {
                        actions.push(Event::Step(fate));
                    }
                }
                if left.crashes > 0 {
                    actions.extend([false, true].map(|is_forgetful| Event::Crash { is_forgetful }));
                }
            }
            None if core.has_news => {
                actions.push(Event::Begin { is_stale: false });
                if core.known != core.cluster.config {
                    actions.push(Event::Begin { is_stale: true });
                }
            }
            None => {}
        }
        if core.cluster.is_rolling(self.scenario.toy) {
            actions.push(Event::RollOut);
        }
        if left.edits > 0 {
            actions.extend(self.scenario.edits.iter().map(|edit| Event::Edit(*edit)));
        }
        if left.meddlings > 0 {
            for at in 0..self.scenario.toy.parts.len() {
                actions.extend(self.scenario.meddlings.iter().map(|meddling| Event::Meddle(at, *meddling)));
            }
        }
        if left.inputs > 0 {
            actions.push(Event::Input(3 - core.cluster.input));
        }
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut next = state.clone();
        let core = &mut next.core;
        match event {
            Event::Begin { is_stale } => next.core = self.memory.stage.begin(core, is_stale),
            Event::Crash { is_forgetful } => {
                next.left.crashes -= 1;
                next.core = self.memory.stage.drop_run(core, is_forgetful);
            }
            Event::Step(fate) => {
                let step = self.memory.step(core, fate)?;
                next.core = step.0.clone();
                next.left.unheard -= u8::from(fate == Fate::Unheard);
                next.left.refusals -= u8::from(fate == Fate::Refused);
                next.broken = next.history.note(&self.memory.stage, &state.core, &step.0, &step.1);
            }
            Event::RollOut => core.cluster.roll_out(self.scenario.toy),
            Event::Edit(edit) => {
                core.cluster.config = stamped(self.edit(&core.cluster.config, edit)?);
                next.left.edits -= 1;
                next.history.edited();
            }
            Event::Meddle(at, meddling) => {
                if !core.cluster.meddle(self.scenario.toy.parts[at], at, meddling) {
                    return None;
                }
                next.left.meddlings -= 1;
            }
            Event::Input(level) => {
                core.cluster.input = level;
                next.left.inputs -= 1;
            }
        }
        if matches!(event, Event::RollOut | Event::Edit(_) | Event::Meddle(..) | Event::Input(_)) {
            next.core.has_news = true;
            if let Some(run) = &mut next.core.run {
                run.is_alone = false;
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        crate::rules::properties()
    }
}

impl State {
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.core.cluster.config.status.as_ref().and_then(|status| status.phase)
    }

    /// Whether an item is not known to be applied.
    pub(crate) fn is_unwritten(&self, at: usize) -> bool {
        let item = self.core.cluster.config.status.as_ref().and_then(|status| status.items.get(at));
        item.is_some_and(|item| item.applied_fingerprint.is_none())
    }
}

/// What a person wants to know of a state on the way to a broken rule.
impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Core { cluster, run, .. } = &self.core;
        let (spec, status) = (&cluster.config.spec, cluster.config.status.clone().unwrap_or_default());
        let (phase, generation) = (status.phase.map_or("none", |it| it.as_str()), cluster.config.metadata.generation);
        let ask = run.as_ref().map(|run| format!("{:?}", run.ask).chars().take(40).collect::<String>());
        write!(f, "{phase} {}@{generation:?} input {}", spec.action, cluster.input)?;
        for item in &status.items {
            write!(f, " [{} {} {}]", item.name, item.state, item.applied_fingerprint.is_some())?;
        }
        for object in cluster.targets.iter().map(|target| target.object.as_ref()) {
            write!(f, " {}", object.map_or("absent".into(), |it| format!("{}{}", it["data"], it["spec"])))?;
        }
        write!(f, " asks {ask:?} {:?}", self.broken)
    }
}
